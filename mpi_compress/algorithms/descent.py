"""What methods share that step along −γ (g + ∇r(x)), r the regulariser where it is not in the f_i."""

import math
from dataclasses import dataclass
from typing import Any, Literal

from mpi_compress.algorithms.averaging import Average, weight_ratio
from mpi_compress.algorithms.base import Algorithm
from mpi_compress.algorithms.sampling import Sampling, check_batch
from mpi_compress.algorithms.steps import Step
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.problem.scaled_vector import ScaledVector


@dataclass(frozen=True)
class Descent(Algorithm):
    """The parameters of these methods; their nodes have the iterate `x` (d,), and the `mean` of iterates or None."""

    step: Step = "1/L"  # γ, the step size
    batch: int | None = None  # rows of each worker's minibatch; left out: full gradients
    sampling: Sampling = "with-replacement"  # rows drawn uniformly over the shard, or from a new permutation in each epoch
    regularizer: Literal["worker", "master"] | None = None  # where (µ/2)‖x‖² is applied; left out: as [objective] says
    average: Average = "last"  # the point to evaluate: the last iterate, or a weighted mean of all (HT Theorem 9)

    def check(self) -> None:
        if self.batch is not None:
            check_batch(self.batch, self.setting.numbers["N"])
        self.weight_ratio(1)

    def weight_ratio(self, k: int) -> float:
        """w_(k−1) / w_k; ValueError if the weights do not go with the step."""
        return weight_ratio(self.average, self.step, self.setting.numbers["mu"], k)

    def descend(self, node: Any, g: Compressed, k: int) -> None:
        """`step_along` −g, and x into the mean of the iterates, if one is wanted."""
        self.step_along(node.x, g, k)
        self.take_in(node, k + 1)

    def step_along(self, x: Vector | ScaledVector, g: Compressed, k: int) -> None:
        """x ← x − γ_k (g + ∇r(x)), in place; where r is not smooth, x ← prox_{γ_k r}(x − γ_k g)."""
        γ, r = self.gamma(k), self.setting.penalty_apart
        slope = r.gradient(dense(x)) if r is not None and r.smooth else None
        shrink(x, self.kept_by_regulariser(k), at_once=self.batch is None)
        add(x, g, -γ)
        if slope is not None:
            add(x, slope, -γ)
        elif r is not None:
            assign(x, r.prox(dense(x), γ))

    def kept_by_regulariser(self, k: int) -> float:
        """The factor 1 − γ_k µ of x ← x − γ_k ∇r(x); 1 where r is in the f_i."""
        return 1.0 - self.gamma(k) * self.setting.mu_apart

    def take_in(self, node: Any, k: int) -> None:
        """Take the iterate of round k into the mean, if one is wanted."""
        if node.mean is not None:
            node.mean.take_in(dense(node.x), self.weight_ratio(k))

    def iterate(self, node: Any) -> Vector:
        return dense(node.x) if node.mean is None else node.mean.x

    @property
    def is_lemma_step(self) -> bool:
        """True if CAT's descent lemmas speak of the step: x ← x − (1/L) Q(∇f(x)), all of ∇f compressed."""
        exact = self.down.compressor.omega(self.setting.dim) == 0.0
        L = self.setting.numbers.get("L", math.nan)
        return exact and isinstance(self.step, float) and abs(self.step * L - 1) < 1e-12 and not self.setting.mu_apart


def shrink(x: Vector | ScaledVector, factor: float, at_once: bool) -> None:
    """x ← factor · x, in place; `at_once`: not by a scale that is multiplied into x later."""
    if isinstance(x, ScaledVector):
        x.shrink(factor, at_once)
    elif factor != 1.0:
        x *= factor


def add(x: Vector | ScaledVector, c: Compressed | Vector, factor: float) -> None:
    """x ← x + factor · c, in place."""
    if isinstance(x, ScaledVector):
        x.add(c, factor)
    elif isinstance(c, Compressed):
        c.add_to(x, factor)
    else:
        x += factor * c


def assign(x: Vector | ScaledVector, value: Vector) -> None:
    """x ← value (d,), in place."""
    if isinstance(x, ScaledVector):
        x.scale, x = 1.0, x.v
    x[:] = value


def dense(x: Vector | ScaledVector) -> Vector:
    """x (d,) as an array."""
    return x.dense() if isinstance(x, ScaledVector) else x
