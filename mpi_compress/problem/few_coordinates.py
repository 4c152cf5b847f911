"""Gradients of functions whose rows hold few of d coordinates.

Such a gradient is ∇data + µx, and ∇data is 0 but on the coordinates that the rows hold: each function keeps these, and no vector.
Where x has few nonzeros, too, to lay out a gradient takes the time of both, and not of d.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mpi_compress.kernels import shards
from mpi_compress.kernels.vectors import taken, united
from mpi_compress.messages.kinds import Indices, Vector
from mpi_compress.problem.data_terms import DataTerm, data_term
from mpi_compress.problem.points import Point

_NONE: Indices = np.empty(0, dtype=np.uint32)


class FewValues:
    """∇data of one function of sparse rows at a point: `values` on the increasing coordinates `held`, beyond which it is 0."""

    def __init__(self, term: DataTerm):
        self.held, rows = term.rows.on_own_columns()
        self.mu, self.values, self._term = term.mu, np.empty(self.held.size), data_term(rows, term.loss, term.weight, 0.0)
        self.point: Any = None  # where it was evaluated

    def evaluate(self, point: Point) -> float:
        """The value of the function at a point."""
        self.point = point
        value = self._term.evaluate(taken(point.x, self.held), self.values, None)
        return value + 0.5 * self.mu * point.squared_norm if self.mu else value

    @property
    def nonzeros(self) -> Indices | None:
        """The increasing coordinates beyond which µx is 0, if they are few."""
        return self.point.nonzeros if self.mu else _NONE

    @property
    def listed(self) -> Indices | None:
        """The increasing coordinates beyond which the gradient is 0; None: these are not few."""
        return self.held if not self.mu else None if self.nonzeros is None else united(self.held, self.nonzeros)


class LaidOut:
    """As many vectors (d,) as gradients were asked for at once, in which these are laid out one after another."""

    def __init__(self, dim: int):
        self._vectors = np.empty((0, dim))
        self._held: list[tuple[Indices, Indices] | None] = []  # coordinates beyond which each is 0; None: it has any numbers

    def gradients(self, each: Sequence[FewValues]) -> Vector:
        """The gradients (m, d) of some functions, to the bits of dense additions, until others are asked for."""
        if len(each) > len(self._held):
            self._vectors, self._held = np.zeros((len(each), self._vectors.shape[1])), [(_NONE, _NONE)] * len(each)
        for i, of in enumerate(each):
            nonzeros, before = of.nonzeros, self._held[i]
            self._held[i] = None  # should the next line be interrupted
            added, cleared = _NONE if nonzeros is None else nonzeros, before or (_NONE, _NONE)
            v = self._vectors[i]
            shards.lay_out(of.held, of.values, of.mu, of.point.x, nonzeros is not None, added, before is None, *cleared, v)
            self._held[i] = None if nonzeros is None else (of.held, nonzeros)
        return self._vectors[: len(each)]
