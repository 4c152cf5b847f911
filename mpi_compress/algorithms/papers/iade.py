import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mpi_compress.algorithms.double_encoding import LATTICE, DoubleEncoding, Master, Node, square, xi
from mpi_compress.algorithms.vocabulary import (
    OPTIMUM,
    ROUNDED_DOWN,
    Compressed,
    Expression,
    Message,
    Need,
    Round,
    Sampling,
    Theorem,
    Vector,
    algorithms,
    norm,
)

PROVED = Need(lambda m: m.proved, "the theorem of {name} does not cover this step")


class IADETheorem(Theorem):
    needs = (OPTIMUM, PROVED)
    rate = "rate"

    def terms(self, m, node, worker, f) -> Sequence[Vector]:
        return (worker.g,)

    def V(self, m, node: Node, workers, master, known) -> float:
        """max{‖x − x*‖, D c'^k, D‖v − ∇f(x⁻)‖/s}, D = ηsc'/(c' − c), which falls by c' (`rate`): Theorem 3.1 by its Lemma 7.1."""
        D, k = m.η * m.s * m.rate / (m.rate - m.c), node.past.k
        gap = norm(node.v - workers[0]) / m.s if k else 0.0
        return max(math.sqrt(known.distance2()), D * m.rate**k, D * gap)


@algorithms.register("iade")
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
    theorem = IADETheorem()
    theory = "2/(L_max + convexity)"
    c_is = "1 − ηµ"
    rate: Expression = "1 - step*convexity/2"  # c', the factor by which the bound falls each round: above c = 1 − ηµ, below 1

    @cached_property
    def c(self) -> float:
        return 1 - self.η * self.µ

    def check(self: Any) -> None:
        DoubleEncoding.check(self)
        if not self.c < self.rate < 1:
            said = "µ is the regulariser's, or what convexity = … says"
            raise ValueError(f"rate = {self.rate:.9g} must be above c = {self.c_is} = {self.c:.9g} and below 1; {said}")

    def budget(self, k: int) -> float:
        return self.s * self.rate ** (k + 1)

    @property
    def proved(self) -> bool:
        return self.η * (self.L + self.µ) <= 2 + 1e-9

    def bound(self, k: int, start: float) -> float:
        return self.rate**k * xi(start, self.η * self.s, self.c, self.rate)


DOWN_OF_32 = Need(
    lambda m: m.down.codec.float_format.bits >= 32,
    "{name} gives all of its budget to σ_k, and none to messages down in 16 bits: use float = 32 or 64 there, or take iade",
)


@algorithms.register("dqgd")
class DQGD(IADE):
    """Quantised gradient differences, one direction: Khirirat, Feyzmahdavian, Johansson (2018), by a precision that grows.

    worker sends     d_i ← Q(∇f_i(x) − s_i, σ_k);  s_i ← s_i + d_i          σ_k = s c'^(k+1)
    master answers   d̄ ← (1/n) Σ d_i, exactly; in floats of 32 bits, S − v as in `iade`
    everyone         v ← v + d̄;  x ← x − η v

    As in `iade`, ‖v_k − ∇f(x_k)‖ ≤ s c'^(k+1), so Theorem 3.1 of the AIADE paper holds here too.

    Without [up] that link is a lattice with floats of 32 bits.
    """

    paper = "DQGD, AIADE's rival"
    theorem = IADE.theorem
    needs = [*IADE.needs, ROUNDED_DOWN, DOWN_OF_32]
    links = {"up": LATTICE}

    def sigma(self, k: int) -> float:
        return self.budget(k)

    def master_answers(self, node: Node, master: Master, ups: Any, t: Round) -> Message:
        if self.down.codec.float != 64:
            return super().master_answers(node, master, ups, t)
        return self.down.pack(self.mean(ups), t)


@algorithms.register("iade-sgd")
class IADESGD(DoubleEncoding):
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
    stochastic = True
    theory = "1/(rho*L_max)"
    c_is = "1 − µ/(ρL)"
    level: Expression = "(g0*step)**2"  # s, a squared distance: the scale of the bound on E‖v − ∇f‖², which is ρ²L²s c'^(k+1)
    rho: Expression = "L_row/L_max"  # ρ, the constant of the weak growth condition
    rate: Expression = "1 - step*convexity/2"  # c', the factor by which the bound falls each round: above c = 1 − ηµ, below 1
    batch: int = 1  # samples of each worker's minibatch
    sampling: Sampling = "with-replacement"  # samples drawn uniformly over the shard, or from a new permutation in each epoch

    check = IADE.check

    @cached_property
    def c(self) -> float:
        return 1 - self.µ / (self.rho * self.L)

    def sigma(self, k: int) -> float:
        """√ε_k."""
        return self.rho * self.L * math.sqrt(self.s * self.rate ** (k + 1) / 2)

    def budget(self, k: int) -> float:
        """√(2ε_k), for the root of the mean square."""
        return math.sqrt(2) * self.sigma(k)

    @property
    def proved(self) -> bool:
        return abs(self.η * self.rho * self.L - 1) <= 1e-9

    def bound(self, k: int, start: float) -> float:
        """The bound on √(E‖x_k − x*‖²)."""
        return math.sqrt(self.rate**k * xi(square(start), self.s, self.c, self.rate))


@dataclass
class NodeWithY(Node):
    y: Vector  # (d,) where gradients are taken


class AIADETheorem(Theorem):
    needs = (OPTIMUM, PROVED)
    rate = 1.0
    terms = IADETheorem.terms

    def V(self, m, node, workers, master, known) -> float:
        """max{1, ‖x − x*‖ and ‖v − ∇f(y⁻)‖ over their bounds}, which stays 1: Theorem 4.1 has no factor of a round."""
        k = node.past.k
        gap = norm(node.v - workers[0]) / m.budget(k - 1) if k else 0.0
        return max(1.0, math.sqrt(known.distance2()) / m.bound(k, node.past.start), gap)


@algorithms.register("aiade")
class AIADE(DoubleEncoding):
    """Accelerated increasing accuracy and double encoding: Ye, Xiao, Sun (2020), Algorithm 2. s_i, S and v start at 0, y at x_0.

    worker sends     d_i ← Q(∇f_i(y) − s_i, σ_k);  s_i ← s_i + d_i          σ_k = ε c^(k+1)/(2k + 2)
    master answers   S ← S + (1/n) Σ d_i;  u ← Q(S − v, σ_k)
    everyone         v ← v + u;  x⁺ ← y − η v;  y ← x⁺ + τ (x⁺ − x);  x ← x⁺

    c = √(1 − √(µ/L)), τ = (√L − √µ)/(√L + √µ), L the largest L_i. ‖v_k − ∇f(y_k)‖ ≤ ε c^(k+1)/(k + 1) at every round; Theorem 4.1:
    ‖x_k − x*‖ ≤ c^k G(k) with G = O(ln k), for η = 1/L. What workers send and the master answers is as in `iade`, at y.

    Without [up] or [down] that link is a lattice with floats of 32 bits.
    """

    paper = "AIADE, Algorithm 2"
    theorem = AIADETheorem()

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

    def start(self, x0: Vector) -> NodeWithY:
        return NodeWithY(**vars(super().start(x0)), y=x0.copy())

    def point(self, node: Any) -> Vector:
        return node.y

    def all_hear(self, node: NodeWithY, down: Compressed, t: Round) -> None:  # type: ignore[override]
        down.add_to(node.v)
        x = node.y - self.η * node.v
        y = x + self.τ * (x - node.x)
        node.past.note(down, y - node.y, t.k)
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
