"""Reads sweep files (configs/README.md describes them) and expands their grid into runs."""

import itertools
import json
import pathlib
import re
from dataclasses import dataclass, field

PREFIX = {"PyTorch DDP": "ddp", "Paper": "paper"}
SWEEP_KEYS = {"description", "base", "seeds", "experiments", "set"}
EXPERIMENT_KEYS = {"implementation", "schemes", "set"}
SCHEME_KEYS = {"scheme", "name", "scheme_options", "set"}
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


class SweepError(Exception):
    """Something the user has to put right; its text is the whole message."""


@dataclass
class Run:
    name: str
    base: pathlib.Path
    settings: dict = field(default_factory=dict)  # key -> text, as after --set
    config: dict = field(default_factory=dict)  # the base config with the settings laid over it

    @property
    def n_workers(self):
        return self.config.get("n_workers", 16)

    @property
    def epochs(self):
        return self.config.get("epochs", 300)


def _no_duplicates(pairs):
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key '{next(k for k in keys if keys.count(k) > 1)}' is there twice")
    return result


def read_json(path):
    """The object in a JSON file; SweepError if it holds anything else, or a key twice."""
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file, object_pairs_hook=_no_duplicates)
    except OSError as error:
        raise SweepError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise SweepError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise SweepError(f"{path}: expected a JSON object, found {json.dumps(value)[:40]}")
    return value


def parse_settings(texts):
    """["key=value", ...] as a dict of texts."""
    settings = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise SweepError(f"--set needs KEY=VALUE, found '{text}'")
        if key in settings:
            raise SweepError(f"--set gives '{key}' twice")
        settings[key] = value
    return settings


def as_text(value):
    """A JSON value as --set takes it: strings bare, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def from_text(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def lay_over(config, settings):
    """`config` with settings such as {"scheme_options.rank": "2"} applied."""
    result = json.loads(json.dumps(config))
    for key, text in settings.items():
        *parents, last = key.split(".")
        place = result
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                raise SweepError(
                    f"the setting '{key}' needs an object at '{parent}', found {json.dumps(place)}"
                )
        place[last] = from_text(text)
    return result


def _check_keys(what, value, known):
    if not isinstance(value, dict):
        raise SweepError(f"{what}: expected an object, found {json.dumps(value)[:60]}")
    for key in value:
        if key not in known:
            raise SweepError(f"{what}: unknown key '{key}'; known are {', '.join(sorted(known))}")


def _list(what, value, kind):
    if not isinstance(value, list) or not value or not all(type(v) in kind for v in value):
        raise SweepError(
            f"{what}: expected a list with at least one {' or '.join(k.__name__ for k in kind)}, "
            f"found {json.dumps(value)[:60]}"
        )
    return value


def _settings(what, value):
    if not isinstance(value, dict):
        raise SweepError(f"{what}: expected an object, found {json.dumps(value)[:60]}")
    return {key: as_text(v) for key, v in value.items()}


def _schemes(what, entry):
    """Yields (name, settings) of every scheme that an entry of "schemes" stands for."""
    if isinstance(entry, str):
        entry = {"scheme": entry}
    _check_keys(what, entry, SCHEME_KEYS)
    if not isinstance(entry.get("scheme"), str):
        raise SweepError(f"{what}: 'scheme' is missing or not a string")
    options = entry.get("scheme_options", {})
    _check_keys(f"{what}: scheme_options", options, options if isinstance(options, dict) else ())
    varied = {key: value if isinstance(value, list) else [value] for key, value in options.items()}
    for key, values in varied.items():
        _list(f"{what}: scheme_options.{key}", values, (int, float, str, bool))
    default_name = "-".join([entry["scheme"]] + [f"{k}-{{{k}}}" for k in varied])
    for values in itertools.product(*varied.values()):
        chosen = dict(zip(varied, values))
        try:
            name = entry.get("name", default_name).format(
                **{k: as_text(v) for k, v in chosen.items()}
            )
        except (KeyError, IndexError, ValueError, AttributeError):
            raise SweepError(
                f"{what}: 'name' may use {{...}} only for {', '.join(varied) or 'nothing'}, "
                f"found {json.dumps(entry['name'])}"
            ) from None
        yield (
            name,
            {
                "scheme": entry["scheme"],
                **{f"scheme_options.{k}": as_text(v) for k, v in chosen.items()},
                **_settings(f"{what}: set", entry.get("set", {})),
            },
        )


def load_sweep(path, overrides=None):
    """All runs of a sweep file, in its order, seed by seed, so that the first seed's table is complete early.
    `overrides` (key -> text) go over everything in the file. SweepError on anything amiss."""
    sweep = read_json(path)
    _check_keys(str(path), sweep, SWEEP_KEYS)
    if not isinstance(sweep.get("base"), str):
        raise SweepError(
            f"{path}: 'base' must name the base config, found {json.dumps(sweep.get('base'))}"
        )
    base = pathlib.Path(path).parent / sweep["base"]
    base_config = read_json(base)
    seeds = _list(f"{path}: seeds", sweep.get("seeds", [1]), (int,))
    overrides = overrides or {}
    for key in overrides:
        if key in ("seed", "implementation", "scheme") or key.startswith("scheme_options"):
            raise SweepError(
                f"--set {key}: the sweep file sets it for each run; use --only to pick runs, "
                f"or edit {path}"
            )
    runs = {}
    for seed in seeds:
        for number, experiment in enumerate(
            _list(f"{path}: experiments", sweep.get("experiments"), (dict,)), 1
        ):
            what = f"{path}: experiment {number}"
            _check_keys(what, experiment, EXPERIMENT_KEYS)
            implementation = experiment.get("implementation")
            if implementation not in PREFIX:
                raise SweepError(
                    f"{what}: 'implementation' must be one of {', '.join(map(repr, PREFIX))}, "
                    f"found {json.dumps(implementation)}"
                )
            for entry in _list(f"{what}: schemes", experiment.get("schemes"), (str, dict)):
                for scheme, scheme_settings in _schemes(what, entry):
                    settings = {
                        **_settings(f"{path}: set", sweep.get("set", {})),
                        **_settings(f"{what}: set", experiment.get("set", {})),
                        "implementation": implementation,
                        **scheme_settings,
                        "seed": str(seed),
                        **overrides,
                    }
                    name = f"{PREFIX[implementation]}-{scheme}-seed-{seed}"
                    if not NAME.fullmatch(name):
                        raise SweepError(
                            f"{what}: '{name}' cannot be the name of a folder; give the scheme a 'name'"
                        )
                    if name in runs:
                        raise SweepError(
                            f"{path}: two runs would be called '{name}'; give the scheme a 'name' "
                            f"that tells them apart, or drop one"
                        )
                    runs[name] = _make_run(name, base, base_config, settings)
    return list(runs.values())


def _make_run(name, base, base_config, settings):
    run = Run(name, base, settings, lay_over(base_config, settings))
    for key, value in (("n_workers", run.n_workers), ("epochs", run.epochs)):
        if type(value) is not int or value < 1:
            raise SweepError(
                f"{base}: '{key}' must be a positive integer, found {json.dumps(value)}"
            )
    return run
