"""A run that stops and goes on is the same, bit for bit, as one that never stopped; what does not fit is refused."""

import fcntl
import hashlib
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

from jobs import FAILED, FINISHED, INTERRUPTED, USAGE, JobTest, faulty_command, kill_all, run, wait_until
from program import EXPERIMENTS, PROGRAM, ROOT, SMALL, command, read_lines, read_run

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
        process = run(faulty_command(workers, folder, LENGTH, experiment, *layers,
                                     flags=("--resume",) if resume else ()), fault)
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
            lines = [json.loads(line, parse_float=str) for line in (folder / "batches.jsonl").read_text().splitlines()]
            return [{k: v for k, v in line.items() if k not in ("timed", "microseconds")} for line in lines]

        def metrics(folder):
            lines = [json.loads(line, parse_float=str) for line in (folder / "metrics.jsonl").read_text().splitlines()]
            return [{k: v for k, v in line.items() if k != "time"} for line in lines]

        one, other = read_run(straight), read_run(resumed)
        self.assertEqual(one["final"], other["final"])
        self.assertEqual(one["counters"], other["counters"])
        for key in ("steps", "bits", "collectives"):
            self.assertEqual(one["totals"][key], other["totals"][key])
        self.assertEqual(batches(straight), batches(resumed))
        self.assertEqual(metrics(straight), metrics(resumed))
        self.assertEqual([b["step"] for b in read_lines(resumed, "batches.jsonl")], list(range(1, 21)))
        self.assertEqual(other["status"], "finished")
        self.assertEqual(len(other["resumed"]), parts - 1)
        self.assertEqual(other["batches_timed"], 20 - parts, "each process's first batch is left out")
        times = [m["time"] for m in read_lines(resumed, "metrics.jsonl")]
        self.assertEqual(times, sorted(times))

    def test_every_experiment_stopped_in_mid_epoch(self):
        for number, experiment in enumerate(EXPERIMENTS):
            with self.subTest(experiment):
                workers = 3 if number in (3, 7) else 2
                folder = self.path / ident(experiment)
                stopped = self.go(INTERRUPTED, workers, folder, experiment, fault=f"{SLOW};forward stop 1 3")
                self.assertEqual(stopped["status"], "interrupted")
                step = stopped["totals"]["steps"]
                self.assertTrue(3 <= step < 10, step)
                self.assertEqual([p.name for p in (folder / "checkpoint").iterdir()], [f"step-{step}"])
                self.go(FINISHED, workers, folder, experiment, resume=True)
                self.assert_same(self.straight(workers, experiment), folder, parts=2)

    def test_stopped_again_and_again(self):
        """After the first step, at an epoch's end, and one step later."""
        for experiment, layers, rehearsal in ((EXPERIMENTS[3], (SMALL_BUCKETS,), 1), (EXPERIMENTS[7], (), 0)):
            with self.subTest(experiment):
                folder = self.path / ident(experiment)
                for start, last in ((0, 1), (1, 10), (10, 11)):
                    # The first forward pass of a process that resumes PyTorch DDP only rehearses.
                    call = last - start + (rehearsal if start else 0)
                    stopped = self.go(INTERRUPTED, 3, folder, experiment, *layers, fault=f"forward stop 2 {call}",
                                      resume=start > 0)
                    self.assertEqual(stopped["totals"]["steps"], last)
                self.go(FINISHED, 3, folder, experiment, *layers, resume=True)
                self.assert_same(self.straight(3, experiment, *layers), folder, parts=4)

    def test_small_buckets_find_their_layout_again(self):
        for experiment in (EXPERIMENTS[1], EXPERIMENTS[3]):
            with self.subTest(experiment):
                folder = self.path / ident(experiment)
                self.go(INTERRUPTED, 2, folder, experiment, SMALL_BUCKETS, fault=f"{SLOW};forward stop 0 3")
                self.go(FINISHED, 2, folder, experiment, SMALL_BUCKETS, resume=True)
                self.assert_same(self.straight(2, experiment, SMALL_BUCKETS), folder, parts=2)

    def test_killed_in_mid_epoch(self):
        for experiment in (EXPERIMENTS[1], EXPERIMENTS[3], EXPERIMENTS[7]):
            with self.subTest(experiment):
                folder = self.path / ident(experiment)
                process = run(faulty_command(2, folder, LENGTH, experiment, {"checkpoint_every_epochs": 1}),
                              f"{SLOW};forward kill 1 19")
                self.assertNotIn(process.returncode, (FINISHED, INTERRUPTED))
                self.assertGreater(read_lines(folder, "batches.jsonl")[-1]["step"], 10, "lines to be cut")
                with open(folder / "batches.jsonl", "a", encoding="utf-8") as file:
                    file.write('{"epoch": 2, "ste')  # a torn line
                resumed = self.go(FINISHED, 2, folder, experiment, {"checkpoint_every_epochs": 1}, resume=True)
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
        self.assertEqual(sorted(p.name for p in (folder / "checkpoint").iterdir()), ["step-1", "step-10"])
        self.assert_same(self.straight(2, EXPERIMENTS[0]), folder, parts=2)


class RealProgramTest(JobTest):
    """The program itself, stopped from outside."""

    # Long enough to be stopped on the way: workers meet at least every 50 batches.
    LONG = {"epochs": 2, "batches_per_epoch": 120, "train_images": 1000}

    def start(self, arguments):
        return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_signals_to_the_launcher(self):
        straight = self.path / "straight"
        self.assert_status(run(command(2, straight, self.LONG, EXPERIMENTS[3])), FINISHED)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            with self.subTest(number):
                folder = self.path / number.name
                process = self.start(command(2, folder, self.LONG, EXPERIMENTS[3]))
                lines = folder / "batches.jsonl"
                self.assertTrue(wait_until(lambda f=lines: f.exists() and f.stat().st_size > 0, 120))
                process.send_signal(number)
                _, stderr = process.communicate(timeout=120)
                self.assertEqual(process.returncode, INTERRUPTED, stderr[-3000:])
                self.assertEqual(read_run(folder)["status"], "interrupted")
                self.assert_status(run(command(2, folder, self.LONG, EXPERIMENTS[3], flags=("--resume",))), FINISHED)
                self.assertEqual(read_run(folder)["final"], read_run(straight)["final"])

    def test_a_signal_before_training_begins_is_not_lost(self):
        folder = self.path / "run"
        process = self.start(command(2, folder, self.LONG, EXPERIMENTS[3]))
        self.assertTrue(wait_until((folder / "run.json").exists, 120))
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=120)
        self.assertEqual(process.returncode, INTERRUPTED, stderr[-3000:])

    def sweep(self, **options):
        arguments = [sys.executable, str(ROOT / "scripts" / "sweep.py"), str(self.path / "sweep.json"), "--output",
                     str(self.path / "runs"), "--program", str(PROGRAM)]
        return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)

    def test_the_sweep_resumes_by_itself(self):
        base = {**SMALL, **self.LONG, "n_workers": 2, "checkpoint_every_epochs": 1}
        (self.path / "base.json").write_text(json.dumps(base))
        (self.path / "sweep.json").write_text(json.dumps({"base": "base.json", "experiments": [
            {"implementation": "Paper", "schemes": [{"scheme": "powersgd", "scheme_options": {"rank": 2}}]}]}))
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
        output, _ = sweep.communicate(timeout=120)
        self.assertEqual(sweep.returncode, INTERRUPTED, output)
        first = read_run(folder())["totals"]["steps"]

        sweep = self.sweep()
        self.assertTrue(wait_until(lambda: step() > 120, 120), "in the second epoch, behind the checkpoint")
        kill_all(str(self.path / "runs"))  # the machine is gone
        sweep.communicate(timeout=120)
        self.assertNotEqual(read_run(folder())["status"], "finished")

        output, _ = (sweep := self.sweep()).communicate(timeout=120)
        self.assertEqual(sweep.returncode, FINISHED, output)
        record = read_run(folder())
        self.assertEqual([part["step"] for part in record["resumed"]], [first, 120])
        self.assertEqual(record["final"], read_run(straight)["final"])


def files_of(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def checkpoint_of(folder):
    return next((folder / "checkpoint").iterdir())


def rename_part(folder, worker, old, new):
    """Gives a part of the saved state another name, in a file that is otherwise as it should be."""
    path = checkpoint_of(folder) / f"worker-{worker}.pt"
    with zipfile.ZipFile(path) as archive:
        members = [(member, archive.read(member)) for member in archive.namelist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members:
            archive.writestr(name, content.replace(old.encode(), new.encode()) if name.endswith("data.pkl") else content)
    manifest = checkpoint_of(folder) / "manifest.json"
    record = json.loads(manifest.read_text())
    content = path.read_bytes()
    record["files"][worker] |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    manifest.write_text(json.dumps(record))


def change_byte(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


class RefusalTest(JobTest):
    """Everything is refused with one message, within seconds, and nothing is changed."""

    SETUP = {"epochs": 2, "batches_per_epoch": 3, **EXPERIMENTS[3]}

    @classmethod
    def setUpClass(cls):
        shared = tempfile.TemporaryDirectory()
        cls.addClassCleanup(shared.cleanup)
        cls.stopped = pathlib.Path(shared.name) / "stopped"
        process = run(faulty_command(2, cls.stopped, cls.SETUP), "forward stop 0 1")
        assert process.returncode == INTERRUPTED, process.stderr

    def copy(self):
        folder = self.path / f"copy-{sum(1 for _ in self.path.iterdir())}"
        return pathlib.Path(shutil.copytree(self.stopped, folder))

    def resume(self, folder, workers=2, layer=()):
        return run(faulty_command(workers, folder, self.SETUP, dict(layer), flags=("--resume",)))

    def refused(self, status, *parts, spoil=lambda folder: None, workers=2, layer=()):
        folder = self.copy()
        spoil(folder)
        before = files_of(folder)
        start = time.monotonic()
        process = self.resume(folder, workers, layer)
        self.assertLess(time.monotonic() - start, 60)
        self.assert_status(process, status)
        self.assert_one_message(process, *parts)
        self.assertEqual(files_of(folder), before)

    def test_another_number_of_workers(self):
        self.refused(USAGE, "is of 2 workers, but 3 were started", workers=3)

    def test_another_configuration(self):
        self.refused(USAGE, "another configuration", "learning_rate is 0.02 here, 0.01 in the checkpoint",
                     'scheme_options is {"batch', '"rank":1', '"rank":2',
                     layer={"learning_rate": 0.02, "scheme_options.rank": 1})

    def test_what_may_differ_is_no_reason_but_being_finished_is(self):
        folder = self.copy()
        self.assert_status(self.resume(folder, layer={"check_every": 1, "wait": "yield", "threads": 1}), FINISHED)
        before = files_of(folder)
        process = self.resume(folder)
        self.assert_status(process, USAGE)
        self.assert_one_message(process, "is finished already")
        self.assertEqual(files_of(folder), before)

    def test_a_cut_file(self):
        self.refused(FAILED, "worker 1 on", "worker-1.pt has 1000 bytes, but", "were written",
                     spoil=lambda folder: (checkpoint_of(folder) / "worker-1.pt").write_bytes(b"x" * 1000))

    def test_a_missing_file(self):
        self.refused(FAILED, "worker 1 on", "worker-1.pt is missing",
                     spoil=lambda folder: (checkpoint_of(folder) / "worker-1.pt").unlink())

    def test_a_changed_byte(self):
        self.refused(FAILED, "worker 0 on", "worker-0.pt is not what was written",
                     spoil=lambda folder: change_byte(checkpoint_of(folder) / "worker-0.pt"))

    def test_a_missing_part(self):
        self.refused(FAILED, "worker 1 on", "step-1: it lacks 'trainer.step', which this run needs",
                     spoil=lambda folder: rename_part(folder, 1, "trainer.step", "trainer.stop"))

    def test_a_damaged_manifest(self):
        def cut(folder):
            manifest = checkpoint_of(folder) / "manifest.json"
            manifest.write_bytes(manifest.read_bytes()[:100])

        self.refused(FAILED, "manifest.json is damaged", spoil=cut)
        self.refused(FAILED, "manifest.json is missing",
                     spoil=lambda folder: (checkpoint_of(folder) / "manifest.json").unlink())

    def test_missing_lines(self):
        self.refused(FAILED, "batches.jsonl has 0 bytes, but", "lines are missing",
                     spoil=lambda folder: (folder / "batches.jsonl").write_bytes(b""))

    def test_no_checkpoint(self):
        self.refused(USAGE, "there is no checkpoint in", spoil=lambda folder: shutil.rmtree(folder / "checkpoint"))

    def test_a_run_that_another_process_writes(self):
        def hold(folder):
            file = open(folder / "batches.jsonl", "rb")
            self.addCleanup(file.close)
            fcntl.flock(file, fcntl.LOCK_EX)

        self.refused(USAGE, "still going on", spoil=hold)


if __name__ == "__main__":
    unittest.main()
