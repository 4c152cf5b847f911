"""Round levels that a target can have, from the easiest to the hardest."""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

import numpy as np
from numpy.typing import NDArray

from mpi_compress.evidence.lines import by_seed
from mpi_compress.results.reader import Run
from mpi_compress.results.targets import Target

_LOGARITHMIC = (0.25, 0.5, 0.75)  # shares of the way from the start to the best value, on an axis of decades
_ROUNDING = 1e-12  # times the start: a lower target would ask for what rounding decides
_LINEAR = (0.5, 0.8, 0.95)
_WIDE = 3.0  # decades, from which on fixed targets are powers of ten


def round_targets(each: Sequence[NDArray], rising: bool, falls: bool, asked: Sequence[float]) -> list[float]:
    """Round levels between the start and any run's best value, and those asked for, the easiest first; [] if no run gets better."""
    sign = -1.0 if rising else 1.0
    finite = [sign * values[np.isfinite(values)] for values in each]
    start, best = max(float(values[0]) for values in finite), min(float(values.min()) for values in finite)
    if not best < start:
        return []
    if falls and start > 0:
        least = min(float(values[values > 0].min()) for values in finite if np.any(values > 0))
        best, decades = max(best, 0.0), math.log10(start / max(least, _ROUNDING * start))
        digits = 0 if decades >= _WIDE else 1 if decades >= 1 else 2
        found = [_rounded_up(math.log10(start) - share * decades, digits) for share in _LOGARITHMIC]
    else:
        digits = 2 - math.floor(math.log10(start - best))
        found = [round(start - share * (start - best), digits) for share in _LINEAR]
    inside = [level for level in found if best <= level < start] or [best]
    wanted = {*inside, *(sign * level for level in asked if sign * level < start)}
    return [sign * level + 0.0 for level in sorted(wanted, reverse=True)]  # never -0.0


def _rounded_up(power: float, digits: int) -> float:
    """The least number of so many digits that is not below 10^power; without digits, a power of ten."""
    unit = 10.0 ** (math.floor(power) + 1 - digits) if digits else 10.0 ** math.ceil(power - 1e-9)
    return float(f"{math.ceil(10.0**power / unit - 1e-9) * unit:.3g}")


def nearest_to(target: Target, runs: Sequence[Run]) -> str:
    """Which method comes nearest to a target, over its seeds in the median, and the round target that it reaches, as the end of a
    sentence; "" where no record has a number."""
    sign, found = (-1.0 if target.rising else 1.0), []
    for group in by_seed(runs):
        best = sorted(float(np.fmin.reduce(sign * run.column(target.column), initial=math.inf)) for run in group)
        found.append((best[len(best) // 2], group[0].label))
    value, label = min(found)
    reached = float(Context(2, ROUND_FLOOR if target.rising else ROUND_CEILING).create_decimal(sign * value))
    near = f"; '{label}' comes nearest, to {sign * value:.3g}: a target of {reached:g} would do, and more rounds may"
    return near * math.isfinite(value)
