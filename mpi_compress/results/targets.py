"""Targets: levels that a column of a result should reach, and the first row that does."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError
from mpi_compress.results.columns import COLUMNS, Result, column_of

_GROWING = frozenset(c.name for c in COLUMNS if c.since in ("counter", "convention", "model", "clock")) | {
    "round", "epoch", "wire_bits", "paper_bits", "wire_bits_up_n", "bits_32_n", "bits_64_n",
}  # fmt: skip
_RISING = frozenset(("test_accuracy", "hit_rate"))
RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def grows(column: str) -> bool:
    """True if a column grows in every run, as what is spent does."""
    return column in _GROWING


def rises(column: str) -> bool:
    """True if a column rises to a level, as an accuracy does and what is spent; False if it comes down to it."""
    return column in _RISING or grows(column)


def first_rows(values: NDArray, levels: Sequence[float] | NDArray, rising: bool = False) -> NDArray[np.intp]:
    """The first row at which a column has come down to each level, or risen to it; -1 where none has. NaN reaches no level."""
    known, sign = np.flatnonzero(~np.isnan(values)), -1.0 if rising else 1.0
    best = np.minimum.accumulate(sign * np.asarray(values, dtype=float)[known])
    return np.append(known, -1)[np.searchsorted(-best, -sign * np.asarray(levels, dtype=float))]


def first_row(values: NDArray, level: float, rising: bool = False) -> int | None:
    """The first row at which a column has come down to a level, or risen to it; None if none has."""
    (row,) = first_rows(values, [level], rising)
    return int(row) if row >= 0 else None


def entry_at(column: NDArray, other: NDArray, level: float, rising: bool = False) -> float:
    """The entry of the first row where another column has come down to a level, or risen to it; infinite where it never does."""
    row = first_row(other, level, rising)
    return math.inf if row is None else float(column[row])


@dataclass(frozen=True)
class Target:
    """A level that a column should come down to, or rise to."""

    column: str
    level: float
    rising: bool

    @classmethod
    def of(cls, column: str, level: float, rising: bool | None = None) -> Self:
        """A target in the direction of its column, if no other is given."""
        return cls(column, level, column in _RISING if rising is None else rising)

    def __post_init__(self) -> None:
        if self.column in _GROWING:
            raise UserError(f"{self}: {self.column} grows in every run; a target is a value of loss, suboptimality or the like")
        if not math.isfinite(self.level):
            raise UserError(f"{self}: the target should be a finite number")

    def __str__(self) -> str:
        return f"{self.column} {'≥' if self.rising else '≤'} {self.level:g}"

    @property
    def in_signs(self) -> str:
        """As papers write it: "‖∇f(x)‖² ≤ 10⁻⁵"."""
        label = column_of(self.column).label
        signs = re.search(r"(‖|f\(x\)).*", label)
        factor, _, power = f"{self.level:e}".partition("e")
        short = f"{float(factor):.6g}×".removeprefix("1×") + "10" + str(int(power)).translate(RAISED)
        level = f"{self.level:g}" if self.level == 0 or -3 < int(power) < 5 else short
        return f"{signs[0] if signs else label} {'≥' if self.rising else '≤'} {level}"

    def row_of(self, run: Result) -> int | None:
        """The number of the first row that reaches the target, None if no row does; UserError if the run has no such column."""
        return first_row(run.column(self.column), self.level, self.rising)

    def took(self, run: Result, column: str) -> float:
        """The entry of a column in the first row that reaches the target; infinite where no row does."""
        return entry_at(run.column(column), run.column(self.column), self.level, self.rising)

    def is_unknown(self, run: Result) -> bool:
        """True if no row has a number in that column, as that of the suboptimality where f* is not known."""
        return bool(np.all(np.isnan(run.column(self.column))))


_ALSO = {"gap": "suboptimality"}  # what tables head a column with


def target_of(text: str, where: str = "--to ") -> Target:
    """A target as it is typed, "loss=0.4", "loss<=0.4", "test_accuracy>=0.9", or "test_accuracy=0.9"; UserError if it is none."""
    found = re.fullmatch(r"\s*(\w+)\s*(<=|>=|=)\s*(\S+)\s*", text)
    try:
        if found:
            return Target.of(_ALSO.get(found[1], found[1]), float(found[3]), {"<=": False, ">=": True}.get(found[2]))
    except UserError as error:
        raise UserError(f"{where}{error}") from None
    except ValueError:
        pass
    raise UserError(
        f"{where}{text}: COLUMN=LEVEL is required, such as loss=0.4 or suboptimality=1e-3; test_accuracy>=0.9 for what rises"
    )


class ResultRow(dict[str, Any]):
    """One row of a result by column: `label`, the columns of the trace, `seconds`; and derived ones, as row["wire_bits"]."""

    def __init__(self, run: Result, number: int):
        columns = {**run.trace, "seconds": run.timing["seconds"]}
        super().__init__({"label": run.label, **{name: values[number].item() for name, values in columns.items()}})
        self._run, self._number = run, number

    def __missing__(self, name: str) -> Any:
        try:
            return self._run.column(name)[self._number].item()
        except UserError as error:
            raise KeyError(str(error)) from None


class Columns(dict[str, NDArray]):
    """The columns of a group of a result's file; for one that is derived from them, the error says where it is."""

    def __missing__(self, name: str) -> NDArray:
        hint = f"run.column({name!r}) gives it" if column_of(name).derive else "run.column(…) gives derived ones"
        raise KeyError(f"no column {name!r} in the file; {hint}; there are: {', '.join(self)}")
