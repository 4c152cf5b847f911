"""One row of a result."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Row:
    """The point after some rounds, and what it took to reach it: a number for each column of `columns.COLUMNS` that the run has."""

    trace: dict[str, float]
    workers: dict[str, list[float]]  # one number a worker
    timing: dict[str, float]
    theory: dict[str, Any] = field(default_factory=dict)
