#!/usr/bin/python3
"""Measures what sharing cores costs: batch.py [--workers N] [--width W] [--batch-size B] [--batches K]

Prints the mean batch of every experiment with N workers on this machine, beside
- the ideal: as many single workers at once as there are cores, which do not communicate, times N / cores;
- the floor: N single workers at once, which do not communicate and take turns as long as those of a job. What it takes
  over the ideal is the price of sharing caches and cores, which no way of communicating can save.
Synthetic images; nothing else should run on the machine meanwhile.
"""

import argparse
import ctypes
import json
import os
import pathlib
import platform
import statistics
import struct
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = pathlib.Path(
    os.environ.get("PSGD_PROGRAM", ROOT / "build" / "release" / "powersgd-bench")
)
PSGD = [("powersgd", rank) for rank in (1, 2, 4)]
EXPERIMENTS = {
    "PyTorch DDP": [("full-precision", 0), ("fp16", 0), *PSGD],
    "Paper": [("full-precision", 0), *PSGD],
}
WARM_UP = 4  # batches left out: buckets, memory, libraries


def take_long_turns():
    """As harness/mpi/session.cpp has the workers of a job do that share cores: Linux's sched_attr with turns of 0.1 s."""
    if platform.machine() != "x86_64":
        return  # another number there; the turns stay the usual ones
    attributes = struct.pack("=IIQiIQQQ", 48, 0, 0, 0, 0, 100_000_000, 0, 0)
    ctypes.CDLL(None).syscall(314, 0, attributes, 0)  # sched_setattr


def start(folder, workers, options, long_turns, implementation, scheme, rank):
    settings = {
        "implementation": implementation,
        "scheme": scheme,
        "n_workers": workers,
        "dataset": "synthetic",
        "base_width": options.width,
        "batch_size": options.batch_size,
        "threads": 1,
        "test_images": workers,
        "epochs": 1,
        "batches_per_epoch": options.batches + WARM_UP,
        "warmup_epochs": 0,
        "decay_epochs": "[]",
        "channels_last": str(options.channels_last).lower(),
        "train_images": workers * options.batch_size * (options.batches + WARM_UP),
        "checkpoint_every_epochs": 0,
    }
    if rank:
        settings["scheme_options.rank"] = rank
    command = [ROOT / "scripts" / "launch.sh", str(workers), PROGRAM, "train", "--output", folder]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    # Single workers side by side: mpirun would bind each to the same first core.
    environment = {**os.environ, "PSGD_MPIRUN_ARGS": "--bind-to none"} if workers == 1 else None
    return subprocess.Popen(
        [str(word) for word in command],
        stdout=subprocess.DEVNULL,
        env=environment,
        preexec_fn=take_long_turns if long_turns else None,
    )


def mean_batch(folder, alone):
    """Seconds, over workers and batches; of jobs that do not start and end together, the middle half."""
    lines = (folder / "batches.jsonl").read_text().splitlines()[WARM_UP:]
    if alone:
        quarter = len(lines) // 4
        lines = lines[quarter : len(lines) - quarter]
    return (
        statistics.mean(t for line in lines for t in json.loads(line)["microseconds"]["batch"])
        * 1e-6
    )


def run(count, workers, options, *experiment):
    """Mean batch in seconds of `count` jobs at once."""
    long_turns = workers == 1 and count > len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        folders = [pathlib.Path(folder) / str(i) for i in range(count)]
        started = [start(path, workers, options, long_turns, *experiment) for path in folders]
        if any([process.wait() for process in started]):
            raise SystemExit(f"{experiment}, {workers} workers: training failed")
        return statistics.mean(mean_batch(path, alone=count > 1) for path in folders)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--no-channels-last", dest="channels_last", action="store_false")
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    ideal = run(cores, 1, options, "PyTorch DDP", "full-precision", 0) * options.workers / cores
    print(
        f"ideal: {1e3 * ideal:.1f} ms, {options.workers / cores:g} batches of {cores} single workers at once"
    )
    floor = run(options.workers, 1, options, "PyTorch DDP", "full-precision", 0)
    print(
        f"floor: {1e3 * floor:.1f} ms ({floor / ideal:.2f} x ideal), {options.workers} single workers at once\n"
    )
    print("| implementation | scheme | batch ms | x ideal | x floor |\n|---|---|---|---|---|")
    for implementation, schemes in EXPERIMENTS.items():
        for scheme, rank in schemes:
            batch = run(1, options.workers, options, implementation, scheme, rank)
            label = f"rank {rank}" if rank else {"fp16": "FP16"}.get(scheme, "full precision")
            print(
                f"| {implementation} | {label} | {1e3 * batch:.1f} | {batch / ideal:.2f} | {batch / floor:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
