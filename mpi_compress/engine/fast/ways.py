"""The table of ways, by method."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpi_compress.algorithms.contract import Method
from mpi_compress.algorithms.hosted import HostedWorkers


class Way(HostedWorkers):
    """Plays hosted workers as they would play one by one, to the last bit."""

    @classmethod
    @abstractmethod
    def holds(cls, hosted: HostedWorkers) -> bool:
        """True if this way plays these workers."""


W = TypeVar("W", bound=type[Way])
ways: dict[type[Method], list[type[Way]]] = {}


def register(*methods: type[Method]) -> Callable[[W], W]:
    """Class decorator: a way to play the workers of these methods, but not of what derives from them."""

    def put(way: W) -> W:
        for method in methods:
            ways.setdefault(method, []).append(way)
        return way

    return put


def fastest(hosted: HostedWorkers) -> HostedWorkers:
    """The first way that holds; the workers as they are, where none does."""
    for way in ways.get(type(hosted.algorithm), ()):
        if hosted.workers and way.holds(hosted):
            return way(hosted.algorithm, hosted.objectives, hosted.workers, hosted.streams)
    return hosted


def side_by_side(memories: Mapping[int, Any], name: str) -> NDArray[np.float64]:
    """Moves the arrays `name` of workers' memories into the rows of one array (m, …), and returns it. A memory and its row are the
    same bytes as long as the memory keeps this array."""
    rows = np.array([getattr(memory, name) for memory in memories.values()])
    for memory, row in zip(memories.values(), rows, strict=True):
        setattr(memory, name, row)
    return rows
