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

    step: Step = "1/L"  # γ
    batch: int | None = None  # rows of a minibatch; None: the full gradient
    sampling: Sampling = "with-replacement"
    regularizer: Literal["worker", "master"] | None = None  # where r sits, if not as [objective] says
    average: Average = "last"  # the point to evaluate: the last one, or a weighted mean of all (HT Theorem 9)

    def check(self) -> None:
        if self.batch is not None:
            check_batch(self.batch, self.setting.numbers["N"])
        self.weight_ratio(1)

    def weight_ratio(self, k: int) -> float:
        """w_(k−1) / w_k; ValueError if the weights do not go with the step."""
        return weight_ratio(self.average, self.step, self.setting.numbers["mu"], k)

    def descend(self, node: Any, g: Compressed, k: int) -> None:
        """x ← x − γ_k (g + ∇r(x)), and x into the mean of the iterates, if one is wanted."""
        shrink(node.x, self.kept_by_regulariser(k))
        g.add_to(node.x, -self.gamma(k))
        self.take_in(node, k + 1)

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


def shrink(x: Vector, factor: float) -> None:
    """x ← factor · x, in place."""
    if factor != 1.0:
        x *= factor


def dense(x: Vector | ScaledVector) -> Vector:
    """x (d,) as an array."""
    return x.dense() if isinstance(x, ScaledVector) else x
