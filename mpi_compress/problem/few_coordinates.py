"""Gradients of functions whose rows hold few of d coordinates.

Such a gradient is ∇data + µx, and ∇data is 0 but on the coordinates that the rows hold: each function keeps these, and no vector.
Where x has few nonzeros, too, to lay out a gradient takes the time of both, and not of d.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mpi_compress.kernels import shards
from mpi_compress.kernels.vectors import united
from mpi_compress.messages.kinds import Indices, Vector
from mpi_compress.problem.data_terms import DataTerm
from mpi_compress.problem.points import Point

_NONE: Indices = np.empty(0, dtype=np.uint32)


class FewValues:
    """∇data of one function at a point, on the increasing coordinates `term.held`, beyond which it is 0."""

    def __init__(self, term: DataTerm):
        self.term = term
        self.point: Point | None = None  # where they were computed

    @cached_property
    def values(self) -> Vector:
        return np.empty(self.term.held.size)

    def evaluate(self, point: Point) -> float:
        """The value at a point."""
        self.point = point
        return self.term.evaluate_few(point, self.values)

    @property
    def nonzeros(self) -> Indices | None:
        """The increasing coordinates of µx that are not 0, if they are few."""
        assert self.point is not None
        return self.point.nonzeros if self.term.mu else _NONE

    @property
    def listed(self) -> Indices | None:
        """The increasing coordinates beyond which the gradient is 0; None: these are not few."""
        return None if self.nonzeros is None else united(self.term.held, self.nonzeros) if self.term.mu else self.term.held


@dataclass
class LaidOut:
    """A vector (d,) of zeros, in which gradients are laid out one after another."""

    v: Vector
    of: FewValues | None = None  # whose gradient it is, at `point`
    point: Point | None = None
    before: tuple[Indices, Indices] = _NONE, _NONE  # coordinates beyond which it is 0,
    is_dirty: bool = False  # unless this is true

    def become(self, of: FewValues) -> None:
        """The gradient of a function, to the bits of dense additions."""
        if self.of is of and self.point is of.point:
            return
        self.of, point, nonzeros, held = None, of.point, of.nonzeros, of.term.held  # None: should the next lines be interrupted
        assert point is not None
        is_sparse, nonzeros = nonzeros is not None, _NONE if nonzeros is None else nonzeros
        before, self.before, is_dirty, self.is_dirty = self.before, (held, nonzeros), self.is_dirty, True
        shards.lay_out(held, of.values, of.term.mu, point.x, is_sparse, nonzeros, is_dirty, *before, self.v)
        self.is_dirty, self.of, self.point = not is_sparse, of, point


class LaidOutRows:
    """As many vectors (d,) as gradients were asked for at once."""

    def __init__(self, dim: int):
        self._vectors, self._laid = np.empty((0, dim)), list[LaidOut]()

    def gradients(self, each: Sequence[FewValues]) -> Vector:
        """The gradients (m, d) of some functions, until others are asked for."""
        if len(each) > len(self._laid):
            self._vectors = np.zeros((len(each), self._vectors.shape[1]))
            self._laid = [LaidOut(v) for v in self._vectors]
        for laid, of in zip(self._laid, each, strict=False):
            laid.become(of)
        return self._vectors[: len(each)]
