"""How runs end, such as those that do not reach a target: cut off while they come nearer, on a plateau, in a swing, or diverged."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mpi_compress.results.columns import LEFT_OUT, column_of
from mpi_compress.results.reader import Run
from mpi_compress.results.status import status_of_run
from mpi_compress.results.targets import Target

_LEVEL = 0.05  # of the logarithm by which a run came nearer at all, and at most 0.05 itself: parts closer than that are level
_NOISE = 2.5  # standard errors of a median, where a row's is the median step from row to row
_APART = 0.01  # of the loss, by which stationary points differ
_HALF_THE_PACE = 1 / 6  # of what lies between the first and the last of the four parts, three parts apart


def still_falls(rounds: NDArray, values: NDArray, target: Target) -> float:
    """1.0 if a run still comes nearer to a target as it ends, 0.0 if it stays on a plateau; NaN where neither can be said.

    The last four tenths of its rounds decide, by the median of the distance's logarithm in each. It stays on a plateau if no two of
    them differ by more than `_LEVEL` and noise, which also makes the tenths' ranges overlap. Else it comes nearer if the last tenth
    is the nearest one, by half of the pace of the four. A run on an upward swing does neither. The distance is the column itself
    where it falls to 0, as ‖∇f‖² does, and else what is left to the level."""
    zero = 0.0 if column_of(target.column).falls and not target.rising else target.level
    away, share = np.asarray(zero - values if target.rising else values - zero), rounds / max(float(rounds[-1]), 1.0)
    tenths = [away[(share > start) & (share <= round(start + 0.1, 1))] for start in (0.6, 0.7, 0.8, 0.9)]
    tenths = [tenth for tenth in tenths if tenth.size]
    if len(tenths) < 3 or not np.isfinite(away).all() or min(away[0], *map(np.min, tenths)) <= 0:
        return math.nan
    low, middle, high = np.array([np.quantile(np.log(tenth), (0.05, 0.5, 0.95)) for tenth in tenths]).T
    steps = np.abs(np.diff(np.log(np.concatenate(tenths))))
    noise = _NOISE * float(np.median(steps)) / math.sqrt((steps.size + 1) / len(tenths))
    least = max(_LEVEL * min(1.0, math.log(away[0] / np.min(away, where=away > 0, initial=away[0]))), noise)
    further = middle[:, None] - middle
    if not np.any((further >= least) & (further > 0) & (low[:, None] > high)):
        return 0.0
    nearer = middle[-1] == middle.min() and middle[-2] - middle[-1] >= _HALF_THE_PACE * (middle.max() - middle[-1])
    return 1.0 if nearer else math.nan


def comes_nearer(runs: Sequence[Run], target: Target) -> bool | None:
    """True if half of the runs or more still come nearer to a target as they end, False if they stay on a plateau; None where
    neither can be said."""
    share = float(np.median([still_falls(run.trace["round"], run.column(target.column), target) for run in runs]))
    return None if math.isnan(share) else share >= 0.5


def ending(runs: Sequence[Run], target: Target, spent: str = "") -> str:
    """How runs that miss a target ended: "in 704 kbit (0.0012, still falling)", "(plateaus at 1.2e-05)", "(diverged in round 7)".
    What they had `spent` as they ended says nothing of those that come no nearer."""
    if len(diverged := [run for run in runs if run.status == "diverged"]) == len(runs):
        return f"(diverged in round {diverged[0].trace['round'][-1]})"
    ends = [run.column(target.column)[-1] for run in runs]
    is_worse = not target.rising and np.median(ends) > np.median([run.column(target.column)[0] for run in runs])
    last = f"{float(np.median(ends)):.3g}"
    if f"{min(ends):.1g}" != f"{max(ends):.1g}":
        last += f", {min(ends):.2g} … {max(ends):.2g}"
    others = f", {len(diverged)} diverged" if diverged else ""
    if not all(run.status in ("complete", "diverged") for run in runs):
        return f"({last} so far, {status_of_run(runs[-1]).state}{others})"
    complete = [run for run in runs if run.status == "complete"]
    nearer = comes_nearer(complete, target)
    if nearer is False:
        return f"(plateaus at {last}{others})"
    how = " at the end" if nearer is None else ", still rising" if target.rising else ", still falling"
    return f"in {spent} " * bool(spent) + f"({last}{', above its start' if is_worse else how}{others})"


def other_points(groups: Sequence[Sequence[Run]]) -> list[str]:
    """For each method, given by its seeds, that some end at a larger loss than others on its data and objective, so that a small
    gradient may be that of another stationary point; "" where none does, and where f* is known, or can be computed: then there is
    but one."""
    ends = [[float(run.column("loss")[-1]) for run in group if _has_points(run)] for group in groups]
    functions = [str([group[0].written.get(key) for key in ("data", "objective")]) if group else "" for group in groups]
    least, most = dict[str, float](), [max(own, default=-math.inf) for own in ends]
    for own, f in zip(ends, functions, strict=True):
        least[f] = min([*own, least.get(f, math.inf)])
    text = "perhaps at other stationary points: the loss ends at up to {:.3g}, the least at {:.3g}"
    each = [(own, least[f]) for own, f in zip(most, functions, strict=True)]
    return [text.format(own, low) if own > low + _APART * abs(low) else "" for own, low in each]


def _has_points(run: Run) -> bool:
    """True if a run ended at a point of a problem that may have several stationary ones."""
    is_unknown = math.isnan(run.attrs.get("f_star", math.nan)) and run.attrs.get("f_star_source") != LEFT_OUT
    return run.status == "complete" and is_unknown
