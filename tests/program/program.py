"""Runs powersgd-bench as a user does, for the tests beside this file."""

import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = pathlib.Path(
    os.environ.get("PSGD_PROGRAM", ROOT / "build" / "release" / "powersgd-bench")
)
LAUNCH = ROOT / "scripts" / "launch.sh"
# How much longer than usual everything may take: sanitizers are slow.
PATIENCE = float(os.environ.get("PSGD_TEST_PATIENCE", "1"))

# A run that takes a second or two: a small network on made-up images.
SMALL = {
    "dataset": "synthetic",
    "model": "resnet18",
    "base_width": 8,
    "batch_size": 4,
    "train_images": 256,
    "test_images": 50,
    "epochs": 2,
    "batches_per_epoch": 5,
    "learning_rate": 0.01,
    "warmup_epochs": 1,
    "decay_epochs": [],
    "check_every": 2,
    "checkpoint_every_epochs": 0,
}

# Every scheme of both implementations, as settings.
EXPERIMENTS = [
    {"implementation": "PyTorch DDP", "scheme": "full-precision"},
    {"implementation": "PyTorch DDP", "scheme": "fp16"},
    *(
        {"implementation": "PyTorch DDP", "scheme": "powersgd", "scheme_options.rank": rank}
        for rank in (1, 2, 4)
    ),
    {"implementation": "Paper", "scheme": "full-precision"},
    *(
        {"implementation": "Paper", "scheme": "powersgd", "scheme_options.rank": rank}
        for rank in (1, 2, 4)
    ),
]


def settings(workers, *layers):
    """--set arguments for a small run; later layers win."""
    merged = {**SMALL, "n_workers": workers}
    for layer in layers:
        merged.update(layer)
    arguments = []
    for key, value in merged.items():
        arguments += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    return arguments


def command(workers, output, *layers, flags=()):
    return [
        str(LAUNCH),
        str(workers),
        str(PROGRAM),
        "train",
        "--output",
        str(output),
        *flags,
        *settings(workers, *layers),
    ]


def train(workers, output, *layers, flags=(), timeout=300 * PATIENCE, env=None):
    """Runs to the end; returns the finished process with its output as text."""
    return subprocess.run(
        command(workers, output, *layers, flags=flags),
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **(env or {})},
        check=False,
    )


def read_run(folder):
    return json.loads((pathlib.Path(folder) / "run.json").read_text())


def read_lines(folder, name):
    return [json.loads(line) for line in (pathlib.Path(folder) / name).read_text().splitlines()]
