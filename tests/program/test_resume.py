"""A run that stops and goes on is the same, bit for bit, as one that never stopped."""

import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from jobs import FINISHED, INTERRUPTED, JobTest, faulty_command, kill_all, run, wait_until
from program import EXPERIMENTS, PATIENCE, PROGRAM, ROOT, SMALL, command, read_lines, read_run

LENGTH = {"epochs": 2, "batches_per_epoch": 10}
# A batch of 150 ms: workers then meet at least every 6 batches, so that a stop comes in mid-epoch.
SLOW = "forward slow -1 1"
# Buckets so small that there are several, and that PyTorch DDP's first layout differs from its final one.
SMALL_BUCKETS = {"bucket_mib": 0.05, "first_bucket_mib": 0.02}


def ident(experiment):
    return "-".join(str(value) for value in experiment.values()).replace(" ", "-")


class ResumeTest(JobTest):
    @classmethod
    def setUpClass(cls):
        shared = tempfile.TemporaryDirectory()
        cls.addClassCleanup(shared.cleanup)
        cls.shared = pathlib.Path(shared.name)

    def go(self, status, workers, folder, experiment, *layers, fault="", resume=False):
        process = run(
            faulty_command(
                workers, folder, LENGTH, experiment, *layers, flags=("--resume",) if resume else ()
            ),
            fault,
        )
        self.assert_status(process, status)
        return read_run(folder)

    def straight(self, workers, experiment, *layers):
        """A run that is not stopped; made once for all tests."""
        folder = self.shared / "-".join([str(workers), ident(experiment), *map(ident, layers)])
        if not folder.exists():
            self.go(FINISHED, workers, folder, experiment, *layers)
        return folder

    def assert_same(self, straight, resumed, parts):
        def batches(folder):
            # Numbers as they were written, not rounded by the reader.
            lines = [
                json.loads(line, parse_float=str)
                for line in (folder / "batches.jsonl").read_text().splitlines()
            ]
            return [
                {k: v for k, v in line.items() if k not in ("timed", "microseconds")}
                for line in lines
            ]

        def metrics(folder):
            lines = [
                json.loads(line, parse_float=str)
                for line in (folder / "metrics.jsonl").read_text().splitlines()
            ]
            return [{k: v for k, v in line.items() if k != "time"} for line in lines]

        one, other = read_run(straight), read_run(resumed)
        self.assertEqual(one["final"], other["final"])
        self.assertEqual(one["counters"], other["counters"])
        for key in ("steps", "bits", "collectives"):
            self.assertEqual(one["totals"][key], other["totals"][key])
        self.assertEqual(batches(straight), batches(resumed))
        self.assertEqual(metrics(straight), metrics(resumed))
        self.assertEqual(
            [b["step"] for b in read_lines(resumed, "batches.jsonl")], list(range(1, 21))
        )
        self.assertEqual(other["status"], "finished")
        self.assertEqual(len(other["resumed"]), parts - 1)
        self.assertEqual(
            other["batches_timed"], 20 - parts, "each process's first batch is left out"
        )
        times = [m["time"] for m in read_lines(resumed, "metrics.jsonl")]
        self.assertEqual(times, sorted(times))

    def test_every_experiment_stopped_in_mid_epoch(self):
        for number, experiment in enumerate(EXPERIMENTS):
            with self.subTest(experiment):
                workers = 3 if number in (3, 7) else 2
                folder = self.path / ident(experiment)
                stopped = self.go(
                    INTERRUPTED, workers, folder, experiment, fault=f"{SLOW};forward stop 1 3"
                )
                self.assertEqual(stopped["status"], "interrupted")
                step = stopped["totals"]["steps"]
                self.assertTrue(3 <= step < 10, step)
                self.assertEqual(
                    [p.name for p in (folder / "checkpoint").iterdir()], [f"step-{step}"]
                )
                self.go(FINISHED, workers, folder, experiment, resume=True)
                self.assert_same(self.straight(workers, experiment), folder, parts=2)

    def test_stopped_again_and_again(self):
        """After the first step, at an epoch's end, and one step later."""
        for experiment, layers, rehearsal in (
            (EXPERIMENTS[3], (SMALL_BUCKETS,), 1),
            (EXPERIMENTS[7], (), 0),
        ):
            with self.subTest(experiment):
                folder = self.path / ident(experiment)
                for start, last in ((0, 1), (1, 10), (10, 11)):
                    # The first forward pass of a process that resumes PyTorch DDP only rehearses.
                    call = last - start + (rehearsal if start else 0)
                    stopped = self.go(
                        INTERRUPTED,
                        3,
                        folder,
                        experiment,
                        *layers,
                        fault=f"forward stop 2 {call}",
                        resume=start > 0,
                    )
                    self.assertEqual(stopped["totals"]["steps"], last)
                self.go(FINISHED, 3, folder, experiment, *layers, resume=True)
                self.assert_same(self.straight(3, experiment, *layers), folder, parts=4)

    def test_small_buckets_find_their_layout_again(self):
        for experiment in (EXPERIMENTS[1], EXPERIMENTS[3]):
            with self.subTest(experiment):
                folder = self.path / ident(experiment)
                self.go(
                    INTERRUPTED,
                    2,
                    folder,
                    experiment,
                    SMALL_BUCKETS,
                    fault=f"{SLOW};forward stop 0 3",
                )
                self.go(FINISHED, 2, folder, experiment, SMALL_BUCKETS, resume=True)
                self.assert_same(self.straight(2, experiment, SMALL_BUCKETS), folder, parts=2)

    def test_killed_in_mid_epoch(self):
        for experiment in (EXPERIMENTS[1], EXPERIMENTS[3], EXPERIMENTS[7]):
            with self.subTest(experiment):
                folder = self.path / ident(experiment)
                process = run(
                    faulty_command(2, folder, LENGTH, experiment, {"checkpoint_every_epochs": 1}),
                    f"{SLOW};forward kill 1 19",
                )
                self.assertNotIn(process.returncode, (FINISHED, INTERRUPTED))
                self.assertGreater(
                    read_lines(folder, "batches.jsonl")[-1]["step"], 10, "lines to be cut"
                )
                with open(folder / "batches.jsonl", "a", encoding="utf-8") as file:
                    file.write('{"epoch": 2, "ste')  # a torn line
                resumed = self.go(
                    FINISHED, 2, folder, experiment, {"checkpoint_every_epochs": 1}, resume=True
                )
                self.assertEqual(resumed["resumed"][0]["step"], 10)
                self.assert_same(self.straight(2, experiment), folder, parts=2)

    def test_killed_after_an_epochs_end_was_written(self):
        """The checkpoint is of the epoch's last batch, before its lines in metrics.jsonl: they are written once."""
        folder = self.path / "run"
        often = {"checkpoint_every_minutes": 1e-6}
        run(faulty_command(2, folder, LENGTH, EXPERIMENTS[7], often), "forward kill 0 11")
        self.assertEqual(len(read_lines(folder, "metrics.jsonl")), 3)
        self.assertIn("step-10", [p.name for p in (folder / "checkpoint").iterdir()])
        self.assertLessEqual(len(list((folder / "checkpoint").iterdir())), 2)
        self.go(FINISHED, 2, folder, EXPERIMENTS[7], resume=True)
        self.assert_same(self.straight(2, EXPERIMENTS[7]), folder, parts=2)

    def test_killed_while_a_checkpoint_is_replaced(self):
        """What a killed process left of a checkpoint is neither used nor kept."""
        folder = self.path / "run"
        self.go(INTERRUPTED, 2, folder, EXPERIMENTS[0], fault="forward stop 0 1")
        partial = folder / "checkpoint" / "step-7.partial"
        partial.mkdir()
        (partial / "worker-0.pt").write_bytes(b"half of it")
        self.go(FINISHED, 2, folder, EXPERIMENTS[0], {"checkpoint_every_epochs": 1}, resume=True)
        self.assertEqual(
            sorted(p.name for p in (folder / "checkpoint").iterdir()), ["step-1", "step-10"]
        )
        self.assert_same(self.straight(2, EXPERIMENTS[0]), folder, parts=2)


class RealProgramTest(JobTest):
    """The program itself, stopped from outside."""

    # Long enough to be stopped on the way: workers meet at least every 50 batches.
    LONG = {"epochs": 2, "batches_per_epoch": 120, "train_images": 1000}

    def start(self, arguments):
        return subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def test_signals_to_the_launcher(self):
        straight = self.path / "straight"
        self.assert_status(run(command(2, straight, self.LONG, EXPERIMENTS[3])), FINISHED)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            with self.subTest(number):
                folder = self.path / number.name
                process = self.start(command(2, folder, self.LONG, EXPERIMENTS[3]))
                lines = folder / "batches.jsonl"
                self.assertTrue(
                    wait_until(lambda f=lines: f.exists() and f.stat().st_size > 0, 120)
                )
                process.send_signal(number)
                _, stderr = process.communicate(timeout=120 * PATIENCE)
                self.assertEqual(process.returncode, INTERRUPTED, stderr[-3000:])
                self.assertEqual(read_run(folder)["status"], "interrupted")
                self.assert_status(
                    run(command(2, folder, self.LONG, EXPERIMENTS[3], flags=("--resume",))),
                    FINISHED,
                )
                self.assertEqual(read_run(folder)["final"], read_run(straight)["final"])

    def test_a_signal_before_training_begins_is_not_lost(self):
        folder = self.path / "run"
        process = self.start(command(2, folder, self.LONG, EXPERIMENTS[3]))
        self.assertTrue(wait_until((folder / "run.json").exists, 120))
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=120 * PATIENCE)
        self.assertEqual(process.returncode, INTERRUPTED, stderr[-3000:])

    def sweep(self, **options):
        arguments = [
            sys.executable,
            str(ROOT / "scripts" / "sweep.py"),
            str(self.path / "sweep.json"),
            "--output",
            str(self.path / "runs"),
            "--program",
            str(PROGRAM),
        ]
        return subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
        )

    def test_the_sweep_resumes_by_itself(self):
        base = {**SMALL, **self.LONG, "n_workers": 2, "checkpoint_every_epochs": 1}
        (self.path / "base.json").write_text(json.dumps(base))
        (self.path / "sweep.json").write_text(
            json.dumps(
                {
                    "base": "base.json",
                    "experiments": [
                        {
                            "implementation": "Paper",
                            "schemes": [{"scheme": "powersgd", "scheme_options": {"rank": 2}}],
                        }
                    ],
                }
            )
        )
        straight = self.path / "straight"
        self.assert_status(run(command(2, straight, base, EXPERIMENTS[7])), FINISHED)

        def folder():
            runs = [p.parent for p in (self.path / "runs").glob("*/run.json")]
            return runs[0] if runs else None

        def step():
            lines = folder() / "batches.jsonl" if folder() else None
            return lines.read_text().count("\n") if lines and lines.exists() else 0

        sweep = self.sweep()
        self.assertTrue(wait_until(lambda: step() > 0, 120))
        sweep.send_signal(signal.SIGTERM)
        output, _ = sweep.communicate(timeout=120 * PATIENCE)
        self.assertEqual(sweep.returncode, INTERRUPTED, output)
        first = read_run(folder())["totals"]["steps"]

        sweep = self.sweep()
        self.assertTrue(
            wait_until(lambda: step() > 120, 120), "in the second epoch, behind the checkpoint"
        )
        kill_all(str(self.path / "runs"))  # the machine is gone
        sweep.communicate(timeout=120 * PATIENCE)
        self.assertNotEqual(read_run(folder())["status"], "finished")

        output, _ = (sweep := self.sweep()).communicate(timeout=120 * PATIENCE)
        self.assertEqual(sweep.returncode, FINISHED, output)
        record = read_run(folder())
        self.assertEqual([part["step"] for part in record["resumed"]], [first, 120])
        self.assertEqual(record["final"], read_run(straight)["final"])


if __name__ == "__main__":
    unittest.main()
