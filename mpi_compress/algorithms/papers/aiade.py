import math
from dataclasses import dataclass
from functools import cached_property

from mpi_compress.algorithms.contract import algorithms
from mpi_compress.algorithms.papers import iade
from mpi_compress.algorithms.papers.double_encoding import square
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed, Vector


@dataclass
class Node(iade.Node):
    y: Vector  # (d,) where gradients are taken


@algorithms.register("aiade")
@dataclass(frozen=True)
class AIADE(iade.DoublyEncoded):
    """Accelerated increasing accuracy and double encoding: Ye, Xiao, Sun (2020), Algorithm 2. s_i, S and v start at 0, y at x_0.

    worker sends     d_i ← Q(∇f_i(y) − s_i, σ_k);  s_i ← s_i + d_i          σ_k = ε c^(k+1)/(2k + 2)
    master answers   S ← S + (1/n) Σ d_i;  u ← Q(S − v, σ_k)
    everyone         v ← v + u;  x⁺ ← y − η v;  y ← x⁺ + τ (x⁺ − x);  x ← x⁺

    c = √(1 − √(µ/L)), τ = (√L − √µ)/(√L + √µ), L the largest L_i. ‖v_k − ∇f(y_k)‖ ≤ ε c^(k+1)/(k + 1) at every round; Theorem 4.1:
    ‖x_k − x*‖ ≤ c^k G(k) with G = O(ln k), for η = 1/L. What workers send and the master answers is as in `iade`, at y.

    Without [up] or [down] that link is a lattice with floats of 32 bits.
    """

    paper = "AIADE, Algorithm 2"

    def check(self) -> None:
        super().check()
        if not 0 < self.µ < self.L:
            raise ValueError(f"µ = {self.µ:g} must be above 0 and below L = {self.L:g}")

    @cached_property
    def c(self) -> float:
        return math.sqrt(1 - math.sqrt(self.µ / self.L))

    @cached_property
    def τ(self) -> float:
        return (math.sqrt(self.L) - math.sqrt(self.µ)) / (math.sqrt(self.L) + math.sqrt(self.µ))

    def budget(self, k: int) -> float:
        return self.s * self.c ** (k + 1) / (k + 1)

    @property
    def proved(self) -> bool:
        return abs(self.η * self.L - 1) <= 1e-9

    def start(self, x0: Vector) -> Node:
        return Node(**vars(super().start(x0)), y=x0.copy())

    def point(self, node: Node) -> Vector:  # type: ignore[override]
        return node.y

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:  # type: ignore[override]
        down.add_to(node.v)
        x = node.y - self.η * node.v
        y = x + self.τ * (x - node.x)
        self.note_round(node.past, down, node.y, y, t.k)
        node.x, node.y = x, y

    def bound(self, k: int, start: float) -> float:
        """c^k √(2(Δ + g_k + h_k)/µ), by the recursion in the proof of Theorem 4.1, with Δ ≤ (L + µ)/2 ‖x_0 − x*‖²."""
        sums = self._sums
        if not sums:
            sums.append((self.L + self.µ) / 2 * square(start))
        while len(sums) <= k:
            l, Δ = self.s / len(sums), sums[-1]
            g = 3 * l * math.sqrt(2 / self.L * Δ) / self.c
            h = 5 * l * math.sqrt(2 / self.µ * Δ) / self.c + square(l) / self.L
            sums.append(Δ + g + h)
        return self.c**k * math.sqrt(2 / self.µ * sums[k])

    @cached_property
    def _sums(self) -> list[float]:
        """Δ + g_k + h_k for k = 0, 1, …, as far as they were needed."""
        return []
