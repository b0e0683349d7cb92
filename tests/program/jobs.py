"""What the tests of failures share: a program with faults, and how a job's ending is looked at."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from program import PATIENCE, PROGRAM, command

FAULTY = pathlib.Path(
    os.environ.get(
        "PSGD_FAULTY_PROGRAM",
        PROGRAM.parent / "tests" / "program" / "faulty_program" / "faulty-bench",
    )
)
HOST = socket.gethostname()

FINISHED, FAILED, USAGE, DIVERGED, INTERRUPTED = 0, 1, 2, 3, 75

# The faulty program's parts, each harmless until PSGD_FAULT asks for more.
FAULTY_PARTS = {"dataset": "faulty", "model": "faulty"}


def faulty_command(workers, output, *layers, flags=()):
    """As command(), with the program that fails when PSGD_FAULT says so (see faulty_program/faults.h)."""
    arguments = command(workers, output, FAULTY_PARTS, *layers, flags=flags)
    arguments[arguments.index(str(PROGRAM))] = str(FAULTY)
    return arguments


def run(arguments, fault="", timeout=300 * PATIENCE):
    return subprocess.run(
        arguments,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env={**os.environ, "PSGD_FAULT": fault},
    )


def error_lines(process):
    """The program's own error messages; mpirun's remarks do not count."""
    lines = [
        line.lstrip("\0 ") for line in process.stderr.splitlines()
    ]  # Open MPI 5 sets a zero before some
    return [line for line in lines if line.startswith(("error:", "terminate called"))]


def strict_json(text):
    """JSON as the standard has it: no NaN, no Infinity."""

    def refuse(constant):
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def whole_lines(path):
    """The objects of a .jsonl file; only a last line without end may be torn."""
    lines = path.read_text().split("\n")
    return [strict_json(line) for line in lines[:-1]]


def processes_with(text):
    """Ids of the processes whose command line holds `text`, but for this one."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if text in (entry / "cmdline").read_bytes().decode(errors="replace"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def kill_all(text):
    """SIGKILL to the workers first, so that no launcher has a say in how they end."""
    processes = processes_with(text)
    for process in sorted(processes, reverse=True):
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass


def wait_until(condition, seconds):
    end = time.monotonic() + seconds * PATIENCE
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


class JobTest(unittest.TestCase):
    """A folder for each test; afterwards no process of it may be left."""

    maxDiff = 2000

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.addCleanup(self.end_processes)

    def end_processes(self):
        left = not wait_until(lambda: not processes_with(str(self.path)), 15)
        kill_all(str(self.path))
        self.assertFalse(left, "processes were left behind")

    def assert_status(self, process, status):
        self.assertEqual(process.returncode, status, process.stderr[-3000:])

    def assert_one_message(self, process, *parts):
        lines = error_lines(process)
        self.assertEqual(len(lines), 1, process.stderr[-3000:])
        for part in parts:
            self.assertIn(part, lines[0])
        return lines[0]
