"""Grids of cases of which the fast suite takes a part that still has every pair of values."""

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import pytest


def every_pair(cases: Iterable[tuple]) -> list[Any]:
    """The cases as parameters of a test: slow ones but for some in which each two values meet that meet in any case."""
    listed = [*cases]
    of_each = [set(combinations(enumerate(map(repr, case)), 2)) for case in listed]
    missing, kept = set().union(*of_each), set()
    while missing:
        best = max(range(len(listed)), key=lambda i: len(of_each[i] & missing))
        kept.add(best)
        missing -= of_each[best]
    return [case if i in kept else pytest.param(*case, marks=pytest.mark.slow) for i, case in enumerate(listed)]
