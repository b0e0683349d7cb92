"""The bytes and collectives in run.json are those that MPI was handed, for every scheme.

run.json leaves out what set-up and the closing summary send. So runs of different length are compared: in what one
sends more than the other, such constants cancel.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "program"))
from program import EXPERIMENTS, PROGRAM, read_lines, read_run, train

SHIM = os.environ.get("PSGD_MPI_COUNT", "")
SHORT, LONG = 3, 8  # batches; PyTorch DDP's PowerSGD compresses from the third on
MORE = LONG - SHORT
WIDTH = 8
LAYER = {"model": "resnet18", "base_width": WIDTH, "epochs": 1, "check_every": 0}


def label(experiment):
    rank = experiment.get("scheme_options.rank")
    return f"{experiment['implementation']}, {experiment['scheme']}" + (
        f" rank {rank}" if rank else ""
    )


def parameter_shapes(width):
    """ResNet-18's: matrices [out, rest], and vectors."""
    matrices, vectors = [(width, 27), (10, 8 * width)], [width, width, 10]
    inputs = width
    for outputs in (width, 2 * width, 4 * width, 8 * width):
        for block_inputs in (inputs, outputs):
            matrices += [(outputs, 9 * block_inputs), (outputs, 9 * outputs)]
            vectors += 4 * [outputs]
            if block_inputs != outputs:
                matrices.append((outputs, block_inputs))
                vectors += 2 * [outputs]
        inputs = outputs
    return matrices, vectors


def elements_per_step(experiment):
    """What one worker sends for gradients in a step, in elements."""
    matrices, vectors = parameter_shapes(WIDTH)
    sent = sum(vectors)
    for rows, columns in matrices:
        rank = min(rows, columns, experiment.get("scheme_options.rank", min(rows, columns)))
        low_rank = (rows + columns) * rank
        compressed = experiment["scheme"] == "powersgd"
        if experiment["implementation"] == "PyTorch DDP":
            compressed = compressed and 2 * low_rank < rows * columns
        sent += low_rank if compressed else rows * columns
    return sent


def collectives_per_step(experiment):
    # PowerSGD: P, Q, and all that stays whole. PyTorch DDP has one bucket at this width.
    return 3 if experiment["scheme"] == "powersgd" else 1


class Counted:
    """One run: its record, and for each worker what MPI was handed."""

    def __init__(self, folder, workers, *layers):
        folder.mkdir()
        process = train(
            workers,
            folder / "run",
            LAYER,
            *layers,
            timeout=900,
            env={"LD_PRELOAD": SHIM, "PSGD_COUNT_FOLDER": str(folder)},
        )
        assert process.returncode == 0, process.stderr[-3000:]
        self.record = read_run(folder / "run")
        self.totals = self.record["totals"]
        self.bits = read_lines(folder / "run", "batches.jsonl")[-1]["bits"]
        self.counts = [
            json.loads((folder / f"count-{worker}.json").read_text()) for worker in range(workers)
        ]


def more(longer, shorter):
    """longer - shorter, through nested numbers."""
    if isinstance(longer, dict):
        return {key: more(value, shorter[key]) for key, value in longer.items()}
    return longer - shorter


class MpiCountTest(unittest.TestCase):
    def setUp(self):
        self.assertTrue(pathlib.Path(SHIM).is_file(), "PSGD_MPI_COUNT must name the built shim")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.runs = 0

    def run_one(self, workers, *layers):
        self.runs += 1
        return Counted(self.path / f"{self.runs}", workers, *layers)

    def compare(self, workers, experiment, layer):
        longer = self.run_one(workers, experiment, {"batches_per_epoch": LONG}, layer)
        shorter = self.run_one(workers, experiment, {"batches_per_epoch": SHORT}, layer)
        totals = more(longer.totals, shorter.totals)
        sent = totals["bytes"]
        element_bytes = 2 if experiment["scheme"] == "fp16" else 4
        self.assertEqual(totals["steps"], MORE)
        self.assertEqual(longer.record["model"]["elements"], elements_per_step(EXPERIMENTS[0]))
        self.assertEqual(totals["bits"], 8 * element_bytes * elements_per_step(experiment) * MORE)
        self.assertEqual(longer.bits - shorter.bits, totals["bits"])
        self.assertEqual(totals["bits"], 8 * sent["gradient"])
        self.assertEqual(totals["collectives"], collectives_per_step(experiment) * MORE)
        ddp = experiment["implementation"] == "PyTorch DDP"
        for worker, (after, before) in enumerate(zip(longer.counts, shorter.counts)):
            with self.subTest(worker=worker):
                handed = more(after, before)
                reduced = {
                    key: handed["allreduce"][key] + handed["iallreduce"][key]
                    for key in ("calls", "bytes")
                }
                # The counts of an epoch are all-reduced as well, but as often in both runs.
                self.assertEqual(
                    reduced, {"calls": totals["collectives"], "bytes": sent["gradient"]}
                )
                self.assertEqual(
                    handed["iallreduce"]["calls"], MORE if experiment["scheme"] == "powersgd" else 0
                )
                self.assertEqual(
                    handed["bcast"], {"calls": MORE if ddp else 0, "bytes": sent["buffer"]}
                )
                self.assertEqual(handed["allgather"]["bytes"], sent["metric"] + sent["check"])
                self.assertEqual(sum(one["bytes"] for one in handed.values()), sum(sent.values()))
                self.assertEqual(after["other"], {"calls": 0, "bytes": 0})
        return totals

    def test_every_scheme(self):
        for workers in (2, 3):
            for experiment in EXPERIMENTS:
                with self.subTest(label(experiment), workers=workers):
                    totals = self.compare(workers, experiment, {})
                    self.assertEqual(totals["bytes"]["check"], 0)
                    print(
                        f"  {workers} workers, {label(experiment)}: {totals['bytes']}, {totals['collectives']} "
                        "collectives for gradients",
                        flush=True,
                    )

    def test_checks_are_counted_apart(self):
        for experiment in (EXPERIMENTS[3], EXPERIMENTS[7]):
            with self.subTest(label(experiment)):
                totals = self.compare(2, experiment, {"check_every": 1})
                self.assertEqual(totals["bytes"]["check"], 8 * MORE, "one 64-bit hash a step")

    def test_every_registered_scheme_is_in_this_test(self):
        listed, implementation = set(), ""
        for line in subprocess.run(
            [str(PROGRAM), "list"], capture_output=True, text=True, check=True, timeout=60
        ).stdout.splitlines():
            heading = re.fullmatch(r"(?:schemes of )?(\S.*):", line)
            if heading:
                implementation = heading[1] if line.startswith("schemes of ") else ""
            elif implementation and (name := re.match(r"  (\S+)", line)):
                listed.add((implementation, name[1]))
        self.assertEqual(listed, {(one["implementation"], one["scheme"]) for one in EXPERIMENTS})


if __name__ == "__main__":
    unittest.main()
