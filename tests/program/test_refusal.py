"""What --resume cannot go on from is refused, and nothing is changed."""

import fcntl
import hashlib
import json
import pathlib
import shutil
import sys
import tempfile
import time
import unittest
import zipfile

from jobs import FAILED, FINISHED, INTERRUPTED, USAGE, JobTest, faulty_command, run
from program import EXPERIMENTS, PATIENCE, ROOT, read_run

sys.path.insert(0, str(ROOT / "scripts"))
import sweep_state  # noqa: E402


def files_of(folder):
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


def checkpoint_of(folder):
    return next((folder / "checkpoint").iterdir())


def rename_part(folder, file, old, new):
    """Gives a part of the saved state another name, in a file that is otherwise as it should be."""
    path = checkpoint_of(folder) / file
    with zipfile.ZipFile(path) as archive:
        members = [(member, archive.read(member)) for member in archive.namelist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members:
            archive.writestr(
                name,
                content.replace(old.encode(), new.encode())
                if name.endswith("data.pkl")
                else content,
            )
    manifest = checkpoint_of(folder) / "manifest.json"
    record = json.loads(manifest.read_text())
    content = path.read_bytes()
    entry = record["shared"] if file == "shared.pt" else record["files"][int(file[len("worker-")])]
    entry |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
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
        self.assertLess(time.monotonic() - start, 60 * PATIENCE)
        self.assert_status(process, status)
        message = self.assert_one_message(process, *parts)
        self.assertEqual(files_of(folder), before)
        return message

    def test_another_number_of_workers(self):
        self.refused(USAGE, "is of 2 workers, but 3 were started", workers=3)

    def test_another_configuration(self):
        self.refused(
            USAGE,
            "another configuration",
            "learning_rate is 0.02 here, 0.01 in the checkpoint",
            'scheme_options is {"batch',
            '"rank":1',
            '"rank":2',
            layer={"learning_rate": 0.02, "scheme_options.rank": 1},
        )

    def test_what_may_differ_is_no_reason_but_being_finished_is(self):
        folder = self.copy()
        self.assert_status(
            self.resume(folder, layer={"check_every": 1, "wait": "yield", "threads": 1}), FINISHED
        )
        before = files_of(folder)
        process = self.resume(folder)
        self.assert_status(process, USAGE)
        self.assert_one_message(process, "is finished already")
        self.assertEqual(files_of(folder), before)

    def test_what_may_differ_is_what_the_sweep_lets_differ(self):
        """Of a checkpoint in which every setting has another value, the refusal names those that matter."""

        def change_all(folder):
            manifest = checkpoint_of(folder) / "manifest.json"
            record = json.loads(manifest.read_text())
            record["config"] = {key: "another value" for key in record["config"]}
            manifest.write_text(json.dumps(record))

        settings = set(read_run(self.stopped)["config"])
        message = self.refused(USAGE, "another configuration", spoil=change_all)
        named = {key for key in settings if f" {key} is " in message}
        self.assertEqual(settings - named, sweep_state.FREE_SETTINGS)

    def test_a_cut_file(self):
        self.refused(
            FAILED,
            "worker 1 on",
            "worker-1.pt has 1000 bytes, but",
            "were written",
            spoil=lambda folder: (checkpoint_of(folder) / "worker-1.pt").write_bytes(b"x" * 1000),
        )

    def test_a_missing_file(self):
        self.refused(
            FAILED,
            "worker 1 on",
            "worker-1.pt is missing",
            spoil=lambda folder: (checkpoint_of(folder) / "worker-1.pt").unlink(),
        )
        self.refused(
            FAILED,
            "shared.pt is missing",
            spoil=lambda folder: (checkpoint_of(folder) / "shared.pt").unlink(),
        )

    def test_a_changed_byte(self):
        self.refused(
            FAILED,
            "worker 0 on",
            "worker-0.pt is not what was written",
            spoil=lambda folder: change_byte(checkpoint_of(folder) / "worker-0.pt"),
        )
        self.refused(
            FAILED,
            "shared.pt is not what was written",
            spoil=lambda folder: change_byte(checkpoint_of(folder) / "shared.pt"),
        )

    def test_a_missing_part(self):
        self.refused(
            FAILED,
            "step-1: it lacks 'trainer.step', which this run needs",
            spoil=lambda folder: rename_part(folder, "shared.pt", "trainer.step", "trainer.stop"),
        )
        self.refused(
            FAILED,
            "worker 1 on",
            "step-1: it lacks 'model.inner.bn1.running_mean', which this run needs",
            spoil=lambda folder: rename_part(
                folder,
                "worker-1.pt",
                "model.inner.bn1.running_mean",
                "model.inner.bn1.running_moon",
            ),
        )

    def test_a_damaged_manifest(self):
        def cut(folder):
            manifest = checkpoint_of(folder) / "manifest.json"
            manifest.write_bytes(manifest.read_bytes()[:100])

        self.refused(FAILED, "manifest.json is damaged", spoil=cut)
        self.refused(
            FAILED,
            "manifest.json is missing",
            spoil=lambda folder: (checkpoint_of(folder) / "manifest.json").unlink(),
        )

    def test_missing_lines(self):
        self.refused(
            FAILED,
            "batches.jsonl has 0 bytes, but",
            "lines are missing",
            spoil=lambda folder: (folder / "batches.jsonl").write_bytes(b""),
        )

    def test_no_checkpoint(self):
        self.refused(
            USAGE,
            "there is no checkpoint in",
            spoil=lambda folder: shutil.rmtree(folder / "checkpoint"),
        )

    def test_a_run_that_another_process_writes(self):
        def hold(folder):
            file = open(folder / "batches.jsonl", "rb")
            self.addCleanup(file.close)
            fcntl.flock(file, fcntl.LOCK_EX)

        self.refused(USAGE, "still going on", spoil=hold)


if __name__ == "__main__":
    unittest.main()
