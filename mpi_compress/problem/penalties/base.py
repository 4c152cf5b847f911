"""The contract of a penalty: a smooth one has a gradient, another one a prox, and what is known of it is stated."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from mpi_compress.core import arrays
from mpi_compress.core.errors import UserError
from mpi_compress.core.expressions import Expression, evaluate
from mpi_compress.core.fields import Curvature
from mpi_compress.core.registry import Part, Registry
from mpi_compress.core.returned import returns
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.mean_loss import Shapes


def _number(given: Any, x: Vector) -> float:
    found = arrays.number(given, "the value")
    if math.isnan(found) and np.isfinite(x).all():
        raise ValueError("the value is NaN, where x is finite")
    return found


@dataclass(frozen=True)
class Penalty(Part, ABC):
    """r(x), with a weight that may be a formula, as mu."""

    formula: ClassVar[str] = ""
    curvature: ClassVar[Curvature] = math.inf  # the smoothness of r at weight 1; ∞: r is not smooth, and has a prox
    lowest: ClassVar[float] = 0.0  # bounds the second derivatives of r at weight 1 from below; 0: r is convex
    mu: ClassVar[float | None] = None  # µ where r is (µ/2)‖x‖², which the passes over the rows add themselves
    weight: Expression = 0.0  # λ, the weight: a number, or a formula in L, N, d, n

    def evaluated(self, numbers: Mapping[str, float]) -> Self:
        """This penalty with its weight evaluated; ValueError if that is negative or no finite number."""
        weight = evaluate(self.weight, numbers)
        if not 0 <= weight < math.inf:
            raise ValueError(f"weight = {weight:g} must be 0 or more, and finite")
        return replace(self, weight=weight)

    def within_model(self, blocks: Shapes) -> Self:
        """This penalty for a model of these blocks, names and shapes; {} for a loss of a margin. ValueError if it does not fit."""
        return self

    @property
    def λ(self) -> float:
        """The weight, once it is evaluated."""
        return float(self.weight)

    @property
    def smooth(self) -> bool:
        return math.isfinite(self.curvature)

    @property
    def smoothness(self) -> float:
        """The Lipschitz constant of ∇r; ∞ where r is not smooth."""
        return self.λ * self.curvature

    @abstractmethod
    @returns(lambda penalty, given, x: _number(given, x))
    def value(self, x: Vector) -> float:
        """r(x)."""

    @returns(lambda penalty, given, x: arrays.finite_where(x, given, "coordinate"))
    def gradient(self, x: Vector) -> Vector:
        """∇r(x) (d,), a new array, where r is smooth."""
        raise UserError(f"'{self.name}' defines no gradient, which what it states asks for")

    @returns(lambda penalty, given, x, γ: arrays.finite_where(x, given, "coordinate"))
    def prox(self, x: Vector, γ: float) -> Vector:
        """argmin_z r(z) + ‖z − x‖²/(2γ) (d,), a new array, where r is not smooth."""
        raise UserError(f"'{self.name}' defines no prox, which what it states asks for")


penalties: Registry[Penalty] = Registry("penalty", Penalty)
