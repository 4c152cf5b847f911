"""[tune]: a parameter gets the best of some values, by trial runs of each."""

import re
from dataclasses import dataclass
from typing import Any

from mpi_compress.core.errors import nearest
from mpi_compress.core.expressions import names_in
from mpi_compress.job.tables import OF_A_RUN

_MOST = 64  # values of a range of powers
_RANGE = re.compile(r"\s*(\d+)\s*\^\s*([+-]?\d+)\s*\.\.\s*(?:(\d+)\s*\^\s*)?([+-]?\d+)\s+(\S.*?)\s*")


def powers(text: str) -> list[str]:
    """The formulas of a range of powers: "2^-1..2^1 theory" is "1/2 theory", "theory", "2 theory".

    Raises:
        ValueError: it is no range, or one of more than 64 values.
    """
    found = _RANGE.fullmatch(text)
    if found is None or found[3] not in (None, found[1]):
        raise ValueError(f'values = {text!r} should be a list, or a range of powers of one number such as "2^-6..2^10 theory"')
    base, low, high, unit = int(found[1]), int(found[2]), int(found[4]), found[5]
    if base < 2 or not 0 <= high - low < _MOST:
        raise ValueError(f"values = {text!r} should be from 1 to {_MOST} powers of 2 or more, the least first")
    names_in(unit)  # refuses what is no formula
    unit = unit if unit.isidentifier() else f"({unit})"
    return [unit if j == 0 else f"{base**j} {unit}" if j > 0 else f"1/{base**-j} {unit}" for j in range(low, high + 1)]


@dataclass(frozen=True)
class TuneTable:
    """A job's [tune]."""

    parameter: str  # its dotted key, such as "algorithm.step"
    values: list[Any] | str  # or a range of powers, "2^-6..2^10 theory"
    merit: str = "suboptimality"  # the column that should be smallest at the end of a trial
    rounds: int | None = None  # of each trial; None: what [stop] says
    wire_bits_up: float | None = None  # in place of `rounds`: bits that all workers may send up in a trial
    seed: int | None = None  # of all trials, so that runs of other seeds share them; None: the run's own
    seeds: list[int] | None = None  # each value is tried with each of these, and the median of the merits counts
    descent: bool = False  # True: a trial that ends above the loss that it starts with counts as none
    beside: float | str | None = None  # a value, such as "theory", that a further run has without tuning; None: no such run

    def __post_init__(self) -> None:
        if isinstance(self.values, str):
            object.__setattr__(self, "values", powers(self.values))
        head = self.parameter.partition(".")[0]
        seeds, several_budgets = self.seeds, self.rounds is not None and self.wire_bits_up is not None
        for wrong, why in (
            (not self.values, "values = [] must name at least one"),
            (head not in OF_A_RUN, nearest(head, OF_A_RUN, "table")),
            (several_budgets, "rounds and wire_bits_up were given; a trial has one budget"),
            *((given < 1, f"{key} = {given} must be at least 1") for key, given in self.budget.items()),
            (self.seed is not None and seeds is not None, "seed and seeds were given; give one of them"),
            (
                seeds is not None and (not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds)),
                f"seeds = {seeds} should be different whole numbers from 0 on",
            ),
        ):
            if wrong:
                raise ValueError(why)

    @property
    def name(self) -> str:
        """The parameter without its table."""
        return self.parameter.split(".")[-1]

    @property
    def budget(self) -> dict[str, Any]:
        """The [stop] of trials; empty: that of the run."""
        given = {"rounds": self.rounds, "wire_bits_up": self.wire_bits_up}
        return {key: value for key, value in given.items() if value is not None}

    @property
    def trials(self) -> list[dict[str, Any]]:
        """What each trial sets, by dotted key: a value, the budget, and a seed; those of one value stand together."""
        fixed: dict[str, Any] = {"stop": self.budget} if self.budget else {}
        seeds = self.seeds if self.seeds is not None else [self.seed]
        return [
            {self.parameter: value, **fixed, **({} if seed is None else {"seed": seed})} for value in self.values for seed in seeds
        ]
