import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from mpi_compress.algorithms.contract import algorithms
from mpi_compress.algorithms.papers.double_encoding import check_rate, square, xi
from mpi_compress.algorithms.papers.iade import DoublyEncoded
from mpi_compress.algorithms.sampling import Sampling
from mpi_compress.core.expressions import Expression


@algorithms.register("iade-sgd")
@dataclass(frozen=True)
class IADESGD(DoublyEncoded):
    """Increasing accuracy and double encoding for stochastic gradients: Ye, Xiao, Sun (2020), Algorithm 3. s_i, S and v start at 0.

    worker sends     d_i ← Q(g_i − s_i, ε_k);  s_i ← s_i + d_i          ε_k = ρ²L²s c'^(k+1)/2,  g_i by a minibatch
    master answers   S ← S + (1/n) Σ d_i;  u ← Q(S − v, ε_k)
    everyone         v ← v + u;  x ← x − η v

    Q is unbiased with a mean squared error of at most ε_k. Theorem 5.2: with η = 1/(ρL), c = 1 − ηµ < c' < 1 and the weak growth
    condition (1/n) Σ E‖g_i‖² ≤ 2ρL (f(x) − f*), E‖x_k − x*‖² ≤ c'^k ξ, ξ = max{0, ‖x_0 − x*‖² − sc'/(c' − c)} + sc'/(c' − c).

    Where x* fits every sample, the condition holds for any batch with ρL = L_row, the largest smoothness of one sample; else no ρ
    suffices near x*. µ is the regulariser's; where there is none, `convexity` gives it.

    Without [up] or [down] that link is a lattice with floats of 32 bits.
    """

    paper = "AIADE, Algorithm 3"
    stochastic: ClassVar[bool] = True
    theory = "1/(rho*L_max)"
    level: Expression = "(g0*step)**2"  # s, a squared distance: the scale of the bound on E‖v − ∇f‖², which is ρ²L²s c'^(k+1)
    rho: Expression = "L_row/L_max"  # ρ, the constant of the weak growth condition
    step: Expression = theory  # η, the step size
    rate: Expression = "1 - step*convexity/2"  # c', the factor by which the bound falls each round: above c = 1 − ηµ, below 1
    batch: int = 1  # rows of each worker's minibatch
    sampling: Sampling = "with-replacement"  # rows drawn uniformly over the shard, or from a new permutation in each epoch

    @cached_property
    def c(self) -> float:
        return 1 - self.µ / (float(self.rho) * self.L)

    @cached_property
    def c1(self) -> float:
        """c'."""
        return float(self.rate)

    def check(self) -> None:
        super().check()
        check_rate(self.c1, self.c, "1 − µ/(ρL)")

    def sigma(self, k: int) -> float:
        """√ε_k."""
        return float(self.rho) * self.L * math.sqrt(self.s * self.c1 ** (k + 1) / 2)

    def budget(self, k: int) -> float:
        """√(2ε_k), for the root of the mean square."""
        return math.sqrt(2) * self.sigma(k)

    @property
    def proved(self) -> bool:
        return abs(self.η * float(self.rho) * self.L - 1) <= 1e-9

    def bound(self, k: int, start: float) -> float:
        """For the root of the mean square."""
        return math.sqrt(self.c1**k * xi(square(start), self.s, self.c, self.c1))
