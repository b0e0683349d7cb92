"""Runs scripts/sweep.py on a program that only pretends (fake_bench.py)."""

import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SWEEP = ROOT / "scripts" / "sweep.py"

BASE = {"n_workers": 4, "epochs": 2, "batch_size": 8}
GRID = [
    {"implementation": "PyTorch DDP", "schemes": ["full-precision", "fp16"]},
    {
        "implementation": "Paper",
        "schemes": [
            {"scheme": "powersgd", "name": "rank-{rank}", "scheme_options": {"rank": [1, 2]}}
        ],
    },
]
NAMES = [
    "ddp-full-precision-seed-1",
    "ddp-fp16-seed-1",
    "paper-rank-1-seed-1",
    "paper-rank-2-seed-1",
]


class SweepTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.output = self.folder / "runs"
        self.calls = self.folder / "calls.jsonl"
        self.calls.touch()
        self.write("base.json", BASE)
        self.write("sweep.json", {"base": "base.json", "seeds": [1], "experiments": GRID})
        self.plan({})

    def write(self, name, value):
        (self.folder / name).write_text(
            value if isinstance(value, str) else json.dumps(value), encoding="utf-8"
        )

    def plan(self, value):
        self.write("plan.json", value)

    def command(self, *more):
        return [
            sys.executable,
            str(SWEEP),
            str(self.folder / "sweep.json"),
            "--output",
            str(self.output),
            "--program",
            str(HERE / "fake_bench.py"),
            *more,
        ]

    def environment(self):
        path = f"{self.folder}{os.pathsep}{os.environ['PATH']}"
        return {
            **os.environ,
            "FAKE_PLAN": str(self.folder / "plan.json"),
            "FAKE_CALLS": str(self.calls),
            "PSGD_MPIRUN": str(HERE / "fake_mpirun.py"),
            "PATH": path,
        }

    def sweep(self, *more):
        return subprocess.run(
            self.command(*more),
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=180,
            check=False,
        )

    def start(self, *more):
        process = subprocess.Popen(
            self.command(*more),
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdout.close()))
        return process

    def wait_for(self, path):
        for _ in range(1200):
            if path.exists():
                return
            time.sleep(0.05)
        self.fail(f"{path} did not appear")

    def started(self):
        return [json.loads(line) for line in self.calls.read_text(encoding="utf-8").splitlines()]

    def status_of(self, name):
        return json.loads((self.output / name / "run.json").read_text(encoding="utf-8"))["status"]

    def assert_usage_error(self, result, *texts):
        self.assertEqual(result.returncode, 2, result.stdout)
        for text in texts:
            self.assertIn(text, result.stdout)
        self.assertNotIn("Traceback", result.stdout)
        self.assertEqual(self.started(), [])

    # ---- what is run, and how

    def test_runs_the_whole_grid_in_order(self):
        result = self.sweep()
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual([call["name"] for call in self.started()], NAMES)
        self.assertEqual(
            self.started()[3]["settings"],
            {
                "implementation": "Paper",
                "scheme": "powersgd",
                "scheme_options.rank": "2",
                "seed": "1",
            },
        )
        self.assertEqual(
            self.started()[1]["settings"],
            {"implementation": "PyTorch DDP", "scheme": "fp16", "seed": "1"},
        )
        self.assertFalse(any(call["resume"] for call in self.started()))
        self.assertIn("finished 4, failed 0, diverged 0, still to do 0", result.stdout)
        for name in NAMES:
            self.assertIn("fake run", (self.output / f"{name}.log").read_text(encoding="utf-8"))

    def test_two_seeds_one_after_the_other(self):
        self.write("sweep.json", {"base": "base.json", "seeds": [1, 2], "experiments": GRID})
        self.assertEqual(self.sweep().returncode, 0)
        seeds = [call["settings"]["seed"] for call in self.started()]
        self.assertEqual(seeds, ["1"] * 4 + ["2"] * 4)
        self.assertEqual(len({call["name"] for call in self.started()}), 8)

    def test_settings_go_over_the_base_config(self):
        self.assertEqual(
            self.sweep(
                "--set", "epochs=1", "--set", "dataset=synthetic", "--only", "paper-*"
            ).returncode,
            0,
        )
        self.assertEqual([call["name"] for call in self.started()], NAMES[2:])
        self.assertEqual(self.started()[0]["settings"]["epochs"], "1")
        self.assertEqual(self.started()[0]["settings"]["dataset"], "synthetic")

    def test_dry_run_starts_nothing_and_writes_nothing(self):
        result = self.sweep("--dry-run")
        self.assertEqual(result.returncode, 0, result.stdout)
        for name in NAMES:
            self.assertIn(name, result.stdout)
        self.assertIn("launch.sh --transport auto 4 ", result.stdout)
        self.assertIn("'implementation=PyTorch DDP'", result.stdout)
        self.assertIn("4 runs", result.stdout)
        self.assertEqual(self.started(), [])
        self.assertFalse(self.output.exists())

    def test_srun(self):
        (self.folder / "srun").symlink_to(HERE / "fake_mpirun.py")
        result = self.sweep(
            "--launcher",
            "srun",
            "--launcher-args",
            "--mpi=pmix --comment='a b'",
            "--transport",
            "ucx",
            "--dry-run",
        )
        self.assertIn(
            "OMPI_MCA_pml=ucx OMPI_MCA_pml_ucx_tls=any OMPI_MCA_pml_ucx_devices=any srun -n 4 --mpi=pmix "
            "'--comment=a b' ",
            result.stdout,
        )
        self.assertEqual(self.sweep("--launcher", "srun").returncode, 0)
        self.assertEqual(len(self.started()), 4)

    # ---- going on

    def test_finished_runs_are_not_repeated(self):
        self.assertEqual(self.sweep("--only", "ddp-*").returncode, 0)
        result = self.sweep()
        self.assertEqual(result.returncode, 0)
        self.assertEqual([call["name"] for call in self.started()], NAMES)
        self.assertIn("4 runs, 2 of them to do", result.stdout)
        self.assertIn("left in all", result.stdout)

    def test_goes_on_after_a_failed_run_and_says_so(self):
        self.plan({"ddp-fp16-seed-1": ["failed", "finished"]})
        result = self.sweep()
        self.assertEqual(result.returncode, 1)
        self.assertEqual([call["name"] for call in self.started()], NAMES)
        self.assertIn("finished 3, failed 1", result.stdout)
        self.assertIn("failed: ddp-fp16-seed-1", result.stdout)
        self.assertIn("because the test says so (exit status 1)", result.stdout)
        result = self.sweep()
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual([call["name"] for call in self.started()], NAMES + ["ddp-fp16-seed-1"])
        self.assertIn("ddp-fp16-seed-1.failed-1", result.stdout)
        self.assertEqual(self.status_of("ddp-fp16-seed-1.failed-1"), "failed")
        self.assertEqual(self.status_of("ddp-fp16-seed-1"), "finished")

    def test_a_dead_run_without_checkpoint_starts_anew_and_what_it_left_is_kept(self):
        name = "ddp-fp16-seed-1"
        self.plan({name: ["killed", "killed", "finished"]})
        for expected in (1, 1, 0):
            result = self.sweep("--only", name)
            self.assertEqual(result.returncode, expected, result.stdout)
        self.assertEqual(self.status_of(f"{name}.failed-1"), "running")
        self.assertEqual(self.status_of(f"{name}.failed-2"), "running")
        self.assertEqual(self.status_of(name), "finished")
        self.assertEqual([call["resume"] for call in self.started()], [False] * 3)

    def test_a_dead_run_with_checkpoint_is_resumed(self):
        name = "paper-rank-1-seed-1"
        self.plan({name: ["killed with checkpoint"]})
        self.assertEqual(self.sweep("--only", name).returncode, 1)
        result = self.sweep("--only", name)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual([call["resume"] for call in self.started()], [False, True])
        self.assertFalse((self.output / f"{name}.failed-1").exists())
        self.assertEqual(
            (self.output / f"{name}.log").read_text(encoding="utf-8").count("fake run"), 2
        )

    def test_a_refused_resume_is_a_failure_and_changes_nothing(self):
        name = "paper-rank-1-seed-1"
        self.plan({name: ["killed with checkpoint", "refused"]})
        self.sweep("--only", name)
        result = self.sweep("--only", name)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("exit status 2", result.stdout)
        self.assertTrue((self.output / name / "checkpoint" / "a").exists())

    def test_a_diverged_run_is_kept_and_not_repeated(self):
        self.plan({"ddp-fp16-seed-1": ["diverged"]})
        for _ in range(2):
            result = self.sweep()
            self.assertEqual(result.returncode, 3, result.stdout)
            self.assertIn("diverged: ddp-fp16-seed-1", result.stdout)
        self.assertEqual([call["name"] for call in self.started()], NAMES)

    def test_other_settings_in_the_same_folder_are_refused(self):
        self.assertEqual(self.sweep("--only", "ddp-fp16*").returncode, 0)
        result = self.sweep("--set", "epochs=3")
        self.assertEqual(result.returncode, 2, result.stdout)
        self.assertIn("epochs = 2, but this sweep asks for 3", result.stdout)
        self.assertEqual(
            self.sweep("--set", "threads=2", "--set", "data_dir=/elsewhere").returncode, 0
        )

    def test_what_to_do_on_divergence_matters_to_diverged_runs_only(self):
        self.write("base.json", {**BASE, "on_divergence": "stop", "save_weights": False})
        self.assertEqual(self.sweep("--only", "ddp-fp16*").returncode, 0)
        other = ("--set", "on_divergence=continue", "--set", "save_weights=true", "--only", "ddp-*")
        self.assertEqual(self.sweep(*other).returncode, 0)
        self.plan({"paper-rank-1-seed-1": ["diverged"]})
        self.assertEqual(self.sweep("--only", "paper-rank-1*").returncode, 3)
        result = self.sweep("--only", "paper-rank-1*", "--set", "on_divergence=continue")
        self.assertEqual(result.returncode, 2, result.stdout)
        self.assertIn('on_divergence = "stop", but this sweep asks for "continue"', result.stdout)

    # ---- signals, and two at once

    def test_a_signal_stops_the_run_and_the_same_command_goes_on(self):
        for number, name in ((signal.SIGINT, NAMES[0]), (signal.SIGTERM, NAMES[1])):
            with self.subTest(signal=number):
                self.plan({name: ["waits"]})
                process = self.start()
                self.wait_for(self.output / name / "waiting")
                process.send_signal(number)
                text, _ = process.communicate(timeout=30)
                self.assertEqual(process.returncode, 75, text)
                self.assertIn("The same command goes on from here", text)
                self.assertEqual(self.status_of(name), "interrupted")
                self.assertEqual(self.started()[-1]["name"], name)
        self.assertEqual(self.sweep().returncode, 0)
        resumed = [call["name"] for call in self.started() if call["resume"]]
        self.assertEqual(resumed, NAMES[:2])

    def test_a_run_that_ignores_the_signal_is_ended(self):
        self.plan({NAMES[0]: ["ignores signals"]})
        process = self.start("--grace", "1")
        self.wait_for(self.output / NAMES[0] / "waiting")
        begin = time.monotonic()
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        text, _ = process.communicate(timeout=40)
        self.assertLess(time.monotonic() - begin, 25)
        self.assertEqual(process.returncode, 75, text)
        self.assertEqual(self.status_of(NAMES[0]), "running")

    def test_two_sweeps_do_not_share_a_folder(self):
        self.plan({NAMES[0]: ["waits"]})
        first = self.start()
        self.wait_for(self.output / NAMES[0] / "waiting")
        second = self.sweep()
        self.assertEqual(second.returncode, 2, second.stdout)
        self.assertIn("in use by another sweep", second.stdout)
        first.kill()  # its run lives on, and holds the lock
        first.wait()
        self.assertEqual(self.sweep().returncode, 2)
        self.end_orphan()
        self.assertEqual(self.sweep().returncode, 0)

    def end_orphan(self):
        """Ends the one process that still works in this test's folder."""
        for entry in pathlib.Path("/proc").iterdir():
            try:
                words = (
                    (entry / "cmdline").read_bytes().decode().split("\0")
                    if entry.name.isdigit()
                    else []
                )
            except OSError:
                continue
            if (
                str(self.output / NAMES[0]) in words
                and "train" in words
                and "fake_bench.py" in words[1]
            ):
                os.kill(int(entry.name), signal.SIGUSR1)
        for _ in range(200):
            with open(self.output / ".sweep.lock", encoding="utf-8") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                except OSError:
                    time.sleep(0.05)
        self.fail("the run that outlived its sweep did not end")

    # ---- bad input

    def test_no_program(self):
        result = self.sweep("--program", str(self.folder / "nothing"))
        self.assert_usage_error(result, "no program at")

    def test_no_run_matches(self):
        self.assert_usage_error(self.sweep("--only", "top-k*"), "no run matches --only top-k*")

    def test_bad_settings(self):
        self.assert_usage_error(self.sweep("--set", "epochs"), "KEY=VALUE, found 'epochs'")
        self.assert_usage_error(
            self.sweep("--set", "epochs=1", "--set", "epochs=2"), "gives 'epochs' twice"
        )
        self.assert_usage_error(self.sweep("--set", "seed=3"), "the sweep file sets it")
        self.assert_usage_error(
            self.sweep("--set", "n_workers=none"), "'n_workers' must be a positive integer"
        )

    def test_bad_sweep_files(self):
        good = {"base": "base.json", "seeds": [1], "experiments": GRID}
        for value, text in [
            ("{", "not valid JSON"),
            ("[]", "expected a JSON object"),
            ('{"base": "base.json", "base": "b"}', "the key 'base' is there twice"),
            (
                {**good, "seed": 1},
                "unknown key 'seed'; known are base, description, experiments, seeds, set",
            ),
            ({**good, "base": "none.json"}, "none.json: No such file"),
            ({**good, "base": 1}, "'base' must name"),
            ({**good, "seeds": []}, "seeds: expected a list with at least one int"),
            ({**good, "seeds": [True]}, "seeds: expected"),
            ({**good, "seeds": [1, 1]}, "two runs would be called 'ddp-full-precision-seed-1'"),
            ({**good, "experiments": GRID + GRID[:1]}, "two runs would be called"),
            ({**good, "experiments": []}, "experiments: expected a list"),
            (
                {**good, "experiments": [{"implementation": "DDP", "schemes": ["fp16"]}]},
                "'implementation' must be one",
            ),
            ({**good, "experiments": [{"implementation": "Paper"}]}, "schemes: expected a list"),
            (
                {**good, "experiments": [{"implementation": "Paper", "schemes": [{"name": "a"}]}]},
                "'scheme' is missing",
            ),
            (
                {
                    **good,
                    "experiments": [
                        {"implementation": "Paper", "schemes": [{"scheme": "a", "name": "{b}"}]}
                    ],
                },
                "'name' may use",
            ),
            (
                {
                    **good,
                    "experiments": [{"implementation": "Paper", "schemes": [{"scheme": "a/b"}]}],
                },
                "name of a folder",
            ),
            (
                {
                    **good,
                    "experiments": [
                        {
                            "implementation": "Paper",
                            "schemes": [{"scheme": "a", "scheme_options": 1}],
                        }
                    ],
                },
                "expected an object, found 1",
            ),
        ]:
            with self.subTest(text=text):
                self.write("sweep.json", value)
                self.assert_usage_error(self.sweep(), text)


if __name__ == "__main__":
    unittest.main()
