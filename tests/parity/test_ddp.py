"""The program's `PyTorch DDP` against PyTorch's own DistributedDataParallel and hooks, live."""

import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch

from comparison import cases, compare, run_program, table
from experiment import LEARNING, WORKER_COUNTS, Case, make_model

REFERENCE = pathlib.Path(__file__).resolve().parent / "reference_ddp.py"
IMPLEMENTATION = "PyTorch DDP"

FULL_PRECISION = Case("full-precision", 0, "float64", LEARNING)
HALF = Case("fp16", 0, "float64", LEARNING)
RANK_2 = Case("powersgd", 2, "float64", LEARNING)

# What each changes in the reference; the comparison in float64 must notice every one.
FAULTS = {
    "the paper's nesterov step": (FULL_PRECISION, {"lookahead": 1.0}),
    "learning rate per batch": (FULL_PRECISION, {"rate_per_batch": True}),
    "weight decay for the first bn1": (FULL_PRECISION, {"name_prefix": ""}),
    "no weight decay for the shortcut's BN": (
        FULL_PRECISION,
        {"exempt": r".*(\.bn\d+|shortcut\.1).(weight|bias)"},
    ),
    "the next epoch's order": (FULL_PRECISION, {"first_order": 1}),
    "worker 1's BN statistics at test": (FULL_PRECISION, {"tested_worker": 1}),
    "no warm start": (RANK_2, {"warm_start": False}),
    "no error memory": (RANK_2, {"error_feedback": False}),
    "compression begins a step late": (RANK_2, {"start_iteration": 3}),
    "another random Q": (RANK_2, {"random_seed": 1}),
}

# Those that the comparison in float32, at the gentle rate, must notice too.
# Two weight-decay rules change less in 24 gentle steps than float32's rounding does: float64 shows them.
SEEN_IN_FLOAT32 = set(FAULTS) - {
    "weight decay for the first bn1",
    "no weight decay for the shortcut's BN",
}

# The orders in which three workers' halves can be added: a + b = b + a, so the last one says it all.
HALF_ORDERS = {f"halves {order}": list(order) for order in ((0, 1, 2), (1, 2, 0), (2, 0, 1))}


def runs(workers):
    """name -> (case, changes) of all that reference_ddp.py is asked for."""
    wanted = {}
    for case in cases(IMPLEMENTATION):
        wanted[f"{case.label()}, {case.dtype}"] = (case, {})
        if case.dtype == "float32":
            wanted[f"{case.label()}, {case.dtype}, last bit"] = (case, {"last_bit": True})
    full_rate = dataclasses.replace(FULL_PRECISION, dtype="float32")
    wanted["full rate"] = (full_rate, {})
    wanted["full rate, last bit"] = (full_rate, {"last_bit": True})
    if workers == 2:
        for name, (case, changes) in FAULTS.items():
            wanted[f"{name}, float64"] = (case, changes)
            wanted[f"{name}, float32"] = (case.gentle(), changes)
    else:
        for name, order in HALF_ORDERS.items():
            wanted[name] = (HALF, {"half_order": order})
            wanted[f"{name}, divided before the cast"] = (
                HALF,
                {"half_order": order, "cast_before_division": False},
            )
    return wanted


class DdpParityTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.references, cls.ours = {}, {}
        for workers in WORKER_COUNTS:
            wanted = {
                name: (dataclasses.asdict(case), changes)
                for name, (case, changes) in runs(workers).items()
            }
            output = cls.folder / f"reference-{workers}.pt"
            subprocess.run(
                [sys.executable, str(REFERENCE), str(workers), json.dumps(wanted), str(output)],
                check=True,
                timeout=1500,
            )
            cls.references[workers] = torch.load(output)

    def reference(self, workers, name):
        return self.references[workers][name]

    def program(self, workers, case, in_one_order=False):
        key = (workers, case, in_one_order)
        if key not in self.ours:
            self.ours[key] = run_program(
                IMPLEMENTATION,
                workers,
                case,
                self.folder / f"run-{len(self.ours)}",
                in_one_order=in_one_order,
            )
        return self.ours[key]

    def test_initial_weights_are_bit_identical(self):
        for dtype in ("float32", "float64"):
            ours = run_program(
                IMPLEMENTATION,
                2,
                Case("full-precision", 0, dtype, 0.0),
                self.folder / f"first-{dtype}",
                layer={"epochs": 1, "batches_per_epoch": 1, "decay_epochs": []},
            )
            for name, expected in make_model(dtype).named_parameters():
                self.assertTrue(torch.equal(ours["weights"][name], expected), f"{dtype} {name}")

    def test_every_scheme_gives_what_pytorch_gives(self):
        rows, controls, failures = [], [], []
        for workers in WORKER_COUNTS:
            for case in cases(IMPLEMENTATION):
                name = f"{case.label()}, {case.dtype}"
                difference = compare(self.program(workers, case), self.reference(workers, name))
                rows.append(((case.label(), workers, case.dtype), difference))
                # Gloo and MPI add three halves in different orders, see the next test.
                if (case.scheme, workers, case.dtype) != ("fp16", 3, "float64"):
                    failures += [
                        f"{name}, {workers} workers: {found}" for found in difference.outside(case)
                    ]
                if case.dtype == "float32":
                    control = compare(
                        self.reference(workers, f"{name}, last bit"), self.reference(workers, name)
                    )
                    controls.append(((case.label(), workers, case.dtype), control))
        print("\n" + table(("scheme", "workers", "type"), rows), flush=True)
        print(
            "\n" + table(("PyTorch, begun one bit apart", "workers", "type"), controls), flush=True
        )
        self.assertEqual(failures, [])

    def test_three_halves_differ_by_the_order_of_their_sum_only(self):
        ours = self.program(3, HALF, in_one_order=True)
        differences = {name: compare(ours, self.reference(3, name)) for name in HALF_ORDERS}
        print(
            "\n" + table(("order of the sum",), [((name,), d) for name, d in differences.items()]),
            flush=True,
        )
        same = [name for name, difference in differences.items() if not difference.outside(HALF)]
        self.assertEqual(len(same), 1, "the program adds in exactly one of the orders")
        wrong = compare(ours, self.reference(3, f"{same[0]}, divided before the cast"))
        self.assertTrue(wrong.outside(HALF), "a division before the cast must show")

    def test_float32_parts_at_the_full_rate_in_pytorch_itself(self):
        """Why float32 is compared at a gentle rate; nothing is asserted about how far runs part."""
        rows = []
        for workers in WORKER_COUNTS:
            reference = self.reference(workers, "full rate")
            ours = self.program(workers, dataclasses.replace(FULL_PRECISION, dtype="float32"))
            rows.append((("the program", workers), compare(ours, reference)))
            rows.append(
                (
                    ("PyTorch, one bit", workers),
                    compare(self.reference(workers, "full rate, last bit"), reference),
                )
            )
        print("\n" + table(("full precision, float32, full rate", "workers"), rows), flush=True)

    def test_faults_are_noticed(self):
        rows = []
        for name, (case, _) in FAULTS.items():
            for one in (case, case.gentle()):
                difference = compare(
                    self.program(2, one), self.reference(2, f"{name}, {one.dtype}")
                )
                rows.append(((name, one.label(), one.dtype), difference))
                if one.dtype == "float64" or name in SEEN_IN_FLOAT32:
                    with self.subTest(name, dtype=one.dtype):
                        self.assertTrue(difference.outside(one))
        print("\n" + table(("fault", "scheme", "type"), rows), flush=True)


if __name__ == "__main__":
    unittest.main()
