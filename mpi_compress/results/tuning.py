"""What [tune] found, as results keep it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from mpi_compress.core.expressions import evaluate, names_in

BEYOND = "a better one may lie beyond"


def caveat(tuned: Mapping[str, Any]) -> str:
    """What speaks against the value that won, by `reader.Run.tuned`: "not settled", or ""."""
    return "" if tuned.get("settled", True) else "not settled"


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
