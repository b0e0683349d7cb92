"""One worker fails: the whole job ends soon, with one message, and the files say what happened."""

import os
import signal
import subprocess
import time
import unittest

from jobs import (
    FAILED,
    FINISHED,
    HOST,
    INTERRUPTED,
    USAGE,
    JobTest,
    error_lines,
    faulty_command,
    run,
    strict_json,
    wait_until,
    whole_lines,
)
from program import PATIENCE, command, read_run

LIMIT_SECONDS = 30 * PATIENCE
PHASES = {
    "load": "loading",
    "forward": "forward and backward",
    "reduce": "forward and backward",
    "test": "test",
}
# In mid-step is the third step: PyTorch DDP has its final buckets by then.
NUMBERS = {"load": 1, "forward": 3, "reduce": 3, "test": 1}
TOLD = {
    "throw": "the fault that was asked for",
    "throw_int": "an exception that is no std::exception",
    "exit": "exit() was called in the middle of the run",
    "vanish": "is gone",
    "kill": "is gone",
    "stall": "no progress for 5 s",
}


class FailureTest(JobTest):
    def fails(self, place, action, worker=1, workers=3, implementation="PyTorch DDP"):
        folder = self.path / f"{place}-{action}-{worker}"
        settings = {
            "implementation": implementation,
            "scheme": "faulty",
            "watchdog_seconds": 5,
            "test_batch_size": 5,
        }
        start = time.monotonic()
        process = run(
            faulty_command(workers, folder, settings), f"{place} {action} {worker} {NUMBERS[place]}"
        )
        self.assertLess(time.monotonic() - start, LIMIT_SECONDS)
        self.assertNotIn(process.returncode, (FINISHED, USAGE, INTERRUPTED), process.stderr)
        message = self.assert_one_message(
            process, f"worker {worker} on {HOST}", f"in phase '{PHASES[place]}'", TOLD[action]
        )
        record = strict_json((folder / "run.json").read_text())
        self.assertEqual(record["status"], "failed")
        self.assertEqual("error: " + record["message"], message)
        self.assertIsNotNone(record["ended"])
        self.assertEqual(
            {p.name for p in folder.iterdir()}, {"run.json", "metrics.jsonl", "batches.jsonl"}
        )
        lines = whole_lines(folder / "batches.jsonl")
        self.assertEqual([line["step"] for line in lines], list(range(1, len(lines) + 1)))
        self.assertEqual(len(lines) > 0, place != "load", "lines from before the failure are kept")
        whole_lines(folder / "metrics.jsonl")
        return process

    def each_place(self, action):
        for place in NUMBERS:
            with self.subTest(place):
                self.fails(place, action)

    def test_throws(self):
        self.each_place("throw")

    def test_exits(self):
        self.each_place("exit")

    def test_is_killed(self):
        self.each_place("kill")

    def test_stalls(self):
        self.each_place("stall")

    def test_worker_0_fails(self):
        for place, action in (
            ("load", "throw"),
            ("forward", "kill"),
            ("reduce", "stall"),
            ("test", "vanish"),
        ):
            with self.subTest(place=place, action=action):
                self.fails(place, action, worker=0)

    def test_in_the_papers_loop(self):
        for place, action in (
            ("reduce", "throw"),
            ("reduce", "exit"),
            ("reduce", "kill"),
            ("forward", "stall"),
        ):
            with self.subTest(place=place, action=action):
                self.fails(place, action, implementation="Paper", workers=2)

    def test_throws_what_is_no_exception(self):
        self.fails("reduce", "throw_int")
        self.fails("forward", "throw_int")

    def test_freezes(self):
        """Its own watchdog does not run either: one of those that wait for it speaks."""
        folder = self.path / "frozen"
        start = time.monotonic()
        process = run(faulty_command(3, folder, {"watchdog_seconds": 5}), "forward freeze 1 3")
        self.assertLess(time.monotonic() - start, LIMIT_SECONDS)
        self.assert_status(process, FAILED)
        self.assert_one_message(
            process,
            f" on {HOST}",
            "in phase 'forward and backward'",
            "no progress for 10 s",
            "it waits for another worker",
        )
        self.assertEqual(read_run(folder)["status"], "failed")

    def test_ended_by_the_launcher(self):
        """The second signal to launch.sh ends mpirun, which sends SIGTERM to the workers and then kills them."""
        folder = self.path / "ended"
        process = subprocess.Popen(
            faulty_command(2, folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "PSGD_FAULT": "forward stall -1 3",
                "PSGD_MPIRUN_ARGS": "--mca odls_base_sigkill_timeout 5",
            },
        )
        lines = folder / "batches.jsonl"
        self.assertTrue(wait_until(lambda: lines.exists() and lines.stat().st_size > 0, 120))
        process.send_signal(signal.SIGTERM)
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=120 * PATIENCE)
        self.assertNotIn(process.returncode, (FINISHED, INTERRUPTED), stderr)
        record = read_run(folder)
        self.assertEqual(record["status"], "failed")
        self.assertIn(
            "ended by the launcher (SIGTERM), in phase 'forward and backward'", record["message"]
        )

    def test_all_workers_fail_at_once(self):
        folder = self.path / "all"
        process = run(faulty_command(4, folder, {"scheme": "faulty"}), "forward throw -1 3")
        self.assert_status(process, FAILED)
        self.assert_one_message(process, "in phase 'forward and backward'", TOLD["throw"])
        self.assertEqual(read_run(folder)["status"], "failed")

    def test_all_fail_to_load(self):
        """What nobody can load is a mistake in what the run was told: no folder is left behind."""
        folder = self.path / "all"
        process = run(faulty_command(2, folder), "load throw -1 1")
        self.assert_status(process, FAILED)
        self.assertEqual(error_lines(process), ["error: " + TOLD["throw"]])
        self.assertFalse(folder.exists())

    def test_a_data_file_is_cut_meanwhile(self):
        """Every worker that reads what is gone gets a SIGBUS: not the end, but one message."""
        data = self.path / "data"
        data.mkdir()
        names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
        for name in names:
            (data / name).touch()
            os.truncate(data / name, 10000 * 3073)
        folder = self.path / "run"
        layer = {
            "dataset": "cifar10",
            "data_dir": str(data),
            "train_images": 0,
            "batches_per_epoch": 0,
            "model": "linear",
        }
        process = subprocess.Popen(
            command(3, folder, layer), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        lines = folder / "batches.jsonl"
        self.assertTrue(wait_until(lambda: lines.exists() and lines.stat().st_size > 0, 120))
        for name in names:
            os.truncate(data / name, 3073)
        _, stderr = process.communicate(timeout=120 * PATIENCE)
        process.stderr = stderr
        self.assert_status(process, FAILED)
        self.assert_one_message(
            process, f" on {HOST}", "data_batch_", "it was cut, or its disk failed"
        )
        self.assertEqual(read_run(folder)["status"], "failed")

    def test_fails_after_going_on(self):
        """A second failure is told as the first one was."""
        folder = self.path / "run"
        settings = {"scheme": "faulty", "checkpoint_every_epochs": 1}
        run(faulty_command(2, folder, settings), "forward kill 1 7")
        process = run(faulty_command(2, folder, settings, flags=("--resume",)), "reduce throw 1 2")
        self.assert_status(process, FAILED)
        self.assert_one_message(process, f"worker 1 on {HOST}", TOLD["throw"])
        record = read_run(folder)
        self.assertEqual(record["status"], "failed")
        self.assertIn(TOLD["throw"], record["message"])
        self.assertEqual(record["resumed"][0]["status_before"], "failed")


if __name__ == "__main__":
    unittest.main()
