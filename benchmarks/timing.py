"""Times of two or more ways to do a thing, measured in turn: what disturbs one disturbs the others."""

import time
from collections.abc import Callable, Mapping

import numpy as np


def side_by_side(ways: Mapping[str, Callable[[], object]], seconds: float = 0.3) -> dict[str, float]:
    """Median microseconds of processor time of this thread for one call of each way; waiting for a core is not counted."""
    repeats = {}
    for name, way in ways.items():
        way()
        repeats[name] = max(1, int(1e-3 / max(_once(way, 3), 1e-7)))
    times: dict[str, list[float]] = {name: [] for name in ways}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or min(map(len, times.values())) < 5:
        for name, way in ways.items():
            times[name].append(_once(way, repeats[name]))
    return {name: 1e6 * float(np.median(t)) for name, t in times.items()}


def _once(way: Callable[[], object], repeat: int) -> float:
    start = time.thread_time()
    for _ in range(repeat):
        way()
    return (time.thread_time() - start) / repeat
