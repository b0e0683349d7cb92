#!/usr/bin/env python3
"""Stands in for powersgd-bench in the tests of the sweep: writes a run folder like it.

FAKE_PLAN: a JSON file {run's name: [what to do at its first start, at its second, ...]}; others finish.
FAKE_CALLS: a file that gets one JSON line per start.
"""

import json
import os
import pathlib
import signal
import sys
import time

STATUS = {"finished": 0, "failed": 1, "refused": 2, "diverged": 3, "interrupted": 75}


def options(arguments):
    assert arguments[0] == "train", arguments
    result = {"resume": False, "settings": {}}
    words = iter(arguments[1:])
    for word in words:
        if word == "--resume":
            result["resume"] = True
        elif word == "--set":
            key, _, value = next(words).partition("=")
            result["settings"][key] = value
        else:
            result[word.lstrip("-")] = next(words)
    return result


def resolved(given):
    with open(given["config"], encoding="utf-8") as file:
        config = json.load(file)
    for key, text in given["settings"].items():
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        place = config
        *parents, last = key.split(".")
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    return config


def write_record(folder, status, config, message=""):
    record = {
        "schema_version": 1,
        "status": status,
        "message": message,
        "config": config,
        "started": "2026-01-01T00:00:00Z",
        "ended": "2026-01-01T00:00:10Z",
    }
    (folder / "run.json.tmp").write_text(json.dumps(record), encoding="utf-8")
    os.replace(folder / "run.json.tmp", folder / "run.json")


def main():
    given = options(sys.argv[1:])
    folder = pathlib.Path(given["output"])
    config = resolved(given)
    with open(os.environ["FAKE_CALLS"], "a+", encoding="utf-8") as calls:
        calls.seek(0)
        starts = sum(json.loads(line)["name"] == folder.name for line in calls)
        calls.write(json.dumps({"name": folder.name, **given}) + "\n")
    plan = json.loads(pathlib.Path(os.environ["FAKE_PLAN"]).read_text(encoding="utf-8")).get(
        folder.name, []
    )
    action = plan[starts] if starts < len(plan) else "finished"
    print(f"fake run {folder.name}: {action}", flush=True)

    if action == "refused":
        return STATUS[action]
    folder.mkdir(parents=True, exist_ok=True)
    if given["resume"] != (folder / "run.json").exists():
        print("resume asked for without a run, or not asked for beside one", flush=True)
        return 2
    write_record(folder, "running", config)
    for epoch in range(1, config["epochs"] + 1):
        with open(folder / "metrics.jsonl", "a", encoding="utf-8") as metrics:
            metrics.write(
                json.dumps({"epoch": epoch, "split": "test", "weights": "last", "accuracy": 0.25})
                + "\n"
            )
    if action == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if action == "killed with checkpoint":
        (folder / "checkpoint").mkdir(exist_ok=True)
        (folder / "checkpoint" / "a").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if action in ("waits", "ignores signals"):
        stopped = []
        signal.signal(signal.SIGUSR1, lambda *_: stopped.append(action == "waits"))
        if action == "ignores signals":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        (folder / "waiting").touch()
        for _ in range(600):
            time.sleep(0.05)
            if any(stopped):
                break
        (folder / "checkpoint").mkdir(exist_ok=True)
        (folder / "checkpoint" / "a").touch()
        action = "interrupted"
    write_record(folder, action, config, "because the test says so" if action == "failed" else "")
    return STATUS[action]


if __name__ == "__main__":
    sys.exit(main())
