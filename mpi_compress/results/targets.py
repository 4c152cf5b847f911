"""Targets and budgets, `column = value`: when a row is there, and the first row that is."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError
from mpi_compress.results.columns import COLUMNS, Columned, column_of

RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def grows(column: str) -> bool:
    """True if a column grows in every run, as what is spent does."""
    return column_of(column).grows


def rises(column: str, rising: Collection[str] = ()) -> bool:
    """True if a column rises to a level, as an accuracy does and what is spent; False if it comes down to it. The metrics of a
    result that rise are its `Run.rising`."""
    return column in rising or column_of(column).rises or grows(column)


def first_row(values: NDArray, level: float, rising: bool = False) -> int | None:
    """The first row at which a column has come down to a level, or risen to it; None if none has. NaN reaches no level."""
    met = np.flatnonzero(values >= level if rising else values <= level)
    return int(met[0]) if met.size else None


def entry_at(column: NDArray, other: NDArray, level: float, rising: bool = False) -> float:
    """The entry of the first row where another column has come down to a level, or risen to it; infinite where it never does."""
    row = first_row(other, level, rising)
    return math.inf if row is None else float(column[row])


def share_text(took: Sequence[float]) -> str:
    """How many seeds reach a target, by what each of them took to it: " (3 of 5 seeds reach it)"; "" where all do, or none."""
    reached = sum(value < math.inf for value in took)
    return f" ({reached} of {len(took)} seeds reach it)" if 0 < reached < len(took) else ""


@dataclass(frozen=True)
class Target:
    """`column = level`: a budget if the column grows in every run, else a level that it should come down to, or rise to."""

    column: str
    level: float
    rising: bool = False

    @classmethod
    def of(cls, column: str, level: float, rising: Collection[str] = ()) -> Self:
        """A target in the direction of its column; `rising` has metrics that rise."""
        return cls(column, level, rises(column, rising))

    def __post_init__(self) -> None:
        if not math.isfinite(self.level):
            raise UserError(f"{self}: the target should be a finite number")

    def __str__(self) -> str:
        return f"{self.column} {'≥' if self.rising else '≤'} {self.level:g}"

    def is_met(self, run: Columned) -> bool:
        """True if the last row of a run is there; UserError if it has no such column."""
        return first_row(run.column(self.column)[-1:], self.level, self.rising) is not None

    def row_of(self, run: Columned) -> int | None:
        """The number of the first row that is there, None if no row is; UserError if the run has no such column."""
        return first_row(run.column(self.column), self.level, self.rising)

    def took(self, run: Columned, column: str) -> float:
        """The entry of a column in the first row that reaches the target; infinite where no row does."""
        return entry_at(run.column(column), run.column(self.column), self.level, self.rising)

    def is_unknown(self, run: Columned) -> bool:
        """True if no row has a number in that column, as that of the suboptimality where f* is not known."""
        return bool(np.all(np.isnan(run.column(self.column))))


def in_signs(text: str) -> str:
    """A text whose targets, such as "squared_grad_norm ≤ 1e-05", are as papers write them: "‖∇f(x)‖² ≤ 10⁻⁵"."""

    def power(found: re.Match[str]) -> str:
        return f"{found[1]}×10{str(int(found[2])).translate(RAISED)}".removeprefix("1×")

    def signs(found: re.Match[str]) -> str:
        return re.sub(r".*?(?=‖|f\(x\))", "", column_of(found[0]).label, count=1)

    return re.sub(r"(?<=[≤≥] )([\d.]+)e([+-]\d+)", power, re.sub(r"[\w-]+(?= [≤≥])", signs, text))


def goal(to: Mapping[str, float], rising: Collection[str] = ()) -> Target:
    """The target of a table such as `to = { suboptimality = 1e-9 }`; ValueError if it is not one, or is a budget."""
    if len(to) != 1:
        raise ValueError(f"to = {dict(to)} should be one column and its target value, such as {{ suboptimality = 1e-9 }}")
    ((column, level),) = to.items()
    if grows(column):
        raise ValueError(f"to = {dict(to)}: {column} grows in every run; a target is a value of loss, suboptimality or the like")
    return Target.of(column, level, rising)


def typed(text: str) -> tuple[str, float]:
    """The column and the value of a target as it is typed, "loss=0.4"; UserError if it is none."""
    if found := re.fullmatch(r"\s*([\w-]+)\s*([<>]?)=\s*(\S+)\s*", text):
        column, sign, level = found.groups()
        if sign:
            raise UserError(f"--to {text}: write {column}={level}; each column states whether it falls or rises")
        with suppress(ValueError):
            if math.isfinite(float(level)):
                return column, float(level)
    sign = text.partition("=")[0].strip().replace("(x)", "")  # as a figure writes it
    meant = [c.name for c in COLUMNS if not re.fullmatch(r"[\w-]*", sign) and c.label.replace("(x)", "").endswith(sign)]
    hint = f"; {sign} is the column {meant[0]}" if meant else ""
    raise UserError(f"--to {text}: COLUMN=LEVEL is required, such as loss=0.4 or test_accuracy=0.9{hint}")
