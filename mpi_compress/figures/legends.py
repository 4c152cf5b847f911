"""Legends: their entries, and how many stand side by side."""

import math
from collections.abc import Sequence

from mpi_compress.figures.lines import by_seed
from mpi_compress.results.reader import Run

LONGEST = 48  # letters of an entry, on one plot; twice as many on a page
LINE, _LETTER = 0.16, 0.05  # inches of an entry's text
INSIDE = 4  # entries that have room among the curves


def entry(label: str, most: int) -> str:
    """A label as a legend shows it: not longer than a line; Matplotlib hides those that begin with _."""
    label = f" {label}" if label.startswith("_") else label
    return label if len(label) <= most else f"{label[: most // 2]} … {label[-(most // 2 - 3) :]}"


def abreast(names: Sequence[str], width: float) -> int:
    """How many entries fit side by side in this width, in rows that are equally full."""
    most = max(1, int(width / (0.45 + _LETTER * max(map(len, names)))))
    return math.ceil(len(names) / math.ceil(len(names) / most))


def over_seeds(runs: Sequence[Run]) -> str | None:
    """The legend's title, which says what lines and bands are where there are several seeds."""
    most = max(map(len, by_seed(runs)))
    return f"median and range over {most} seeds" if most > 1 else None
