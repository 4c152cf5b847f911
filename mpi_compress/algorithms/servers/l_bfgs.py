from dataclasses import dataclass

import numpy as np

from mpi_compress.algorithms.needs import Need
from mpi_compress.algorithms.parts import Direction, Moved, Point, Server, dense, servers, summed
from mpi_compress.core.expressions import Expression
from mpi_compress.core.fields import AtLeastOne
from mpi_compress.messages.kinds import Vector

KNOWN_L = Need(lambda m: "L" in m.setting.numbers, "the server l-bfgs needs L, so a loss that is smooth", of=("L",))
SAME_FUNCTION = Need(
    lambda m: m.batch is None and (m.setting.r == m.setting.n or m.partial_mean == "over all"),
    "the server l-bfgs takes differences of gradients of one f: leave batch out, and let all workers take part",
)
OF_GRADIENTS = Need(lambda m: m.pace(0) > 0, "the server l-bfgs takes differences of gradients, and {name} sends local steps")


@dataclass
class MovedWithPairs(Moved):
    before: Vector  # (2, d) x and g of the round before
    s: Vector  # (memory, d) differences of x, the newest last
    y: Vector  # (memory, d) differences of g, damped
    pairs: int = -1  # how many of them there are so far; −1: no round was before


@servers.register("l-bfgs")
class LBFGS(Server):
    """L-BFGS (Nocedal 1980) on compressed gradients: EF21 + L-BFGS of Wu, Kamzolov, Takáč (OPT 2025), for any estimator.

    s ← x − x⁻;  y ← g − g⁻, damped;  p ← H g by the two loops over the last pairs;  x ← x − γ p

    All of it is known where x is, so curvature costs no bits. γ = 1 is the step to try. Damping (Powell 1978) keeps
    sᵀy ≥ c‖s‖², c the least curvature: where it is less, y ← θ y + (1 − θ) L s. The loops begin with H₀ = 1/min{L, yᵀy/sᵀy} of the
    last pair, 1/L before the first. A regulariser µ that is not in the f_i is part of g. There is no line search: with a coarse
    compressor, such as top-k of few coordinates, γ = 1 may diverge. The paper's text was not at hand: its updates are on a public
    page of formulas, and the damping and H₀ are ours.
    """

    paper = "EF21 + L-BFGS"
    needs = (KNOWN_L, SAME_FUNCTION, OF_GRADIENTS)
    memory: AtLeastOne = 10  # the number of pairs that are kept
    least: Expression = "mu"  # c, the least curvature of a pair, above 0

    def check(self) -> None:
        if not 0 < float(self.least) <= self.L:
            raise ValueError(f"least = {self.least} must be above 0 and at most L = {self.L:g}; where mu = 0, say least = …")

    @property
    def L(self) -> float:
        return self.method.setting.numbers["L"]

    def start(self, x: Point) -> MovedWithPairs:
        d = dense(x).size
        return MovedWithPairs(x, self.begun_mean(x), np.zeros((2, d)), np.zeros((self.memory, d)), np.zeros((self.memory, d)))

    def move(self, s: MovedWithPairs, g: Direction, γ: float, k: int) -> None:
        x = dense(s.x)
        ĝ = summed(g) + self.method.setting.mu_apart * x
        if s.pairs >= 0:
            self.remember(s, x - s.before[0], ĝ - s.before[1])
        s.pairs = max(s.pairs, 0)
        s.before[:] = x, ĝ
        x -= γ * self.product(s, ĝ)

    def remember(self, m: MovedWithPairs, s: Vector, y: Vector) -> None:
        """Keep a pair in the place of the oldest; one of x that stayed is left out."""
        ss, sy, c = float(s @ s), float(s @ y), float(self.least)
        if not ss > 0:
            return
        if sy < c * ss:
            θ = (self.L - c) * ss / (self.L * ss - sy)
            y = θ * y + (1 - θ) * self.L * s
        m.s[:-1], m.y[:-1] = m.s[1:].copy(), m.y[1:].copy()
        m.s[-1], m.y[-1] = s, y
        m.pairs = min(m.pairs + 1, self.memory)

    def product(self, m: MovedWithPairs, g: Vector) -> Vector:
        """H g (d,): the two loops."""
        p, αs = np.array(g), []
        newest = range(self.memory - 1, self.memory - 1 - m.pairs, -1)
        for i in newest:
            αs.append(m.s[i] @ p / (m.s[i] @ m.y[i]))
            p -= αs[-1] * m.y[i]
        p /= min(self.L, (m.y[-1] @ m.y[-1]) / (m.s[-1] @ m.y[-1])) if m.pairs else self.L
        for i, α in zip(reversed(newest), reversed(αs), strict=True):
            p += (α - m.y[i] @ p / (m.s[i] @ m.y[i])) * m.s[i]
        return p
