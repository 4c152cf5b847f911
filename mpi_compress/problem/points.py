"""Where functions are evaluated. What workers of one process find out about a point, they find out once."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

import numpy as np

from mpi_compress.kernels.vectors import are_equal, sum_of_squares
from mpi_compress.messages.kinds import Indices, Vector

_FEW = 8  # a vector (d,) with at most d/8 nonzeros is written faster by them than as a whole


def are_few(nonzeros: float, dim: int) -> bool:
    return _FEW * nonzeros <= dim


class Point:
    """A point x (d,) that does not change as long as this object is used."""

    def __init__(self, x: Vector):
        self.x = x
        self._compared: Point | None = None  # the last point that this one was compared with,
        self._equal = False  # and what was found

    @classmethod
    def at(cls, x: Vector) -> "Point":
        """A point that can be kept: later steps of an iterate do not change it."""
        return cls(x.copy())

    def equals(self, other: "Point") -> bool:
        """True if all coordinates are equal; NaN equals nothing."""
        if self._compared is not other:
            self._compared, self._equal = other, are_equal(self.x, other.x)
        return self._equal

    @cached_property
    def nonzeros(self) -> Indices | None:
        """The increasing indices j with x_j ≠ 0, if they are few."""
        differ = self.x != 0.0
        return np.flatnonzero(differ).astype(np.uint32) if are_few(int(np.count_nonzero(differ)), self.x.size) else None

    @cached_property
    def squared_norm(self) -> float:
        """Σ x_j², added in the order of j."""
        return sum_of_squares(self.x)


class Iterate:
    """The iterate that all workers of a process look at in one round, while it does not change."""

    def __init__(self) -> None:
        self._x: Vector | None = None
        self._point: Point | None = None

    @contextmanager
    def fixed(self, x: Vector | None) -> Iterator[None]:
        """`x` (d,), if there is one, is not changed meanwhile."""
        self._x, self._point = x, None
        try:
            yield
        finally:
            self._x = self._point = None

    def point(self, x: Vector) -> Point:
        """The point x: the same object for all who ask for the iterate; of any other vector one that must not be kept."""
        if x is not self._x:
            return Point(x)
        if self._point is None:
            self._point = Point.at(x)
        return self._point
