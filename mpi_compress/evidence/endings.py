"""How runs that do not reach a target end: cut off while they still come nearer, at a floor, or diverged."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpi_compress.results.columns import column_of
from mpi_compress.results.reader import Run
from mpi_compress.results.status import status_of_run
from mpi_compress.results.targets import Target

STILL = 1.1
"""A run still comes nearer to a target if its last tenth divides the distance by this or more, in the median of a tenth's rows.
It does so, too, if its last half does, and the last tenth at half of that pace: slow is no floor. Both have to exceed the noise,
which the quartiles of the tenths show."""

_HALF_THE_PACE = 0.1  # of the last half's logarithm: five tenths lie between the middles of its first and its last tenth


class Tail(NamedTuple):
    """A column in tenths of a run's rounds; NaN where a tenth has no row."""

    middle: float  # from 0.4 to 0.5 of the run: the quartile of records that is nearer to the target
    near: float  # from 0.8 to 0.9: the same
    before: float  # from 0.8 to 0.9: the median
    last: float  # from 0.9 on: the median
    end: float  # from 0.9 on: the quartile that is farther from the target


def tail_of(rounds: NDArray, values: NDArray, rising: bool = False) -> Tail:
    """The tail of a column."""
    share = np.asarray(rounds, dtype=float) / max(float(rounds[-1]), 1.0)

    def quantile(start: float, at: float) -> float:
        rows = values[(share > start) & (share <= round(start + 0.1, 1))]
        return float(np.quantile(rows, 1 - at if rising else at)) if rows.size else math.nan

    return Tail(quantile(0.4, 0.25), quantile(0.8, 0.25), quantile(0.8, 0.5), quantile(0.9, 0.5), quantile(0.9, 0.75))


def still_falls(tail: Tail, target: Target) -> float:
    """1.0 if a run still comes nearer to a target as it ends, else 0.0; NaN where that cannot be said. The distance is the column
    itself where it falls to 0, as ‖∇f‖² does, and else what is left to the level."""
    zero = 0.0 if column_of(target.column).falls and not target.rising else target.level
    middle, near, before, last, end = ((zero - value if target.rising else value - zero) for value in tail)
    if math.isnan(middle + before + last) or last <= 0 or end <= 0:
        return math.nan
    of_tenth, of_half = before / last, middle / end
    return float((of_tenth >= STILL and near > end) or (of_half >= STILL and of_tenth >= of_half**_HALF_THE_PACE))


def comes_nearer(tails: Sequence[Tail], target: Target) -> bool | None:
    """True if half of the runs or more still come nearer to a target as they end; None where that cannot be said."""
    each = [still_falls(tail, target) for tail in tails]
    return None if any(map(math.isnan, each)) else float(np.median(each)) >= 0.5


def ending(runs: Sequence[Run], target: Target, spent: str = "") -> str:
    """How runs that miss a target ended: "in 704 kbit (0.0012, still falling)", "(floors at 1.2e-05)", "(diverged in round 7)".
    What they had `spent` as they ended says nothing of those that come no nearer."""
    if len(diverged := [run for run in runs if run.status == "diverged"]) == len(runs):
        return f"(diverged in round {diverged[0].trace['round'][-1]})"
    ends = [run.column(target.column)[-1] for run in runs]
    last = f"{float(np.median(ends)):.4g}"
    if f"{min(ends):.1g}" != f"{max(ends):.1g}":
        last += f", {min(ends):.2g} … {max(ends):.2g}"
    others = f", {len(diverged)} diverged" if diverged else ""
    if not all(run.status in ("complete", "diverged") for run in runs):
        return f"({last} so far, {status_of_run(runs[-1]).state}{others})"
    complete = [run for run in runs if run.status == "complete"]
    nearer = comes_nearer([tail_of(run.trace["round"], run.column(target.column), target.rising) for run in complete], target)
    if nearer is False:
        return f"({'levels off' if target.rising else 'floors'} at {last}{others})"
    how = " at the end" if nearer is None else ", still rising" if target.rising else ", still falling"
    return f"in {spent} ({last}{how}{others})" if spent else f"({last}{how}{others})"
