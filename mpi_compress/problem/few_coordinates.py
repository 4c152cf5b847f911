"""Gradients of functions whose rows hold few of d coordinates.

Such a gradient is ∇data + µx, and ∇data is 0 but on the coordinates that the rows hold: each function keeps these, and no vector.
Where x has few nonzeros, too, to lay out a gradient takes the time of both, and not of d.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
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
        self.mu, self._term = term.mu, term
        self.point: Any = None  # where it was evaluated

    @cached_property
    def _own(self) -> tuple[Indices, DataTerm, Vector]:
        held, rows = self._term.rows.on_own_columns()
        return held, data_term(rows, self._term.loss, self._term.weight, 0.0), np.empty(held.size)

    @property
    def held(self) -> Indices:
        return self._own[0]

    @property
    def values(self) -> Vector:
        return self._own[2]

    def evaluate(self, point: Point) -> float:
        """The value of the function at a point."""
        self.point, (held, own, values) = point, self._own
        value = own.evaluate(taken(point.x, held), values, None)
        return value + 0.5 * self.mu * point.squared_norm if self.mu else value

    @property
    def nonzeros(self) -> Indices | None:
        """The increasing coordinates beyond which µx is 0, if they are few."""
        return self.point.nonzeros if self.mu else _NONE

    @property
    def listed(self) -> Indices | None:
        """The increasing coordinates beyond which the gradient is 0; None: these are not few."""
        return self.held if not self.mu else None if self.nonzeros is None else united(self.held, self.nonzeros)


@dataclass
class LaidOut:
    """A vector (d,) of zeros, in which gradients are laid out one after another."""

    v: Vector
    before: tuple[Indices, Indices] | None = _NONE, _NONE  # coordinates beyond which it is 0; None: it has any numbers

    def become(self, of: FewValues) -> None:
        """The gradient of a function, to the bits of dense additions."""
        nonzeros, before = of.nonzeros, self.before
        self.before = None  # should the next lines be interrupted
        added, cleared = _NONE if nonzeros is None else nonzeros, before or (_NONE, _NONE)
        shards.lay_out(of.held, of.values, of.mu, of.point.x, nonzeros is not None, added, before is None, *cleared, self.v)
        self.before = None if nonzeros is None else (of.held, nonzeros)


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
