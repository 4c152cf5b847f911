"""One vector in which functions whose rows hold few of d coordinates lay out their gradients, one at a time.

A gradient of such a function is ∇data + µx, and ∇data is 0 but on the few coordinates that its rows hold: the function keeps these,
and not a vector (d,) of its own. Where x has few nonzeros, too, to lay out a gradient takes the time of both, and not of d.
"""

from functools import cached_property

import numpy as np

from mpi_compress.kernels import shards
from mpi_compress.kernels.vectors import united
from mpi_compress.messages.kinds import Indices, Vector
from mpi_compress.problem.data_terms import DataTerm
from mpi_compress.problem.points import Point

_NONE: Indices = np.empty(0, dtype=np.uint32)


class FewValues:
    """∇data of one function at a point.

    Args:
        held: increasing coordinates beyond which ∇data is 0.
        mu: µ.
    """

    def __init__(self, held: Indices, mu: float):
        self.held, self.mu = held, mu
        self.values: Vector = np.empty(held.size)
        self.point: Point | None = None  # where they were computed

    @property
    def listed(self) -> Indices | None:
        """The increasing coordinates beyond which the gradient is 0; None: these are not few."""
        assert self.point is not None
        if self.mu == 0.0:
            return self.held
        return None if self.point.nonzeros is None else united(self.held, self.point.nonzeros)


class GradientRoom:
    """A vector (d,), allocated at its first use."""

    def __init__(self, dim: int):
        self._dim = dim
        self._whose: tuple[FewValues, Point] | None = None
        self._before: tuple[Indices, Indices] = _NONE, _NONE  # coordinates beyond which it is 0,
        self._is_dirty = False  # unless this is true

    @cached_property
    def _v(self) -> Vector:
        return np.zeros(self._dim)

    def gradient(self, of: FewValues) -> Vector:
        """The gradient (d,) to the bits of dense additions, until another one is asked for."""
        point = of.point
        assert point is not None
        if self._whose is None or self._whose[0] is not of or self._whose[1] is not point:
            self._whose = None  # should the next lines be interrupted
            is_sparse = of.mu == 0.0 or point.nonzeros is not None
            nonzeros = _NONE if of.mu == 0.0 or point.nonzeros is None else point.nonzeros
            before, self._before = self._before, (of.held, nonzeros)
            is_dirty, self._is_dirty = self._is_dirty, True
            shards.lay_out(of.held, of.values, of.mu, point.x, is_sparse, nonzeros, is_dirty, *before, self._v)
            self._is_dirty, self._whose = not is_sparse, (of, point)
        return self._v


class LastGradient:
    """The last gradient of a function with this term: in a vector of its own, or by the few coordinates that its rows hold."""

    def __init__(self, term: DataTerm):
        self.buffer: Vector = np.zeros(term.dim)
        self.is_few = False  # True if it is `few`, and not in the buffer
        self.room = GradientRoom(term.dim)  # one for all functions of a process
        self._term = term

    @cached_property
    def few(self) -> FewValues:
        return FewValues(self._term.held, self._term.mu)

    @property
    def vector(self) -> Vector:
        """The gradient (d,)."""
        return self.room.gradient(self.few) if self.is_few else self.buffer

    @property
    def listed(self) -> Indices | None:
        """The increasing coordinates beyond which it is 0, where they are few."""
        return self.few.listed if self.is_few else None
