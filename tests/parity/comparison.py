"""Runs the program on the experiment, and measures how far two results are apart."""

import dataclasses
import os
import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "program"))
import program

from experiment import COMPARED_STEP, GENTLE, LEARNING, SETTINGS, Case

# Float64, at the learning rate at which the network learns, shows that the rules are the same: what is left is
# rounding, here with much room. Float32 has kernels of its own and is compared at a gentle rate.
FLOAT64_TOLERANCE = 1e-9
FLOAT32_TOLERANCE = 1e-4
# Relative to the way that the weights went. PowerSGD normalises, which makes more of a last bit.
FLOAT32_OF_MOVEMENT = {"full-precision": 0.05, "fp16": 0.05, "powersgd": 0.15}
FLOAT32_IMAGES = 1  # test images on which a float32 run may decide otherwise

SCHEMES = [("full-precision", 0), ("fp16", 0), ("powersgd", 1), ("powersgd", 2), ("powersgd", 4)]
PRECISIONS = [("float64", LEARNING), ("float32", GENTLE)]


def cases(implementation):
    return [
        Case(scheme, rank, dtype, rate)
        for scheme, rank in SCHEMES
        for dtype, rate in PRECISIONS
        if implementation == "PyTorch DDP" or scheme != "fp16"
    ]


# Open MPI adds up in an order of its own, which depends on sizes; this makes it one order for all elements.
ONE_ORDER = "--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm 1"


def run_program(implementation, workers, case, folder, layer=None, in_one_order=False):
    """Returns what reference_ddp.py does for a run, but for the initial weights."""
    env = {}
    if in_one_order:
        env["PSGD_MPIRUN_ARGS"] = f"{os.environ.get('PSGD_MPIRUN_ARGS', '')} {ONE_ORDER}"
    start = time.monotonic()
    # One bucket, as in reference_ddp.py.
    process = program.train(
        workers,
        folder,
        SETTINGS,
        case.settings(implementation),
        {"first_bucket_mib": 25},
        layer or {},
        timeout=1200,
        env=env,
    )
    if process.returncode != 0:
        raise RuntimeError(
            f"the program failed with {process.returncode}:\n{process.stderr[-3000:]}"
        )
    print(
        f"  program, {implementation}, {workers} workers: {case.label()}, {case.dtype} "
        f"({time.monotonic() - start:.0f} s)",
        flush=True,
    )
    tests = [
        line for line in program.read_lines(folder, "metrics.jsonl") if line["split"] == "test"
    ]
    return {
        "weights": torch.load(folder / "weights.pt"),
        "losses": [line["loss"] for line in program.read_lines(folder, "batches.jsonl")],
        "tests": [{key: line[key] for key in ("weights", "correct", "loss")} for line in tests],
    }


def relative(ours, reference):
    return abs(ours - reference) / abs(reference)


def joined(state, names):
    return torch.cat([state[name].double().flatten() for name in names])


def distance(ours, reference, names, start=None):
    """Relative, in the 2-norm, over all these tensors together; with `start`, relative to the way from there."""
    ours, reference = joined(ours, names), joined(reference, names)
    scale = reference if start is None else reference - joined(start, names)
    return ((ours - reference).norm() / scale.norm()).item()


@dataclasses.dataclass
class Difference:
    """All relative, apart from `images`."""

    loss_at_20: float  # largest up to and including COMPARED_STEP
    loss: float  # largest over all steps
    weights: float  # after the last step, all parameters together
    movement: float  # the same, relative to how far the parameters have moved since the start
    worst: float  # the parameter that is furthest apart
    statistics: float  # running means and variances
    test_loss: float  # largest of all tests
    images: int  # most test images by which a count of right answers differs

    MEASURES = ("loss_at_20", "loss", "weights", "movement", "worst", "statistics", "test_loss")

    def outside(self, case):
        """What is larger than it may be; NaN is."""
        tolerances = dict.fromkeys(self.MEASURES, FLOAT64_TOLERANCE)
        images = 0
        if case.dtype == "float32":
            tolerances = dict.fromkeys(self.MEASURES, FLOAT32_TOLERANCE)
            tolerances["movement"] = FLOAT32_OF_MOVEMENT[case.scheme]
            tolerances["worst"] = float(
                "inf"
            )  # a bias that began at zero has hardly more than rounding
            images = FLOAT32_IMAGES
        found = [
            f"{name} {getattr(self, name):.1e}"
            for name, limit in tolerances.items()
            if not getattr(self, name) <= limit
        ]
        return found + ([f"{self.images} test images"] if self.images > images else [])


def check_shape(ours, reference):
    found, expected = len(ours["losses"]), len(reference["losses"])
    if found != expected:
        raise AssertionError(f"{found} steps, but the reference has {expected}")
    found, expected = set(ours["weights"]), set(reference["weights"])
    if found != expected:
        raise AssertionError(f"tensors in only one of the two: {sorted(found ^ expected)}")
    found, expected = ([test["weights"] for test in one["tests"]] for one in (ours, reference))
    if found != expected:
        raise AssertionError(f"tests of {found}, but the reference has {expected}")


def compare(ours, reference):
    check_shape(ours, reference)
    losses = [relative(a, b) for a, b in zip(ours["losses"], reference["losses"])]
    tests = list(zip(ours["tests"], reference["tests"]))
    state = {name for name, value in reference["weights"].items() if value.is_floating_point()}
    statistics = sorted(name for name in state if ".running_" in name)
    weights = sorted(state.difference(statistics))
    pair = (ours["weights"], reference["weights"])
    return Difference(
        loss_at_20=max(losses[:COMPARED_STEP]),
        loss=max(losses),
        weights=distance(*pair, weights),
        movement=distance(*pair, weights, reference["initial"]),
        worst=max(distance(*pair, [name]) for name in weights),
        statistics=distance(*pair, statistics),
        test_loss=max(relative(a["loss"], b["loss"]) for a, b in tests),
        images=max(abs(a["correct"] - b["correct"]) for a, b in tests),
    )


def table(first_columns, rows):
    """Markdown; rows: ((cell, ...), Difference)."""
    lines = [
        [
            *first_columns,
            "loss to step 20",
            "loss to the end",
            "weights",
            "of the movement",
            "worst tensor",
            "BN statistics",
            "test loss",
            "test images",
        ]
    ]
    lines.append(["---"] * len(lines[0]))
    for cells, difference in rows:
        measures = [f"{getattr(difference, name):.1e}" for name in Difference.MEASURES]
        lines.append([*map(str, cells), *measures, str(difference.images)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
