"""Every config and every sweep file under configs/ loads, and expands to the experiments that it should."""

import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from sweep_file import load_sweep, read_json  # noqa: E402

PROGRAM = pathlib.Path(
    os.environ.get("PSGD_PROGRAM", ROOT / "build" / "release" / "powersgd-bench")
)
EXPECTED_RUNS = {"notebook": 18, "desk": 9, "desk-timing": 9, "quick": 9, "smoke": 9}
GRID = {
    ("PyTorch DDP", "full-precision", 0),
    ("PyTorch DDP", "fp16", 0),
    ("Paper", "full-precision", 0),
} | {
    (implementation, "powersgd", rank)
    for implementation in ("PyTorch DDP", "Paper")
    for rank in (1, 2, 4)
}


class ConfigsTest(unittest.TestCase):
    def sweeps(self):
        return {
            path.parent.name: load_sweep(path)
            for path in sorted((ROOT / "configs").glob("*/sweep.json"))
        }

    def test_every_sweep_is_the_grid(self):
        self.assertEqual({name: len(runs) for name, runs in self.sweeps().items()}, EXPECTED_RUNS)
        for name, runs in self.sweeps().items():
            with self.subTest(sweep=name):
                self.assertEqual(
                    {
                        (
                            run.config["implementation"],
                            run.config["scheme"],
                            run.config.get("scheme_options", {}).get("rank", 0),
                        )
                        for run in runs
                    },
                    GRID,
                )

    def test_every_json_file_belongs_to_a_sweep(self):
        for path in (ROOT / "configs").rglob("*.json"):
            with self.subTest(file=path):
                self.assertTrue(read_json(path))
                used = path.name == "sweep.json" or any(
                    run.base.resolve() == path for run in load_sweep(path.parent / "sweep.json")
                )
                self.assertTrue(used, "no sweep uses it")

    def test_notebook_settings(self):
        runs = self.sweeps()["notebook"]
        self.assertEqual({run.config["seed"] for run in runs}, {1, 2})
        wanted = {
            "n_workers": 16,
            "model": "resnet18",
            "base_width": 64,
            "dataset": "cifar10",
            "batch_size": 128,
            "epochs": 300,
            "batches_per_epoch": 0,
            "learning_rate": 0.1,
            "momentum": 0.9,
            "weight_decay": 1e-4,
            "warmup_epochs": 5,
            "decay_epochs": [150, 250],
            "decay_factor": 10,
            "running_average_reset_epochs": 30,
        }
        for run in runs:
            self.assertEqual({key: run.config[key] for key in wanted}, wanted)

    def test_learning_rate_follows_the_total_batch(self):
        for name in ("desk", "desk-timing"):
            for run in self.sweeps()[name]:
                self.assertAlmostEqual(
                    run.config["learning_rate"], 0.1 * run.config["batch_size"] / 128
                )

    def test_the_program_accepts_every_run(self):
        self.assertTrue(
            PROGRAM.is_file(), f"no program at {PROGRAM}: build it, or set PSGD_PROGRAM"
        )
        for name, runs in self.sweeps().items():
            for run in runs:
                command = [str(PROGRAM), "check-config", "--config", str(run.base)]
                for key, value in {**run.settings, "data_dir": "/somewhere"}.items():
                    command += ["--set", f"{key}={value}"]
                with self.subTest(sweep=name, run=run.name):
                    result = subprocess.run(
                        command,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                        text=True,
                        timeout=60,
                        check=False,
                    )
                    self.assertEqual(result.returncode, 0, result.stdout)


if __name__ == "__main__":
    unittest.main()
