"""What [tune] found, as results keep it."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from mpi_compress.core.expressions import evaluate, names_in
from mpi_compress.results.reader import Run

BEYOND = "a better one may lie beyond"
MISSED = "trials missed the target"


def caveat(tuned: Mapping[str, Any] | None) -> str:
    """What speaks against the value that won, by `reader.Run.tuned`: "not settled"; `MISSED` in the median of each value; or ""."""
    tuned = tuned or {}
    if not tuned.get("settled", True):
        return "not settled"
    return "" if any(took is not None for took in tuned.get("took", [0])) else MISSED


def in_a_sentence(runs: Sequence[Run]) -> str:
    """What speaks against the value that won for seeds of a method, in more words; or ""."""
    if (note := caveat(tuned := runs[0].tuned)) == MISSED and tuned:
        return f"no value's trials reached {tuned['to']} in the median, so the nearest is taken"
    return f"tuned value {note}" if note else ""


def without_value(each: Sequence[Mapping[str, Any] | None]) -> str:
    """Of how many methods no value's trials reached the target in the median, as the end of a sentence; or ""."""
    missed = sum(caveat(tuned) == MISSED for tuned in each)
    return f"; tuning found no value that reaches its target for {missed} of {len(each)} methods" if missed else ""


def lost_by_seeds(tuned: Mapping[str, Any]) -> str:
    """That a value pays no more than the one that won in the median over seeds, some of which miss the target; or ""."""
    values, seeds = [value for value, _ in tuned.get("tried", [])], tuned.get("seeds", [])
    won = tuned["took"][values.index(tuned["value"])] if "took" in tuned else None
    for value, paid in zip(values, tuned.get("paid", []), strict=False):
        missed = paid.count(None)
        is_as_good = won is not None and median(math.inf if each is None else each for each in paid or [None]) <= won
        if missed and is_as_good and len(paid) == len(seeds):
            lost = f"{in_words(value)} pays no more in the median, but {missed} of {len(seeds)} seeds missed {tuned['to']}"
            return f"{lost}; more rounds may let it win"
    return ""


def in_words(value: Any) -> str:
    """A value that was tried; of several parameters each by its key's last name, "step = 2 theory, compressor = top-k 5%", or by
    the whole key where two have the same last name."""
    if not isinstance(value, Mapping):
        return str(value)
    last = Counter(key.rpartition(".")[2] for key in value)
    names = (key if last[name := key.rpartition(".")[2]] > 1 else name for key in value)
    return ", ".join(f"{name} = {_of_part(each)}" for name, each in zip(names, value.values(), strict=True))


def _of_part(value: Any) -> str:
    """A part's name and its parameters; the parts of a table one by one, "qsgd 15 max, entropy 32"; another value as it is."""
    if not isinstance(value, Mapping):
        return str(value)
    return (" " if "name" in value else ", ").join(map(_of_part, value.values()))


def put_by(tuned: Mapping[str, Any]) -> Mapping[str, Any]:
    """The value that won, by dotted key: one, or those of several parameters."""
    return tuned["value"] if isinstance(tuned["value"], Mapping) else {tuned["parameter"]: tuned["value"]}


def sizes(values: Sequence[Any]) -> list[float]:
    """The sizes of settings such as 3, "10%" or "0.5/L" in their unit; [] where they are no numbers of one unit."""
    texts = [value.removesuffix("%") if isinstance(value, str) else value for value in values]
    try:
        units = {(names_in(text), text == value) for text, value in zip(texts, values, strict=True)}
        found = [evaluate(text, dict.fromkeys(names_in(text), 1.0)) for text in texts]
    except (ValueError, TypeError):
        return []
    return found if len(units) == 1 else []
