"""What a job wrote for a run, by dotted key, and in which keys runs differ."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

_PARTS = ("up.compressor", "up.codec", "down.compressor", "down.codec")


def settings_of(written: dict[str, Any]) -> dict[str, Any]:
    """What a job wrote for a run, `Run.written`, by dotted key: text, numbers, true and false; lists as text."""
    found: dict[str, Any] = {"seed": 0}

    def put(key: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for name, each in value.items():
                put(f"{key}.{name}" if key else name, each)
        else:
            key += ".name" * (key in _PARTS)  # in its short form
            found[key] = json.dumps(value) if isinstance(value, list) else value

    put("", {k: value for k, value in written.items() if k not in ("run", "plugins", "checkpoint", "slurm", "title", "paper")})
    return found


def overridden_of(run: Any) -> dict[str, Any]:
    """What was set in a run from outside its job, as by --set, by dotted key."""
    return dict(json.loads(run.attrs.get("overridden") or "{}"))


def of_several_inputs(runs: Sequence[Any]) -> list[str]:
    """The labels of results that differ, but for their seed, in their data's bytes or users' code alone."""
    found = defaultdict[Any, set[tuple[str, ...]]](set)
    for run in runs:
        found[run.label, repr({**settings_of(run.written), "seed": 0})].add(tuple(run.inputs))
    return list(dict.fromkeys(label for (label, _), each in found.items() if len(each) > 1))


def varying(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The keys whose values are not the same in all of these, in their order: 1 and 1.0 are, and true and 1 are not."""
    values = {key: {(isinstance(s.get(key), bool), s.get(key)) for s in settings} for key in dict.fromkeys(chain(*settings))}
    return [key for key, different in values.items() if len(different) > 1]
