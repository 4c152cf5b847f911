"""A line of LIBSVM text: its fields, and what is wrong with it."""

import math
import re

LARGEST_INDEX = 2**31 - 1
RETURN = re.compile(rb"\r(?![\r\n]|\Z)")  # that ends no line
_POINTS = "numbers have a decimal point, which `tr , . < FILE` writes"
_COMMA = re.compile(rb"[-+]?\d*,\d+([eE][-+]?\d+)?")


def fields(line: bytes) -> tuple[bytes, list[bytes]]:
    """A line's label, b"" where it holds no sample, and its features; `qid:…` is left out, and so are blanks after a colon."""
    label, *features = re.sub(rb":\s+", b":", line.split(b"#")[0]).split() or [b""]
    return label, features[1:] if features and features[0].startswith(b"qid:") else features


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


def complaint_about(line: bytes, dim: int | None) -> str | None:
    """The first mistake in a line `label index:value … # comment`; None if there is none."""
    label, features = fields(line)
    if RETURN.search(line):
        return "a carriage return alone ends no line; `tr '\\r' '\\n' < FILE` writes line ends"
    if not label:
        return None
    try:
        if not math.isfinite(float(_plain(label))):
            return f"label {_shown(label)} is not a finite number"
    except ValueError:
        return _about_label(label, features)
    last = 0
    for feature in features:
        index, _, value = feature.partition(b":")
        try:
            i, v = int(_plain(index)), float(_plain(value))
        except ValueError:
            return f"{_shown(feature)} is no index:value" + f"; {_POINTS}" * bool(_COMMA.fullmatch(value))
        if i < 1:
            return f"index {i}; indices start at 1" + "; docs/own-data.md converts a file that counts from 0" * (i == 0)
        if i <= last:
            return f"index {i} {'twice' if i == last else f'after {last}'}; indices must increase along a line"
        if i > (dim or LARGEST_INDEX):
            return f"index {i} is above " + (f"d = {dim}" if dim else f"{LARGEST_INDEX}, the largest that is possible")
        if not math.isfinite(v):
            return f"value {_shown(value)} of index {i} is not a finite number"
        last = i
    return None


def _plain(text: bytes) -> bytes:
    if b"_" in text:
        raise ValueError
    return text


def _shown(text: bytes) -> str:
    shown = text[:40].decode("utf-8", "backslashreplace")
    return repr(shown + ("…" if len(text) > 40 else ""))
