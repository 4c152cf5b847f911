"""Medians of this thread's own seconds: other programs on the machine slow them less than they slow a wall clock."""

from collections.abc import Callable
from statistics import median
from time import thread_time
from typing import Any


def seconds(f: Callable[[], Any], at_least: float = 0.02, times: int = 9) -> float:
    """The median time of one call, after two calls to warm up."""
    f()
    start = thread_time()
    f()
    calls = max(1, int(at_least / max(thread_time() - start, 1e-7)))
    took = []
    for _ in range(times):
        start = thread_time()
        for _ in range(calls):
            f()
        took.append((thread_time() - start) / calls)
    return median(took)
