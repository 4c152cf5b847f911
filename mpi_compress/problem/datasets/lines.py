"""A line of LIBSVM text: its label and features, or what is wrong with it."""

import math
import re
from typing import NamedTuple

LARGEST_INDEX = 2**31 - 1
RETURN = re.compile(rb"\r(?![\r\n]|\Z)")  # that ends no line
_POINTS = "numbers have a decimal point, which `tr , . < FILE` writes"
_COMMA = re.compile(rb"[-+]?\d*,\d+([eE][-+]?\d+)?")


class ParsedLine(NamedTuple):
    """A sample; its features are increasing indices, from 1 on, with values."""

    label: float
    indices: list[int]
    values: list[float]


def _about_label(label: bytes, features: list[bytes]) -> str:
    """What is wrong with a label that is no number, and what would do."""
    would_do = "it should be a number, as in `label index:value …`"
    if b":" in label:
        would_do = "each row has a label, and no weight after it (`label:weight`)"
    elif b"," in label and b":" not in b"".join(features):
        would_do += "; `mpi-compress data make FILE.csv` converts CSV"
    elif _COMMA.fullmatch(label) and b"," in b"".join(features):
        would_do = _POINTS
    elif b"," in label:
        would_do = "where rows have several labels, write 1 for rows with the one to be learned, and 0 for the others"
    return f"{_shown(label)} was given for a label; {would_do}"


def parsed_line(line: bytes, dim: int | None) -> ParsedLine:
    """A line `label index:value … # comment`, of which `qid:…` is left out; a label of NaN where it holds no sample.
    ValueError with its first mistake."""
    if RETURN.search(line):
        raise ValueError("a carriage return alone ends no line; `tr '\\r' '\\n' < FILE` writes line ends")
    label, *features = re.sub(rb":\s+", b":", line.split(b"#")[0]).split() or [b""]
    features = features[1:] if features and features[0].startswith(b"qid:") else features
    if not label:
        return ParsedLine(math.nan, [], [])
    try:
        found = ParsedLine(float(_plain(label)), [], [])
    except ValueError:
        raise ValueError(_about_label(label, features)) from None
    if not math.isfinite(found.label):
        raise ValueError(f"label {_shown(label)} is not a finite number")
    last = 0
    for feature in features:
        index, _, value = feature.partition(b":")
        try:
            i, v = int(_plain(index)), float(_plain(value))
        except ValueError:
            hint = f"; {_POINTS}" * bool(_COMMA.fullmatch(value))
            raise ValueError(f"{_shown(feature)} is no index:value{hint}") from None
        if i < 1:
            hint = "; docs/own-data.md converts a file that counts from 0" * (i == 0)
            raise ValueError(f"index {i}; indices start at 1{hint}")
        if i <= last:
            raise ValueError(f"index {i} {'twice' if i == last else f'after {last}'}; indices must increase along a line")
        if i > (dim or LARGEST_INDEX):
            largest = f"d = {dim}" if dim else f"{LARGEST_INDEX}, the largest that is possible"
            raise ValueError(f"index {i} is above {largest}")
        if not math.isfinite(v):
            raise ValueError(f"value {_shown(value)} of index {i} is not a finite number")
        found.indices.append(i)
        found.values.append(v)
        last = i
    return found


def _plain(text: bytes) -> bytes:
    if b"_" in text:
        raise ValueError
    return text


def _shown(text: bytes) -> str:
    shown = text[:40].decode("utf-8", "backslashreplace")
    return repr(shown + ("…" if len(text) > 40 else ""))
