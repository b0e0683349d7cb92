"""Whatever is wrong with what a run is given: one clear message, from worker 0, and all workers end within seconds."""

import json
import os
import pathlib
import shutil
import tempfile
import time
import unittest

from jobs import FAILED, FINISHED, USAGE, JobTest, error_lines, run
from program import EXPERIMENTS, LAUNCH, PATIENCE, PROGRAM, command

LIMIT_SECONDS = 60 * PATIENCE
RECORD = 1 + 3 * 32 * 32
FILE_BYTES = 10000 * RECORD
# To root every file is readable, unless it gives that privilege up.
WITHOUT_PRIVILEGE = (
    ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
)


class BadInputTest(JobTest):
    def refused(self, status, parts, *layers, config=None, arguments=(), before=()):
        """Two workers are given it; returns the message."""
        folder = self.path / f"run-{time.monotonic_ns()}"
        line = command(2, folder, *layers)
        if config is not None:
            line = [
                str(LAUNCH),
                "2",
                str(PROGRAM),
                "train",
                "--output",
                str(folder),
                "--config",
                str(config),
                "--set",
                "n_workers=2",
            ]
        start = time.monotonic()
        process = run([*before, *line, *arguments])
        self.assertLess(time.monotonic() - start, LIMIT_SECONDS)
        self.assert_status(process, status)
        message = self.assert_one_message(process, *parts)
        self.assertFalse(folder.exists(), "nothing has happened that is worth a folder")
        return message


class DataTest(BadInputTest):
    """CIFAR-10's files, all zeros: they take no space, and label 0 is a label."""

    @classmethod
    def setUpClass(cls):
        shared = tempfile.TemporaryDirectory()
        cls.addClassCleanup(shared.cleanup)
        cls.good = pathlib.Path(shared.name)
        for name in [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]:
            with open(cls.good / name, "wb") as file:
                file.truncate(FILE_BYTES)

    def spoiled(self, status, parts, name, spoil, before=()):
        data = self.path / f"data-{time.monotonic_ns()}"
        data.mkdir()
        for file in self.good.iterdir():
            (data / file.name).symlink_to(file)
        if name:
            (data / name).unlink()
            spoil(data / name)
        return self.refused(
            status,
            parts,
            {"dataset": "cifar10", "data_dir": str(data), "train_images": 64},
            before=before,
        )

    @staticmethod
    def of_size(size):
        def make(path):
            with open(path, "wb") as file:
                file.truncate(size)

        return make

    def with_label(self, record, label):
        def make(path):
            self.of_size(FILE_BYTES)(path)
            with open(path, "r+b") as file:
                file.seek(record * RECORD)
                file.write(bytes([label]))

        return make

    def test_good_files_are_taken(self):
        data = {"dataset": "cifar10", "data_dir": str(self.good), "train_images": 64, "epochs": 1}
        self.assert_status(run(command(2, self.path / "run", EXPERIMENTS[5], data)), FINISHED)

    def test_damaged_files(self):
        cases = {
            "cut": (
                ("data_batch_3.bin has 30729999 bytes, but should have 30730000", "it is cut"),
                "data_batch_3.bin",
                self.of_size(FILE_BYTES - 1),
            ),
            "empty": (("test_batch.bin has 0 bytes",), "test_batch.bin", self.of_size(0)),
            "too long": (
                ("data_batch_5.bin has 30733073 bytes", "too long"),
                "data_batch_5.bin",
                self.of_size(FILE_BYTES + RECORD),
            ),
            "missing": (
                ("data_batch_2.bin", "No such file"),
                "data_batch_2.bin",
                lambda path: None,
            ),
            "folder": (
                ("data_batch_1.bin", "it is a folder, but a file was expected"),
                "data_batch_1.bin",
                lambda path: path.mkdir(),
            ),
            "pipe": (("data_batch_1.bin", "not a regular file"), "data_batch_1.bin", os.mkfifo),
            "label": (
                ("data_batch_4.bin: record 9999", "has label 10, but labels are 0 to 9"),
                "data_batch_4.bin",
                self.with_label(9999, 10),
            ),
        }
        for case, (parts, name, spoil) in cases.items():
            with self.subTest(case):
                self.spoiled(FAILED, parts, name, spoil)

    def test_an_unreadable_file(self):
        def make(path):
            self.of_size(FILE_BYTES)(path)
            path.chmod(0)

        self.spoiled(
            FAILED,
            ("data_batch_2.bin", "Permission denied"),
            "data_batch_2.bin",
            make,
            before=WITHOUT_PRIVILEGE,
        )

    def test_no_such_folder(self):
        self.refused(
            FAILED,
            ("neither /nowhere nor its subfolder",),
            {"dataset": "cifar10", "data_dir": "/nowhere"},
        )
        self.refused(FAILED, ("data set cifar10 needs data_dir",), {"dataset": "cifar10"})

    def test_fashion_mnist_that_is_none(self):
        data = self.path / "fashion"
        data.mkdir()
        for name in (
            "train-images-idx3-ubyte",
            "train-labels-idx1-ubyte",
            "t10k-images-idx3-ubyte",
            "t10k-labels-idx1-ubyte",
        ):
            (data / name).write_bytes(b"\0" * 5000)
        self.refused(
            FAILED,
            ("train-images-idx3-ubyte",),
            {"dataset": "fashion-mnist", "data_dir": str(data)},
        )


class ConfigTest(BadInputTest):
    def test_files(self):
        cases = {
            '{"learning_rat": 0.1}': ("unknown key 'learning_rat'", "learning_rate"),
            '{"epochs": 1, "epochs": 2}': ("the key 'epochs' stands twice",),
            '{"epochs": "many"}': ("'epochs' must be a whole number", '"many"'),
            '{"epochs": 1.5}': ("'epochs' must be a whole number", "1.5"),
            '{"augment": 1}': ("'augment' must be true or false",),
            '{"decay_epochs": 3}': ("'decay_epochs' must be",),
            '{"learning_rate": NaN}': ("config.json: parse error",),
            '{"learning_rate": 1e999}': ("config.json",),
            '{"learning_rate": -0.1}': ("'learning_rate' is -0.1, but must lie in",),
            '{"learning_rate": 1e9}': ("'learning_rate' is 1000000000.0, but must lie in", "1000"),
            '{"batch_size": 0}': ("'batch_size' is 0, but must lie in",),
            '{"epochs": 99999999999999999999}': ("'epochs' must be a whole number",),
            '{"scheme": "topk"}': ("scheme 'topk'",),
            '{"implementation": "paper"}': (
                "'implementation' is \"paper\", which it cannot be",
                "Paper",
            ),
            '{"extends": "config.json"}': ("goes round in a circle",),
            "[1, 2]": ("expected a JSON object",),
            '{"epochs": 1': ("parse error",),
            "\0\0\0": ("parse error",),
            "": ("parse error",),
        }
        config = self.path / "config.json"
        for text, parts in cases.items():
            with self.subTest(text):
                config.write_text(text)
                self.refused(USAGE, ("config.json", *parts), config=config)

    def test_no_file(self):
        self.refused(USAGE, ("there is no such file",), config=self.path / "nothing.json")
        self.refused(USAGE, ("expected a file, found a folder",), config=self.path)

    def test_contradictions(self):
        cases = (
            ({"train_images": 1}, ("n_workers is 2, but there are only 1 training images",)),
            (
                {"batch_size": 129},
                ("batch_size is 129", "256 training images over 2 workers is 128"),
            ),
            (
                {"dataset": "synthetic", "train_images": 0, "batch_size": 5000},
                ("batch_size is 5000",),
            ),
            ({"batches_per_epoch": 33}, ("batches_per_epoch is 33", "only 32 whole batches")),
            ({"decay_epochs": [1, 2]}, ("decay_epochs holds 2, but the last of 2 epochs is 1",)),
            ({"implementation": "Paper", "scheme": "fp16"}, ("exists in PyTorch DDP only",)),
            ({"scheme": "full-precision", "scheme_options.rank": 2}, ("rank",)),
            ({"scheme": "powersgd", "scheme_options.rank": 0}, ("rank", "0")),
            ({"scheme": "powersgd", "scheme_options.start_iteration": 1}, ("must be at least 2",)),
            ({"device": "cuda"}, ("device is 'cuda'",)),
            ({"n_workers": 3}, ("for 3 workers, but the launcher started 2",)),
            ({"model": "resnet81"}, ("model 'resnet81' does not exist", "resnet18")),
            ({"dataset": "cifar"}, ("dataset 'cifar' does not exist",)),
        )
        for layer, parts in cases:
            with self.subTest(layer):
                self.refused(USAGE, parts, layer)


class CommandLineTest(BadInputTest):
    def refused_line(self, parts, *arguments):
        process = run([str(LAUNCH), "2", str(PROGRAM), *arguments])
        self.assert_status(process, USAGE)
        for part in parts:
            self.assertEqual(process.stderr.count(part), 1, process.stderr)
        self.assertEqual(error_lines(process), [])

    def test_mistyped_options(self):
        output = str(self.path / "run")
        self.refused_line(("--outptu",), "train", "--outptu", output, "--output", output)
        self.refused_line(("--output is required",), "train")
        self.refused_line(("--epohcs",), "train", "--output", output, "--epohcs", "3")
        self.refused_line(("A subcommand is required",))
        self.assertFalse((self.path / "run").exists())

    def test_mistyped_settings(self):
        for setting, part in (
            ("epohcs=3", "unknown key 'epohcs'"),
            ("epochs", "expected key=value"),
            ("=3", "expected key=value"),
            ("learning_rate=nan", "'learning_rate' must be a number"),
            ("seed=-1", "'seed' is -1, but must lie in"),
        ):
            with self.subTest(setting):
                self.refused(USAGE, (part,), arguments=("--set", setting))

    def test_output(self):
        file = self.path / "file"
        file.write_text("not a folder")
        for output, status, part in (
            (file, FAILED, "file"),
            (self.path / "file" / "run", FAILED, "file/run"),
            (self.path, USAGE, "never overwritten"),
            ("", USAGE, "no output folder"),
        ):
            with self.subTest(output):
                process = run(command(2, output))
                self.assert_status(process, status)
                self.assert_one_message(process, part)
        self.assertEqual(file.read_text(), "not a folder")

    def test_help_comes_once(self):
        process = run([str(LAUNCH), "2", str(PROGRAM), "train", "--help"])
        self.assert_status(process, FINISHED)
        self.assertEqual(process.stdout.count("--resume"), 1)


class ExportTest(JobTest):
    def export(self, status, parts, *places):
        out = self.path / "export"
        process = run([str(PROGRAM), "export", *map(str, places), "--out", str(out)])
        self.assert_status(process, status)
        self.assert_one_message(process, *parts)
        self.assertFalse(out.exists())

    def test_what_cannot_be_exported(self):
        runs = self.path / "runs"
        runs.mkdir()
        self.export(USAGE, ("there is no run",), runs)
        self.export(USAGE, ("found nothing",), self.path / "nowhere")
        self.assert_status(run(command(1, runs / "one", EXPERIMENTS[5], {"epochs": 1})), FINISHED)

        shutil.copytree(runs / "one", runs / "again")
        self.export(USAGE, ("two runs have the name 'one'", "again"), runs)
        shutil.rmtree(runs / "again")

        record = json.loads((runs / "one" / "run.json").read_text())
        (runs / "one" / "run.json").write_text(json.dumps(record | {"schema_version": 2}))
        self.export(FAILED, ("its schema_version is 2, this program reads up to 1",), runs)
        (runs / "one" / "run.json").write_text("[]")
        self.export(FAILED, ("expected a JSON object",), runs)
        (runs / "one" / "run.json").write_text('{"schema_version": 1, "status"')
        self.export(FAILED, ("run.json",), runs)

        (runs / "one" / "run.json").write_text(json.dumps(record))
        (runs / "one" / "metrics.jsonl").write_text('{"epoch": 1\n{"epoch": 2}\n')
        self.export(FAILED, ("metrics.jsonl, line 1",), runs)


if __name__ == "__main__":
    unittest.main()
