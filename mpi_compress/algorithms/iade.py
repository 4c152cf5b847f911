from dataclasses import dataclass
from functools import cached_property

from mpi_compress.algorithms.base import algorithms
from mpi_compress.algorithms.double_encoding import DoubleEncoding, Node, xi
from mpi_compress.core.expressions import Expression


@algorithms.register("iade")
@dataclass(frozen=True)
class IADE(DoubleEncoding):
    """Increasing accuracy and double encoding: Ye, Xiao, Sun (2020), Algorithm 1. s_i, S and v start at 0.

    worker sends     d_i ← Q(∇f_i(x) − s_i, σ_k);  s_i ← s_i + d_i          σ_k = s c'^(k+1)/2
    master answers   S ← S + (1/n) Σ d_i;  u ← Q(S − v, σ_k)
    everyone         v ← v + u;  x ← x − η v

    ‖v_k − ∇f(x_k)‖ ≤ s c'^(k+1) at every round. Theorem 3.1, whose printed proof drops η: with η ≤ 2/(L + µ), L the largest L_i,
    and c = 1 − ηµ < c' < 1, ‖x_k − x*‖ ≤ c'^k ξ, where ξ = max{0, ‖x_0 − x*‖ − ηsc'/(c' − c)} + ηsc'/(c' − c).

    Without [up] or [down] that link is a lattice with floats of 32 bits.
    """

    paper = "AIADE, Algorithm 1"
    step: Expression = "2/(L_max + convexity)"  # η
    rate: Expression = "1 - step*convexity/2"  # c'; (1 + c)/2

    @cached_property
    def c(self) -> float:
        return 1 - self.η * self.µ

    @cached_property
    def c1(self) -> float:
        """c'."""
        return float(self.rate)

    def check(self) -> None:
        super().check()
        if not self.c < self.c1 < 1:
            raise ValueError(
                f"rate = {self.c1:.9g} must be above c = 1 − ηµ = {self.c:.9g} and below 1; "
                "µ is the regulariser's, or what convexity = … says"
            )

    def budget(self, k: int) -> float:
        return self.s * self.c1 ** (k + 1)

    @property
    def proved(self) -> bool:
        return self.η * (self.L + self.µ) <= 2 + 1e-9

    def move(self, node: Node) -> None:
        node.x -= self.η * node.v

    def bound(self, k: int, start: float) -> float:
        return self.c1**k * xi(start, self.η * self.s, self.c, self.c1)
