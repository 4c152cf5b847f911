"""Medians of this thread's own seconds: other programs on the machine slow them less than they slow a wall clock."""

from collections.abc import Callable, Mapping
from statistics import median
from time import perf_counter, thread_time
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


def side_by_side(ways: Mapping[str, Callable[[], Any]], lasting: float = 0.3) -> dict[str, float]:
    """The median microseconds of one call of each way, called in turn: what disturbs one disturbs the others."""
    calls = {name: max(1, int(1e-3 / max(seconds(way, 0, 3), 1e-7))) for name, way in ways.items()}
    took: dict[str, list[float]] = {name: [] for name in ways}
    end = perf_counter() + lasting
    while perf_counter() < end or min(map(len, took.values())) < 5:
        for name, way in ways.items():
            start = thread_time()
            for _ in range(calls[name]):
                way()
            took[name].append((thread_time() - start) / calls[name])
    return {name: 1e6 * median(times) for name, times in took.items()}
