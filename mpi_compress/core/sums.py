"""Sums of floats that do not depend on the version of Python."""

from collections.abc import Iterable
from functools import reduce
from operator import add


def added(numbers: Iterable[float], start: float = 0) -> float:
    """Numbers added one after the other, ((start + a) + b) + …, each sum rounded. `sum` gives these bits up to Python 3.11; from
    3.12 on it compensates what the additions of floats round off."""
    return reduce(add, numbers, start)
