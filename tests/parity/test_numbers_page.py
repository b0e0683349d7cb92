"""harness/records/NUMBERS.md names every key that the files of real runs hold."""

import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "program"))
from program import EXPERIMENTS, PROGRAM, ROOT, command, read_lines, read_run, train

PAGE = ROOT / "harness" / "records" / "NUMBERS.md"
# Long enough to be interrupted.
LENGTH = {
    "batch_size": 32,
    "batches_per_epoch": 4,
    "epochs": 15,
    "test_every": 15,
    "checkpoint_every_epochs": 5,
}

# Members whose names are data, not keys: phases have a table of their own, and each scheme and data set names its own
# counters and options; the settings are defined by `powersgd-bench train --help`.
OPEN = {
    "run.json": {"config": None, "counters": None, "phases": "PHASE"},
    "batches.jsonl": {"microseconds": "PHASE"},
    "results.json": {"jobs": "JOB", "configs": "JOB"},
}
CONFIG_KEYS_OF_ITS_OWN = {"optimizer_reducer_rank", "fp16_compression", "label"}


def paths(value, names_are_data, prefix=""):
    """Dotted paths of all keys; lists are looked into."""
    if isinstance(value, list):
        return set().union(*(paths(one, names_are_data, prefix) for one in value))
    if not isinstance(value, dict):
        return set()
    found = set()
    for key, member in value.items():
        path = f"{prefix}{key}"
        found.add(path)
        if path in names_are_data:
            stand_in = names_are_data[path]
            if stand_in is not None:
                for name, inner in member.items():
                    found |= paths(inner, {}, f"{path}.{stand_in}.")
                    if stand_in == "PHASE":
                        found.add(f"{path}.PHASE:{name}")
        else:
            found |= paths(member, names_are_data, f"{path}.")
    return found


def section(page, heading):
    """From '## heading' to the next '## '."""
    match = re.search(rf"^## {re.escape(heading)}\b.*?(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    return match[0] if match else ""


def spans(text):
    return set(re.findall(r"`([^`]+)`", text))


def is_named(path, text):
    """`a.b`, or `b` on a line that has `a`; a top-level key as it is."""
    parts = [part for part in path.split(".") if part not in ("PHASE", "JOB")]
    key, parents = parts[-1], parts[:-1]
    if not parents:
        return key in spans(text)
    dotted = ".".join(parts)
    for line in text.splitlines():
        words = spans(line)
        if dotted in words:
            return True
        if key in words and any(".".join(parents[i:]) in words for i in range(len(parents))):
            return True
    return False


class NumbersPageTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = pathlib.Path(folder.name)
        cls.page = PAGE.read_text()
        cls.runs = [cls.interrupted_and_resumed("ddp", EXPERIMENTS[3])]
        for number in (1, 5, 8):
            output = cls.path / f"run-{number}"
            process = train(2, output, EXPERIMENTS[number])
            assert process.returncode == 0, process.stderr[-3000:]
            cls.runs.append(output)
        subprocess.run(
            [str(PROGRAM), "export", *map(str, cls.runs), "--out", str(cls.path / "export")],
            check=True,
            capture_output=True,
            timeout=60,
        )

    @classmethod
    def interrupted_and_resumed(cls, name, experiment):
        """A run whose records hold what a resumed one adds."""
        output = cls.path / name
        with subprocess.Popen(
            command(2, output, experiment, LENGTH),
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        ) as process:
            deadline = time.monotonic() + 300
            while (
                not (output / "batches.jsonl").is_file()
                or not (output / "batches.jsonl").stat().st_size
            ):
                assert process.poll() is None and time.monotonic() < deadline, (
                    "no batch was recorded"
                )
                time.sleep(0.02)
            process.send_signal(signal.SIGUSR1)
            assert process.wait(300) == 75, "a stopped run must exit with 75"
        process = train(2, output, experiment, LENGTH, flags=("--resume",))
        assert process.returncode == 0, process.stderr[-3000:]
        return output

    def check(self, file, values, heading=None):
        text = section(self.page, heading or file)
        self.assertTrue(text, f"a section '## {heading or file}'")
        keys = set().union(*(paths(value, OPEN.get(file, {})) for value in values))
        missing = sorted(key for key in keys if "PHASE:" not in key and not is_named(key, text))
        phases = {key.split("PHASE:")[1] for key in keys if "PHASE:" in key}
        missing += sorted(f"phase {phase}" for phase in phases - spans(self.page))
        self.assertEqual(missing, [], f"{PAGE.name} does not define these of {file}")

    def test_run_json(self):
        self.check("run.json", [read_run(run) for run in self.runs])

    def test_batches(self):
        self.check(
            "batches.jsonl", sum((read_lines(run, "batches.jsonl") for run in self.runs), [])
        )

    def test_metrics(self):
        self.check(
            "metrics.jsonl", sum((read_lines(run, "metrics.jsonl") for run in self.runs), [])
        )

    def test_timing_results(self):
        self.check(
            "timingResults.json",
            json.loads((self.path / "export" / "timingResults.json").read_text()),
        )

    def test_results(self):
        results = json.loads((self.path / "export" / "results.json").read_text())
        text = section(self.page, "results.json")
        settings = set().union(*(read_run(run)["config"] for run in self.runs))
        wanted = {"data", "jobs", "configs", *CONFIG_KEYS_OF_ITS_OWN}
        wanted |= set().union(*results["data"])
        wanted |= {entry["measurement"] for entry in results["data"]}
        wanted |= set().union(*results["jobs"].values())
        others = {
            key
            for config in results["configs"].values()
            for key in config
            if key.split(".")[0] not in settings and not key.startswith("scheme_options.")
        }
        wanted |= others
        self.assertEqual(
            sorted(wanted - spans(text)), [], f"{PAGE.name} does not define these of results.json"
        )


if __name__ == "__main__":
    unittest.main()
