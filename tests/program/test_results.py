"""What was written stays readable: killed at any moment, on a full disk, with a loss that is not finite, and when many
start into one folder."""

import json
import os
import pathlib
import random
import re
import subprocess
import time
import unittest

from jobs import (
    DIVERGED,
    FAILED,
    FINISHED,
    USAGE,
    JobTest,
    error_lines,
    kill_all,
    run,
    strict_json,
    wait_until,
    whole_lines,
)
from program import EXPERIMENTS, PATIENCE, PROGRAM, command, read_run, settings

FILES = {"run.json", "metrics.jsonl", "batches.jsonl"}


def export(places, out):
    return run([str(PROGRAM), "export", *map(str, places), "--out", str(out)])


class ResultsTest(JobTest):
    def assert_readable(self, folder):
        """Whole records but for a torn last line, and an export that tells of it. Returns the number of batches."""
        batches = []
        for name in ("batches.jsonl", "metrics.jsonl"):
            if (folder / name).exists():
                lines = whole_lines(folder / name)
                batches = lines if name == "batches.jsonl" else batches
        self.assertEqual([line["step"] for line in batches], list(range(1, len(batches) + 1)))
        record = folder / "run.json"
        if not record.exists():
            self.assertEqual(batches, [])
            return 0
        if record.stat().st_size > 0:
            self.assertIn(
                strict_json(record.read_text())["status"], ("running", "failed", "finished")
            )
        torn = [
            name
            for name in ("batches.jsonl", "metrics.jsonl")
            if (folder / name).exists() and not ("\n" + (folder / name).read_text()).endswith("\n")
        ]
        process = export([folder], folder.with_name(folder.name + "-export"))
        self.assert_status(process, FINISHED)
        for name in torn:
            self.assertRegex(process.stderr, f"warning: .*{re.escape(name)}.*torn last line")
        strict_json((folder.with_name(folder.name + "-export") / "results.json").read_text())
        return len(batches)

    def test_killed_at_twenty_moments(self):
        draw = random.Random(1)
        layers = (
            EXPERIMENTS[3],
            {"epochs": 3, "batches_per_epoch": 30, "checkpoint_every_epochs": 1},
        )
        start = time.monotonic()
        self.assert_status(run(command(2, self.path / "whole", *layers)), FINISHED)
        whole = time.monotonic() - start
        in_training = 0
        for number in range(20):
            folder = self.path / f"run-{number}"
            process = subprocess.Popen(
                command(2, folder, *layers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            if (
                number >= 4
            ):  # most of a short run is its start: most of the moments are to be after it
                wait_until(lambda f=folder: (f / "batches.jsonl").exists(), 120)
                time.sleep(draw.random() * whole / 2)
            else:
                time.sleep(draw.random() * whole)
            kill_all(str(folder))
            process.wait(timeout=60 * PATIENCE)
            with self.subTest(number):
                in_training += self.assert_readable(folder) > 0
        self.assertGreater(in_training, 4, "or the test says little")
        resumed = 0
        for number in range(20):
            folder = self.path / f"run-{number}"
            if (
                resumed == 3
                or not (folder / "checkpoint").exists()
                or read_run(folder)["status"] == "finished"
            ):
                continue
            if not any("." not in p.name for p in (folder / "checkpoint").iterdir()):
                continue
            with self.subTest(resumed=number):
                self.assert_status(run(command(2, folder, *layers, flags=("--resume",))), FINISHED)
                self.assertEqual(read_run(folder)["final"], read_run(self.path / "whole")["final"])
            resumed += 1

    def test_a_torn_last_line_is_skipped_with_a_warning(self):
        folder = self.path / "run"
        self.assert_status(run(command(1, folder, EXPERIMENTS[5])), FINISHED)
        record = read_run(folder)  # as it was before the end
        (folder / "run.json").write_text(
            json.dumps(
                {k: v for k, v in record.items() if k != "batch_time"} | {"status": "running"}
            )
        )
        for name in ("batches.jsonl", "metrics.jsonl"):
            with open(folder / name, "a", encoding="utf-8") as file:
                file.write('{"epoch": 3, "st')
        self.assertEqual(self.assert_readable(folder), 10)

    def small_disk(self, size):
        place = self.path / "disk"
        place.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)],
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(
            mounted.returncode, 0, f"this test needs to mount a small disk: {mounted.stderr}"
        )
        self.addCleanup(subprocess.run, ["umount", "-l", str(place)], check=False)
        return place

    def test_a_full_disk(self):
        many = {
            "model": "linear",
            "batch_size": 1,
            "epochs": 20,
            "batches_per_epoch": 0,
            "test_images": 10,
        }
        place = self.small_disk("256k")
        for name, layer, parts in (
            (
                "lines",
                {**many, "train_images": 2000},
                ("worker 0 on", "in phase '", "batches.jsonl"),
            ),
            ("checkpoint", {"checkpoint_every_epochs": 1}, ("shared.pt",)),
        ):
            with self.subTest(name):
                folder = place / name
                process = run(command(2, folder, EXPERIMENTS[5], layer))
                self.assert_status(process, FAILED)
                self.assert_one_message(process, "No space left on device", *parts)
                record = strict_json((folder / "run.json").read_text())
                self.assertIn(record["status"], ("running", "failed"))
                lines = whole_lines(folder / "batches.jsonl")
                self.assertEqual([line["step"] for line in lines], list(range(1, len(lines) + 1)))
                self.assertGreater(len(lines), 100 if name == "lines" else 4)
                self.assertEqual(
                    (folder / "batches.jsonl").read_bytes()[-1:], b"\n", "cut back to whole lines"
                )
                self.assertEqual(
                    [p for p in folder.rglob("*") if p.name.endswith((".tmp", ".partial"))], []
                )
                exported = export([folder], self.path / f"export-{name}")
                self.assert_status(exported, FINISHED)
                # Space for the next.
                for path in sorted(folder.rglob("*"), reverse=True):
                    path.rmdir() if path.is_dir() else path.unlink()

    def test_a_disk_too_full_for_the_second_checkpoint(self):
        """The first one stays, and the run goes on from it once there is space."""
        place = self.small_disk("2500k")
        folder = place / "run"
        layers = (EXPERIMENTS[0], {"epochs": 3, "checkpoint_every_epochs": 1})
        process = run(command(2, folder, *layers))
        self.assert_status(process, FAILED)
        self.assert_one_message(process, "step-10", "No space left on device")
        self.assertEqual([p.name for p in (folder / "checkpoint").iterdir()], ["step-5"])
        subprocess.run(["mount", "-o", "remount,size=64m", str(place)], check=True)
        self.assert_status(run(command(2, folder, *layers, flags=("--resume",))), FINISHED)
        self.assertEqual(
            [line["step"] for line in whole_lines(folder / "batches.jsonl")], list(range(1, 16))
        )

    def diverging(self, name, on_divergence):
        folder = self.path / name
        process = run(
            command(
                2,
                folder,
                EXPERIMENTS[7],
                {
                    "learning_rate": 1000,
                    "warmup_epochs": 0,
                    "epochs": 3,
                    "batches_per_epoch": 20,
                    "on_divergence": on_divergence,
                    "name": name,
                },
            )
        )
        record = strict_json((folder / "run.json").read_text())
        self.assertEqual(record["status"], "diverged")
        self.assertEqual(record["message"], "the loss is not finite")
        batches = whole_lines(folder / "batches.jsonl")
        self.assertIn(None, [line["loss"] for line in batches])
        self.assertIsInstance(batches[0]["loss"], float)
        metrics = whole_lines(folder / "metrics.jsonl")
        return process, batches, metrics

    def test_a_diverged_run(self):
        process, batches, _ = self.diverging("stops", "stop")
        self.assert_status(process, DIVERGED)
        self.assertEqual(error_lines(process), [])
        self.assertLess(len(batches), 60)
        process, batches, metrics = self.diverging("goes-on", "continue")
        self.assert_status(process, FINISHED)
        self.assertEqual(len(batches), 60)
        self.assertIn(None, [line["loss"] for line in metrics])
        process = export([self.path], self.path / "export")
        self.assert_status(process, FINISHED)
        results = strict_json((self.path / "export" / "results.json").read_text())
        self.assertEqual(
            {name: job["status"] for name, job in results["jobs"].items()},
            {"stops": "diverged", "goes-on": "diverged"},
        )
        shown = {(entry["jobId"], entry["epoch"], entry["split"]) for entry in results["data"]}
        for line in metrics:
            if line["loss"] is None:
                self.assertNotIn(
                    ("goes-on", line["epoch"], line["split"]), shown, "a gap, not a number"
                )
        self.assertIn("diverged", process.stdout)

    def test_twenty_starts_into_one_folder(self):
        folder = self.path / "one"
        # Without a launcher: twenty of them would start at twenty different moments.
        arguments = [str(PROGRAM), "train", "--output", str(folder), *settings(1, EXPERIMENTS[5])]
        environment = {
            **os.environ,
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }
        processes = [
            subprocess.Popen(
                arguments,
                stderr=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                text=True,
                env=environment,
            )
            for _ in range(20)
        ]
        outputs = [process.communicate(timeout=300 * PATIENCE)[1] for process in processes]
        statuses = sorted(process.returncode for process in processes)
        self.assertEqual(statuses, [FINISHED] + [USAGE] * 19, outputs)
        for process, output in zip(processes, outputs):
            if process.returncode == USAGE:
                self.assertIn("never overwritten", output)
        self.assertEqual({p.name for p in folder.iterdir()}, FILES)
        self.assertEqual(read_run(folder)["status"], "finished")
        self.assertEqual(len(whole_lines(folder / "batches.jsonl")), 10)

    TINY = {
        "model": "linear",
        "epochs": 1,
        "batches_per_epoch": 1,
        "train_images": 64,
        "test_images": 16,
    }

    def assert_one_run(self, above):
        """One whole run in `above`/run and nothing else: no lock, no temporary file."""
        found = {str(p.relative_to(above)) for p in above.rglob("*")}
        self.assertEqual(found, {"run", *(f"run/{name}" for name in FILES)})
        self.assertEqual(read_run(above / "run")["status"], "finished")
        self.assertEqual(len(whole_lines(above / "run" / "batches.jsonl")), 1)
        self.assertEqual(len(whole_lines(above / "run" / "metrics.jsonl")), 3)

    def test_sixteen_workers_make_one_folder_twenty_times(self):
        for number in range(20):
            with self.subTest(number):
                above = self.path / f"new-{number}"
                process = run(command(16, above / "run", EXPERIMENTS[5], self.TINY))
                self.assert_status(process, FINISHED)
                self.assertEqual(error_lines(process), [])
                self.assert_one_run(above)
                self.assertEqual(len(read_run(above / "run")["machine"]["workers"]), 16)

    def test_two_jobs_into_one_folder(self):
        """Whichever comes first runs as if it were alone; the other says why it does not, once."""
        for number in range(5):
            with self.subTest(number):
                above = self.path / f"new-{number}"
                layers = (EXPERIMENTS[5], self.TINY)
                jobs = [
                    subprocess.Popen(
                        command(3, above / "run", *layers),
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                        text=True,
                    )
                    for _ in range(2)
                ]
                outputs = [job.communicate(timeout=300 * PATIENCE)[1] for job in jobs]
                self.assertEqual(sorted(job.returncode for job in jobs), [FINISHED, USAGE], outputs)
                refused = outputs[0 if jobs[0].returncode == USAGE else 1]
                errors = [line for line in refused.splitlines() if line.startswith("error:")]
                self.assertEqual(len(errors), 1, refused)
                self.assertIn("results are never overwritten", errors[0])
                self.assert_one_run(above)


if __name__ == "__main__":
    unittest.main()
