#!/usr/bin/python3
"""Measures the reduction and prints the tables of README.md: run.py [--steps N] [--workers N...] [--out FILE]

Runs `powersgd-bench reduce` for every scheme of both implementations with 2 and with 16 workers, and PyTorch's own
hooks (python3-torch, gloo, 2 workers) beside them; then the schemes' loops alone, and the rest of
a batch (psgd_kernels_benchmark, psgd_batch_benchmark). Every row's ratios come from one process group and one run: bare
all-reduce and memory pass alternate with the reduction. Nothing else should run on the machine meanwhile.
"""

import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = pathlib.Path(
    os.environ.get("PSGD_PROGRAM", ROOT / "build" / "release" / "powersgd-bench")
)
BENCHMARKS = pathlib.Path(os.environ.get("PSGD_BENCHMARKS", PROGRAM.parent / "tests" / "bench"))
SCHEMES = [("full-precision", 0), ("fp16", 0), ("powersgd", 1), ("powersgd", 2), ("powersgd", 4)]
IMPLEMENTATIONS = ("PyTorch DDP", "Paper")


def reduce(implementation, scheme, rank, workers, steps):
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "result.json"
        command = [
            ROOT / "scripts" / "launch.sh",
            str(workers),
            PROGRAM,
            "reduce",
            "--json",
            output,
            "--set",
            f"implementation={implementation}",
            "--set",
            f"scheme={scheme}",
            "--set",
            f"n_workers={workers}",
            "--set",
            "threads=1",
            "--set",
            f"timed_steps={steps}",
        ]
        if rank:
            command += ["--set", f"scheme_options.rank={rank}"]
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=1800
        )
        return json.loads(output.read_text())


def pytorch(scheme, rank, steps):
    name = f"rank-{rank}" if rank else scheme
    command = [
        "/usr/bin/python3",
        pathlib.Path(__file__).parent / "pytorch_hooks.py",
        name,
        str(steps),
    ]
    return float(
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout
    )


def print_table(rows):
    head = [
        "implementation",
        "scheme",
        "workers",
        "reduction ms",
        "bare ms",
        "x bare",
        "pass ms",
        "x pass",
        "PyTorch ms",
    ]
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        reduction, bare, one_pass = (
            1e3 * row[key] for key in ("reduction", "bare_allreduce", "memory_pass")
        )
        print(
            f"| {row['implementation']} | {row['label']} | {row['workers']} | {reduction:.2f} | {bare:.2f} | "
            f"{reduction / bare:.2f} | {one_pass:.2f} | {reduction / one_pass:.2f} | "
            + (f"{1e3 * row['pytorch']:.1f}" if "pytorch" in row else "")
            + " |"
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 16])
    parser.add_argument("--out", type=pathlib.Path, help="file for the raw results, JSON")
    parser.add_argument("--without-pytorch", action="store_true")
    options = parser.parse_args()
    rows = []
    for workers in options.workers:
        for implementation in IMPLEMENTATIONS:
            for scheme, rank in SCHEMES:
                if (implementation, scheme) == ("Paper", "fp16"):
                    continue
                row = {
                    "implementation": implementation,
                    "workers": workers,
                    **reduce(implementation, scheme, rank, workers, options.steps),
                }
                if workers == 2 and implementation == "PyTorch DDP" and not options.without_pytorch:
                    row["pytorch"] = pytorch(scheme, rank, options.steps)
                rows.append(row)
                print(f"{implementation}, {row['label']}, {workers} workers: done", file=sys.stderr)
    print(
        f"{datetime.date.today()}, {rows[0]['machine']['cpu']}, {rows[0]['machine']['cores']} cores, "
        f"commit {rows[0]['build']['git_commit']}\n"
    )
    print_table(rows)
    seconds = 0.5 if options.steps > 1 else 0.001
    for program in ("psgd_kernels_benchmark", "psgd_batch_benchmark"):
        print(flush=True)
        subprocess.run([BENCHMARKS / program, f"--benchmark_min_time={seconds}"], check=True)
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
