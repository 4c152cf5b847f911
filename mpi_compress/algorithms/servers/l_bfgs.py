from dataclasses import dataclass

from mpi_compress.algorithms.second_order import Pairs
from mpi_compress.algorithms.vocabulary import (
    AtLeastOne,
    Direction,
    Expression,
    Need,
    Point,
    Server,
    ServerState,
    dense,
    servers,
    summed,
)

KNOWN_L = Need(lambda m: "L" in m.setting.numbers, "the server l-bfgs needs L, so a loss that is smooth")
SAME_FUNCTION = Need(
    lambda m: m.batch is None and (m.setting.r == m.setting.n or m.partial_mean == "over all"),
    "the server l-bfgs takes differences of gradients of one f: leave batch out, and let all workers take part",
)


@dataclass
class PairsState(ServerState):
    pairs: Pairs


@servers.register("l-bfgs")
class LBFGS(Server):
    """L-BFGS (Nocedal 1980) on compressed gradients: EF21 + L-BFGS of Wu, Kamzolov, Takáč (OPT 2025), for any estimator.

    s ← x − x⁻;  y ← g − g⁻, damped;  p ← H g by the two loops over the last pairs;  x ← x − γ p

    All of it is known where x is, so curvature costs no bits. γ = 1 is the step to try. Damping (Powell 1978) keeps
    sᵀy ≥ c‖s‖², c the least curvature: where it is less, y ← θ y + (1 − θ) L s. The loops begin with H₀ = 1/min{L, yᵀy/sᵀy} of the
    last pair, 1/L before the first. A regulariser µ that is not in the f_i is part of g. There is no line search: with a coarse
    compressor, such as top-k of few coordinates, γ = 1 may diverge. The paper's text was not at hand: its updates are on a public
    page of formulas, and the damping and H₀ are ours.

    Tried and left out: H₀ from diagonals of compressed Hessians, which helped on one set of six; a lattice whose grid follows ‖g‖
    in place of qsgd's, which gained less than another seed may. H₀ from whole Hessians is `bfgs` with `memory`.
    """

    paper = "EF21 + L-BFGS"
    needs = (KNOWN_L, SAME_FUNCTION)
    memory: AtLeastOne = 10  # the number of pairs that are kept
    least: Expression = "mu"  # c, the least curvature of a pair, above 0

    def check(self) -> None:
        if not 0 < self.least <= self.L:
            raise ValueError(f"least = {self.least} must be above 0 and at most L = {self.L:g}; where mu = 0, say least = …")

    @property
    def L(self) -> float:
        return self.method.setting.numbers["L"]

    def start(self, x: Point) -> PairsState:
        return PairsState(x, self.begun_mean(x), Pairs.begun(self.memory, dense(x).size))

    def move(self, s: PairsState, g: Direction, γ: float, k: int) -> None:
        x = dense(s.x)
        ĝ = summed(g) + self.method.setting.mu_apart * x
        s.pairs.follow(x, ĝ, self.least, self.L)
        x -= γ * s.pairs.product(ĝ, lambda p: p / s.pairs.curvature(self.L))
