#!/usr/bin/env python3
"""Runs every experiment of a sweep file, one after another:

    scripts/sweep.py configs/desk/sweep.json --output runs/desk --set data_dir=/data/cifar-10-batches-bin

Each run gets a folder of its own under --output, and what it prints goes to a file beside it (NAME.log). The
same command given again goes on where the last one stopped: finished and diverged runs are left alone, those
with a checkpoint are resumed, and the rest start anew (what a dead run left is kept as NAME.failed-1, ...).

Exit status: 0 all runs finished; 1 at least one failed; 2 usage; 3 none failed but at least one diverged;
75 stopped by a signal, to be continued by the same command.

configs/README.md describes sweep files.
"""

import argparse
import fcntl
import fnmatch
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time
from datetime import datetime, timezone

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from sweep_file import SweepError, load_sweep, parse_settings  # noqa: E402
from sweep_state import RunFolder, State  # noqa: E402

SCRIPTS = pathlib.Path(__file__).resolve().parent
DEFAULT_PROGRAM = SCRIPTS.parent / "build" / "release" / "powersgd-bench"
POLL_SECONDS = 0.2
EXIT_FAILED, EXIT_USAGE, EXIT_DIVERGED, EXIT_INTERRUPTED = 1, 2, 3, 75


def arguments(argv):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sweep", type=pathlib.Path, metavar="SWEEP.json")
    parser.add_argument(
        "--output",
        type=pathlib.Path,
        required=True,
        metavar="DIR",
        help="where the runs' folders go",
    )
    parser.add_argument(
        "--program",
        type=pathlib.Path,
        default=DEFAULT_PROGRAM,
        metavar="PATH",
        help="the powersgd-bench to run (default: build/release/powersgd-bench)",
    )
    parser.add_argument(
        "--launcher",
        choices=["mpirun", "srun"],
        default="mpirun",
        help="mpirun goes through scripts/launch.sh",
    )
    parser.add_argument(
        "--launcher-args",
        default="",
        metavar="ARGS",
        help="more options for the launcher, one string, quoted as in a shell",
    )
    parser.add_argument(
        "--transport", choices=["auto", "ucx"], default="auto", help="what carries the messages"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="settings",
        help="a setting for all runs, over the base config's (repeatable)",
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="PATTERN",
        help="only runs whose name matches, e.g. 'paper-*' (repeatable)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="list the runs and their commands, start nothing"
    )
    parser.add_argument(
        "--progress-every",
        type=float,
        default=30,
        metavar="SECONDS",
        help="at most one line of progress in this time (default: 30)",
    )
    parser.add_argument(
        "--grace",
        type=float,
        default=300,
        metavar="SECONDS",
        help="how long a run may take to write its checkpoint when stopped (default: 300)",
    )
    return parser.parse_args(argv)


def command_for(run, folder, options, resume):
    """The command line of `run` as a list, and what it needs in the environment."""
    program = [str(options.program), "train", "--config", str(run.base), "--output", str(folder)]
    if resume:
        program.append("--resume")
    for key, value in run.settings.items():
        program += ["--set", f"{key}={value}"]
    environment = {}
    if options.launcher == "mpirun":
        if options.launcher_args:
            environment["PSGD_MPIRUN_ARGS"] = options.launcher_args
        return [
            str(SCRIPTS / "launch.sh"),
            "--transport",
            options.transport,
            str(run.n_workers),
        ] + program, environment
    # What launch.sh does under mpirun; see there.
    environment = {"GLIBC_TUNABLES": os.environ.get("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")}
    if options.transport == "ucx":
        # Under srun there is no mpirun to give options to; Open MPI reads the same ones from the environment.
        environment |= {
            "OMPI_MCA_pml": "ucx",
            "OMPI_MCA_pml_ucx_tls": "any",
            "OMPI_MCA_pml_ucx_devices": "any",
        }
    return ["srun", "-n", str(run.n_workers)] + shlex.split(
        options.launcher_args
    ) + program, environment


def as_time(seconds):
    seconds = int(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02d} s"
    return f"{seconds // 3600} h {seconds // 60 % 60:02d} min"


def say(text):
    print(text, flush=True)


class Stopper:
    """Passes SIGINT, SIGTERM and SIGUSR1 on to the run in progress, and remembers that they came."""

    def __init__(self, grace):
        self.grace = grace
        self.process = None
        self.since = None
        self.sent = 0
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            signal.signal(number, self._handle)

    @property
    def stopped(self):
        return self.since is not None

    def _handle(self, number, _frame):
        say(
            f"\n{signal.Signals(number).name}: asking the run to write a checkpoint and stop "
            f"(again: it is ended at once) ..."
        )
        self._send()

    def _send(self):
        self.since = time.monotonic()
        if self.process is None or self.process.poll() is not None:
            return
        self.sent += 1
        try:
            # The launcher's own group only: workers are signalled by the launcher.
            os.killpg(self.process.pid, signal.SIGTERM if self.sent < 4 else signal.SIGKILL)
        except ProcessLookupError:
            pass

    def watch(self, process):
        """From now on `process` is the run in progress; None: no run is."""
        self.process = process
        self.sent = 0
        if (
            process is not None and self.stopped
        ):  # the signal came while the process was being started
            self._send()

    def escalate(self):
        """Called while waiting: signals again, harder each time, when the run outlasts its grace."""
        if self.stopped and time.monotonic() - self.since > (self.grace if self.sent <= 1 else 10):
            self._send()


class Progress:
    """Tells what a run is doing and how long the sweep will still take."""

    def __init__(self, durations, every):
        self.durations = list(durations)
        self.every = every
        self.last_line = 0.0
        self.last_epoch = 0  # of the run in progress

    def begin_run(self):
        self.last_epoch = 0

    def time_left(self, runs_after, elapsed, fraction):
        """Seconds, or None as long as there is nothing to judge by."""
        if self.durations:
            mean = sum(self.durations) / len(self.durations)
        elif fraction > 0:
            mean = elapsed / fraction
        else:
            return None
        this_one = elapsed / fraction - elapsed if fraction > 0 else max(0.0, mean - elapsed)
        return this_one + runs_after * mean

    def report(self, prefix, folder, started, first_epochs, runs_after):
        """A line if an epoch ended since the last one, and that was long enough ago."""
        now = time.monotonic()
        if now - self.last_line < self.every:
            return
        measurement = folder.last_test()
        if measurement is None or measurement["epoch"] <= max(first_epochs, self.last_epoch):
            return
        self.last_line, self.last_epoch = now, measurement["epoch"]
        epoch, epochs = measurement["epoch"], folder.run.epochs
        elapsed = now - started
        done = (epoch - first_epochs) / max(1, epochs - first_epochs)
        left = self.time_left(runs_after, elapsed, min(1.0, done))
        accuracy = measurement.get("accuracy")
        say(
            f"{prefix} epoch {epoch} of {epochs}"
            + (f", test accuracy {accuracy:.4f}" if isinstance(accuracy, (int, float)) else "")
            + (f", about {as_time(left)} left in all" if left is not None else "")
        )


class Sweep:
    def __init__(self, runs, options):
        self.options = options
        self.folders = [RunFolder(run, options.output) for run in runs]
        self.stopper = Stopper(options.grace)
        self.outcome = {}  # name -> (State, text)
        self.progress = Progress(
            [d for d in (f.duration() for f in self.folders) if d], options.progress_every
        )

    def execute(self, lock):
        to_do = [f for f in self.folders if f.state() not in (State.FINISHED, State.DIVERGED)]
        for folder in self.folders:
            if folder not in to_do:
                self.outcome[folder.name] = (folder.state(), "before")
        say(f"{len(self.folders)} runs, {len(to_do)} of them to do, in {self.options.output}")
        for index, folder in enumerate(to_do):
            if self.stopper.stopped:
                break
            self.run_one(
                folder, f"[{index + 1}/{len(to_do)}] {folder.name}:", len(to_do) - index - 1, lock
            )
        return self.summary()

    def run_one(self, folder, prefix, runs_after, lock):
        resume = folder.can_resume()
        kept = None if resume else folder.set_aside()
        if kept:
            say(f"{prefix} kept what the dead run left as {kept.name}")
        first_epochs = (folder.last_test() or {"epoch": 0})["epoch"] if resume else 0
        left = self.progress.time_left(runs_after + 1, 0, 0)
        say(
            f"{prefix} {'resuming' if resume else 'starting'}"
            f"{f', about {as_time(left)} left in all' if left else ''}"
        )
        self.progress.begin_run()
        started, record_before = time.monotonic(), folder.record()
        status = self.wait(folder, prefix, resume, started, first_epochs, runs_after, lock)
        elapsed = time.monotonic() - started
        state, message = folder.outcome(status, record_before)
        if state is State.FINISHED and not resume:
            self.progress.durations.append(elapsed)
        self.outcome[folder.name] = (state, message)
        say(f"{prefix} {state.value} after {as_time(elapsed)}{': ' + message if message else ''}")
        if state is State.FAILED:
            for line in folder.log_tail(5):
                say(f"    | {line}")

    def wait(self, folder, prefix, resume, started, first_epochs, runs_after, lock):
        """Starts the run, returns the launcher's exit status."""
        command, environment = command_for(folder.run, folder.path, self.options, resume)
        with open(folder.log, "a", encoding="utf-8") as log:
            log.write(f"# {datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ} {shlex.join(command)}\n")
            log.flush()
            try:
                # The launcher holds the lock too: if this script is killed, no second sweep starts beside its
                # run.
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **environment},
                    start_new_session=True,
                    pass_fds=(lock,),
                )
            except OSError as error:
                log.write(f"could not start {command[0]}: {error.strerror}\n")
                return 127
            self.stopper.watch(process)
            while process.poll() is None:
                time.sleep(POLL_SECONDS)
                self.stopper.escalate()
                self.progress.report(prefix, folder, started, first_epochs, runs_after)
            self.stopper.watch(None)
        return process.returncode

    def summary(self):
        names = {state: [n for n, (s, _) in self.outcome.items() if s is state] for state in State}
        waiting = (
            len(self.folders)
            - len(names[State.FINISHED])
            - len(names[State.DIVERGED])
            - len(names[State.FAILED])
        )
        say(
            f"\nfinished {len(names[State.FINISHED])}, failed {len(names[State.FAILED])}, "
            f"diverged {len(names[State.DIVERGED])}, still to do {waiting}"
        )
        for state in (State.FAILED, State.DIVERGED):
            for name in names[state]:
                say(f"  {state.value}: {name} (see {self.options.output / (name + '.log')})")
        if self.stopper.stopped and waiting:
            say("Stopped. The same command goes on from here.")
            return EXIT_INTERRUPTED
        if names[State.INTERRUPTED]:
            say("Interrupted runs are resumed by the same command.")
            return EXIT_INTERRUPTED
        if names[State.FAILED]:
            say("The same command tries failed runs again.")
            return EXIT_FAILED
        return EXIT_DIVERGED if names[State.DIVERGED] else 0


def dry_run(runs, options):
    for run in runs:
        folder = RunFolder(run, options.output)
        resume = folder.can_resume()
        command, environment = command_for(run, folder.path, options, resume)
        say(f"{run.name} ({'to resume' if resume else folder.state().value})")
        say("  " + shlex.join([f"{k}={v}" for k, v in environment.items()] + command))
    say(f"{len(runs)} runs")
    return 0


def take_lock(output):
    """An open file, locked; SweepError if another sweep, or the run that a killed one left, holds it."""
    output.mkdir(parents=True, exist_ok=True)
    lock = os.open(output / ".sweep.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise SweepError(
            f"{output} is in use by another sweep, or by a run which outlived its sweep. "
            f"Wait until it ends, or take another --output."
        ) from None
    return lock


def main(argv=None):
    options = arguments(argv)
    try:
        runs = load_sweep(options.sweep, parse_settings(options.settings))
        if options.only:
            runs = [
                run
                for run in runs
                if any(fnmatch.fnmatchcase(run.name, pattern) for pattern in options.only)
            ]
            if not runs:
                raise SweepError(
                    f"no run matches --only {' '.join(options.only)}; --dry-run lists the names"
                )
        for run in runs:
            RunFolder(run, options.output).check_same_settings()
        if options.dry_run:
            return dry_run(runs, options)
        if not os.access(options.program, os.X_OK) or options.program.is_dir():
            raise SweepError(
                f"no program at {options.program}: build it "
                f"(cmake --preset release && cmake --build --preset release) or give --program"
            )
        lock = take_lock(options.output)
        return Sweep(runs, options).execute(lock)
    except SweepError as error:
        print(f"sweep.py: {error}", file=sys.stderr)
        return EXIT_USAGE
    except OSError as error:
        print(f"sweep.py: {error.filename or options.output}: {error.strerror}", file=sys.stderr)
        return EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main())
