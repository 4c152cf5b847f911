"""Levels that a target can have: those that runs logged, from the easiest to the hardest, and a few round ones between."""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np
from numpy.typing import NDArray

_DIGITS = 4  # a level has no more, so that a level that is typed is the one that is shown
_LOGARITHMIC = (0.25, 0.5, 0.75)  # shares of the way from the start to the best value, on an axis of decades
_ROUNDING = 1e-12  # times the start: a lower target would ask for what rounding decides
_LINEAR = (0.5, 0.8, 0.95)
_WIDE = 3.0  # decades, from which on fixed targets are powers of ten


def levels(each: Sequence[NDArray], rising: bool, falls: bool, most: int) -> list[float]:
    """At most about `most` of the values by which runs went past all they had before, from the easiest to the hardest. They are
    rounded to four digits, to the side on which the run has reached them. Where there are more, those are taken that lie evenly on
    the column's axis; for one that does not fall to 0, also those that lie evenly among the values."""
    found = np.unique(np.concatenate([_records(values, rising) for values in each]))
    if found.size > most:
        along = np.log(found) if falls and found[0] > 0 else found / 2  # so that no difference overflows
        even = np.searchsorted(along, np.linspace(along[0], along[-1], most if falls else most // 2))
        ranks = np.linspace(0, found.size - 1, 2 if falls else most // 2).astype(np.intp)
        found = found[np.unique(np.concatenate([np.minimum(even, found.size - 1), ranks]))]
    rounded = dict.fromkeys(_rounded(float(value), _DIGITS, rising) for value in found)
    return sorted(rounded, reverse=not rising)


def round_targets(each: Sequence[NDArray], rising: bool, falls: bool, asked: Sequence[float]) -> list[float]:
    """Round levels between the start and any run's best value, and those asked for, the easiest first; [] if no run gets better."""
    sign = -1.0 if rising else 1.0
    start = max(sign * float(values[np.isfinite(values)][0]) for values in each)
    best = min(float(np.min((sign * values)[np.isfinite(values)])) for values in each)
    if not best < start:
        return []
    if falls and start > 0:
        least = min(float(positive.min()) for values in each if (positive := values[np.isfinite(values) & (values > 0)]).size)
        best = max(best, 0.0)
        found = [_round_power(start, max(least, _ROUNDING * start), share) for share in _LOGARITHMIC]
    else:
        way = Decimal(start) - Decimal(best)  # as floats it may overflow
        unit = Decimal(10) ** (way.adjusted() - 2)
        between = (Decimal(start) - Decimal(share) * way for share in _LINEAR)
        found = [float((level / unit).to_integral_value() * unit) for level in between]
    inside = [level for level in found if best <= level < start] or [best]
    wanted = {*inside, *(sign * level for level in asked if sign * level < start)}
    return [sign * level + 0.0 for level in sorted(wanted, reverse=True)]  # never -0.0


def _round_power(start: float, best: float, share: float) -> float:
    """A round number at a share of the way from start down to best, on an axis of decades."""
    decades = math.log10(start / best)
    power = math.log10(start) - share * decades
    return float(f"1e{math.ceil(power - 1e-9)}") if decades >= _WIDE else _rounded(10.0**power, 1 if decades >= 1 else 2, False)


def _records(values: NDArray, rising: bool) -> NDArray:
    signed = np.where(np.isfinite(values), -values if rising else values, np.inf)
    before = np.concatenate([[np.inf], np.minimum.accumulate(signed)[:-1]])
    return values[signed < before]


def _rounded(value: float, digits: int, down: bool) -> float:
    """The nearest number of so many digits that is not below the value, or not above it."""
    if float(f"{value:.{digits - 1}e}") == value:
        return value
    exact = Decimal(value)
    unit = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    rounded = float((exact / unit).to_integral_value(ROUND_FLOOR if down else ROUND_CEILING) * unit)
    return rounded if math.isfinite(rounded) else value
