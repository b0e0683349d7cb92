"""What the folder of a run says: how far it came, and what a sweep may do with it."""

import collections
import enum
import json
import pathlib
from datetime import datetime

from sweep_file import SweepError


class State(enum.Enum):
    MISSING = "to do"
    FINISHED = "finished"
    DIVERGED = "diverged"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    DEAD = "dead"  # says "running", but this sweep holds the lock and runs nothing


# These change nothing that a result depends on, or are this machine's own: they may differ between the sweeps
# that share a folder. The same that `train --resume` lets differ (config_differences() in
# harness/train/checkpoint.cpp); a test compares the two.
FREE_SETTINGS = {
    "name",
    "data_dir",
    "device",
    "threads",
    "wait",
    "watchdog_seconds",
    "check_every",
    "checkpoint_every_epochs",
    "checkpoint_every_minutes",
    "on_divergence",
    "save_weights",
    "warmup_steps",
    "timed_steps",
}
# Decides how far a run went that diverged, and nothing about any other.
ONLY_IF_DIVERGED = "on_divergence"

# The program's exit status for each outcome, for a run that died before it could write run.json.
STATUS_DIVERGED, STATUS_INTERRUPTED = 3, 75


def _same(wanted, found):
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(key in found and _same(value, found[key]) for key, value in wanted.items())
    return wanted == found  # 1 == 1.0, as it should be


class RunFolder:
    def __init__(self, run, output):
        self.run = run
        self.name = run.name
        self.path = pathlib.Path(output) / run.name
        self.log = pathlib.Path(output) / f"{run.name}.log"

    def record(self):
        """What run.json holds; {} if there is none or it cannot be read."""
        try:
            with open(self.path / "run.json", encoding="utf-8") as file:
                value = json.load(file)
        except (OSError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}

    def state(self):
        if not self.path.is_dir() or not any(self.path.iterdir()):
            return State.MISSING
        return {
            "finished": State.FINISHED,
            "diverged": State.DIVERGED,
            "failed": State.FAILED,
            "interrupted": State.INTERRUPTED,
        }.get(self.record().get("status"), State.DEAD)

    def can_resume(self):
        """Whether a checkpoint is there to go on from; `--resume` finds out whether it is a good one."""
        checkpoint = self.path / "checkpoint"
        return (
            self.state() in (State.INTERRUPTED, State.FAILED, State.DEAD)
            and bool(self.record())
            and checkpoint.is_dir()
            and any(checkpoint.iterdir())
        )

    def set_aside(self):
        """Renames what a dead run left, so that the run can start anew. Returns the new path, or None."""
        if self.state() is State.MISSING:
            return None
        number = 1
        while self.path.with_name(f"{self.name}.failed-{number}").exists():
            number += 1
        return self.path.rename(self.path.with_name(f"{self.name}.failed-{number}"))

    def check_same_settings(self):
        """SweepError if the folder holds a run with other settings than this sweep asks for."""
        if self.state() not in (State.FINISHED, State.DIVERGED) and not self.can_resume():
            return
        stored = self.record().get("config", {})
        free = FREE_SETTINGS - ({ONLY_IF_DIVERGED} if self.state() is State.DIVERGED else set())
        for key, wanted in self.run.config.items():
            if key not in free and key in stored and not _same(wanted, stored[key]):
                raise SweepError(
                    f"{self.path} holds a run with {key} = {json.dumps(stored[key])}, but this sweep asks "
                    f"for {json.dumps(wanted)}. Take another --output, or move that folder away."
                )

    def duration(self):
        """Seconds that a finished run took, None if it is not finished or does not say."""
        record = self.record()
        if record.get("status") != "finished":
            return None
        try:
            start, end = (
                datetime.strptime(record[key], "%Y-%m-%dT%H:%M:%SZ") for key in ("started", "ended")
            )
        except (KeyError, TypeError, ValueError):
            return None
        return max(0.0, (end - start).total_seconds())

    def last_test(self):
        """The newest measurement on the test set, None if there is none yet."""
        try:
            with open(self.path / "metrics.jsonl", encoding="utf-8", errors="replace") as file:
                lines = collections.deque(file, maxlen=20)
        except OSError:
            return None
        for line in reversed(lines):
            try:
                entry = json.loads(line)
                if (
                    entry["split"] == "test"
                    and entry["weights"] == "last"
                    and isinstance(entry["epoch"], int)
                ):
                    return entry
            except (ValueError, KeyError, TypeError):
                continue  # a line that is being written
        return None

    def outcome(self, exit_status, record_before):
        """(State, message) after the launcher ended with `exit_status`; `record_before` is the record from
        before it started. A run that refuses to start leaves run.json as it was: what it says is old then."""
        record = self.record()
        state, message = self.state(), record.get("message") or ""
        if exit_status != 0 and record == record_before:
            state, message = State.DEAD, ""
        if state is State.FINISHED and exit_status != 0:
            return (
                State.FINISHED,
                f"the results are complete, but the launcher ended with status {exit_status}",
            )
        if state in (State.FINISHED, State.DIVERGED, State.INTERRUPTED):
            return state, message
        if exit_status == STATUS_DIVERGED:
            return State.DIVERGED, message
        if exit_status == STATUS_INTERRUPTED and self.can_resume():
            return State.INTERRUPTED, message
        how = f"signal {-exit_status}" if exit_status < 0 else f"exit status {exit_status}"
        if exit_status == 0:
            how = f"exit status 0 without a finished run in {self.path}"
        return State.FAILED, f"{message} ({how})" if message else how

    def log_tail(self, count):
        try:
            with open(self.log, encoding="utf-8", errors="replace") as file:
                lines = collections.deque(
                    (line.rstrip() for line in file if line.strip()), maxlen=count
                )
        except OSError:
            return []
        return list(lines)
