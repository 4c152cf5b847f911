"""Round levels that a target can have, from the easiest to the hardest."""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np
from numpy.typing import NDArray

_LOGARITHMIC = (0.25, 0.5, 0.75)  # shares of the way from the start to the best value, on an axis of decades
_ROUNDING = 1e-12  # times the start: a lower target would ask for what rounding decides
_LINEAR = (0.5, 0.8, 0.95)
_WIDE = 3.0  # decades, from which on fixed targets are powers of ten


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


def _rounded(value: float, digits: int, down: bool) -> float:
    """The nearest number of so many digits that is not below the value, or not above it."""
    if float(f"{value:.{digits - 1}e}") == value:
        return value
    exact = Decimal(value)
    unit = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    rounded = float((exact / unit).to_integral_value(ROUND_FLOOR if down else ROUND_CEILING) * unit)
    return rounded if math.isfinite(rounded) else value
