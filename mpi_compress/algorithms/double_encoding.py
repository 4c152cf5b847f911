"""What IADE, AIADE, IADE-SGD and DQGD share: differences are sent, by a quantiser whose precision grows from round to round."""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from mpi_compress.algorithms.contract import Algorithm
from mpi_compress.algorithms.needs import SMOOTH, WHOLE_GRADIENTS, Need
from mpi_compress.core.errors import PrecisionExhausted
from mpi_compress.core.expressions import Expression, evaluate
from mpi_compress.core.streams import Round
from mpi_compress.kernels.vectors import norm
from mpi_compress.messages.kinds import Compressed, Lattice, Vector, lattice_bits
from mpi_compress.messages.link import Link, Message
from mpi_compress.problem.objective import Objective

LATTICE = {"compressor": "lattice", "codec": {"float": 32}}
EPS = float(np.finfo(float).eps)  # one unit in the last place
TINY = float(np.finfo(float).tiny)  # the least normal float


@dataclass
class Past:
    """What every node knows of the rounds so far, beside its vectors."""

    start: float  # ‖x0 − x*‖; NaN where x* is not known
    moved: float = 0.0  # how far the point of the gradients moved in the last round, where a range is bounded by it
    k: int = 0  # rounds so far
    ball: tuple[float, float] = (math.nan, math.nan)  # σ and M of the last message down


@dataclass
class Worker:
    s: Vector  # (d,) s_i, the master's copy of ∇f_i
    g: Vector  # (d,) g_i of the last round
    ball: tuple[float, float] = (math.nan, math.nan)  # σ and M of its last message up

    def hear(self, d: Compressed) -> None:
        """s ← s + d, what the master heard."""
        d.add_to(self.s)
        self.ball = ball(d)


@dataclass
class Node:
    x: Vector  # (d,) iterate
    v: Vector  # (d,) what every node takes for the gradient
    past: Past


@dataclass
class Master:
    S: Vector  # (d,) (1/n) Σ s_i


@dataclass(frozen=True)
class DoubleEncoding(Algorithm):
    """The parts of the AIADE paper's Algorithms 1 to 3 that are not in their lines: parameters, links, and what is logged.

    Both links are lattices whose σ_k both ends know; an exact link can stand in for either. The range M of a message is sent, or,
    with range = "bound", follows from what both ends know: L ‖y_k − y_{k−1}‖ + σ_{k−1} up and L ‖y_k − y_{k−1}‖ + 3σ_{k−1} down,
    L the largest L_i and y the point of the gradients; round 0 sends M.

    Without [up] or [down] that link is a lattice with floats of 32 bits.

    A run ends where the budget of a round falls below one unit in the last place of g_i, or below what such a unit of y changes it
    by, or below all normal floats.
    """

    compressor = "lattice"
    links: ClassVar[Mapping[str, Any]] = {"up": LATTICE, "down": LATTICE}
    sets_compressor = True
    needs: ClassVar[Sequence[Need]] = (WHOLE_GRADIENTS, SMOOTH)
    stochastic: ClassVar[bool] = False  # True: the quantisers are to be unbiased
    logs = ("lower_up", "upper_up")
    theory = "1/L_max"
    level: Expression = "g0"  # s, in aiade ε: the scale of the bound on ‖v − ∇f‖, which falls from round to round
    step: Expression = "1/L_max"  # η, the step size
    convexity: Expression = "mu"  # µ, the strong convexity of f: mu is the regulariser's, and f may have more

    @abstractmethod
    def budget(self, k: int) -> float:
        """What ‖v_k − ∇f(y_k)‖ cannot exceed."""

    @abstractmethod
    def bound(self, k: int, start: float) -> float:
        """The theorem's bound on ‖x_k − x*‖, with ‖x_0 − x*‖ = start."""

    @property
    @abstractmethod
    def proved(self) -> bool:
        """True if the theorem covers the step."""

    def sigma(self, k: int) -> float:
        """σ_k: half of the budget for each direction."""
        return self.budget(k) / 2

    def names(self) -> set[str]:
        return super().names() | {"L_max"}

    def knows(self) -> Mapping[str, float]:
        numbers = dict(self.setting.numbers)
        for key in ("convexity", "rho", "theory", "step"):
            if hasattr(self, key):
                numbers[key] = evaluate(getattr(self, key), numbers)
        return numbers

    @property
    def L(self) -> float:
        """The largest L_i."""
        return self.setting.numbers["L_max"]

    @cached_property
    def η(self) -> float:
        """The step."""
        return float(self.step)

    @cached_property
    def µ(self) -> float:
        """The convexity of f."""
        return float(self.convexity)

    @cached_property
    def s(self) -> float:
        """The level, s or ε."""
        return float(self.level)

    def check(self) -> None:
        for key, value in (("level", self.s), ("step", self.η)):
            if not value > 0:
                raise ValueError(f"{key} = {value:g} must be more than 0")
        self.quantises  # noqa: B018  raises where a link cannot keep its share of the budget

    def uplink(self, node: Any, k: int) -> Link:
        return self._in_round(self.up, k, node.past.moved, 1)

    def downlink(self, node: Any, k: int) -> Link:
        return self._in_round(self.down, k, node.past.moved, 3)

    def _in_round(self, link: Link, k: int, moved: float, old: int) -> Link:
        """A link in round k, whose messages have at most L·moved + old·σ_{k−1} to say."""
        known: dict[str, Any] = {"sigma": self.sigma(k), "stochastic": self.stochastic}
        if k == 0:
            known["range"] = "sent"
        elif link.compressor.bounds_range:
            known["radius"] = rounded_up(self.L * moved + old * self.sigma(k - 1))
        own = {name: value for name, value in known.items() if hasattr(link.compressor, name)}  # the identity has none of them
        return link.at_once(**own)

    @cached_property
    def quantises(self) -> bool:
        """True if the link of some direction is not exact.

        Raises:
            ValueError: a link cannot keep its share of the budget.
        """
        d = self.setting.dim
        ways = (("up", self.up), ("down", self.down))
        able = [link.compressor.check_precision(d, self.name, way, self.stochastic) for way, link in ways]
        for (way, link), quantises in zip(ways, able, strict=True):
            if not quantises and link.codec.float_format.bits < 32:  # its rounding is in no budget
                raise ValueError(
                    f"{self.name} needs {way}.compressor = lattice with floats of 16 bits: with the identity, use float = 32 or 64"
                )
        return any(able)

    def worker_logs(self, worker: Worker) -> Sequence[float]:
        return lemma(worker.ball, self.setting.dim, self.stochastic)

    def trace_logs(self, means: Mapping[str, float], node: Any) -> Mapping[str, float]:
        lower, upper = lemma(node.past.ball, self.setting.dim, self.stochastic)
        columns = {**means, "lower_down": lower, "upper_down": upper}
        if self.setting.x_star is None:
            return columns
        return {**columns, "bound": self.bound(node.past.k, node.past.start) if self.proved else math.nan}

    def worker_vector(self, worker: Worker) -> Vector:
        return worker.g

    def mean_logs(self, mean: Vector, node: Any) -> Mapping[str, float]:
        """gap: ‖v_k − ∇f(y_k)‖ of the last round over what it cannot exceed; NaN where no lattice makes a difference."""
        return {"gap": norm(node.v - mean) / self.budget(node.past.k - 1) if node.past.k and self.quantises else math.nan}


class DoublyEncoded(DoubleEncoding):
    """The lines of Algorithms 1 and 3, which differ in g_i and in σ_k. In Algorithm 2 workers and the master do the same, at y."""

    def point(self, node: Node) -> Vector:
        """Where gradients are taken (d,)."""
        return node.x

    def start(self, x0: Vector) -> Node:
        x_star = self.setting.x_star
        return Node(x0.copy(), np.zeros_like(x0), Past(math.nan if x_star is None else norm(x0 - x_star)))

    def start_worker(self, node: Node, f: Objective) -> Worker:
        return Worker(np.zeros(f.dim), np.zeros(f.dim))

    def start_master(self, node: Node) -> Master:
        return Master(np.zeros_like(node.x))

    def worker_sends(self, node: Node, worker: Worker, f: Objective, t: Round) -> Message:
        Q = self.uplink(node, t.k)
        y = self.point(node)
        worker.g[:] = f.gradient(y, self.rows(f, t))
        refuse_rounding(self, worker.g, y, t.k)
        d = Q.pack(worker.g - worker.s, t)
        worker.hear(Q.unpack(d))  # s_i ← s_i + d_i
        return d

    def master_answers(self, node: Node, master: Master, ups: Sequence[Compressed], t: Round) -> Message:
        self.mean(ups).add_to(master.S)
        return self.downlink(node, t.k).pack(master.S - node.v, t)

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        down.add_to(node.v)
        x = node.x - self.η * node.v
        self.note_round(node.past, down, node.x, x, t.k)
        node.x = x

    def note_round(self, past: Past, down: Compressed, before: Vector, after: Vector, k: int) -> None:
        """Note the message of round k, and how far the point of the gradients moved."""
        if self.up.compressor.bounds_range or self.down.compressor.bounds_range:
            past.moved = norm(after - before)
        past.k = k + 1
        past.ball = ball(down)


def refuse_rounding(method: DoubleEncoding, g: Vector, y: Vector, k: int) -> None:
    """End the run where the budget of round k is lost in the rounding of the gradient g (d,) at y (d,).

    Raises:
        PrecisionExhausted: it is.
    """
    if method.quantises and method.budget(k) < max(TINY, EPS * norm(g), EPS * method.L * norm(y)):
        raise PrecisionExhausted(f"a precision of {method.budget(k):g} is finer than floats")


def check_rate(c1: float, c: float, formula: str) -> None:
    """Raise ValueError unless c' is above c, which the formula gives, and below 1."""
    if not c < c1 < 1:
        said = "µ is the regulariser's, or what convexity = … says"
        raise ValueError(f"rate = {c1:.9g} must be above c = {formula} = {c:.9g} and below 1; {said}")


def lemma(ball: tuple[float, float], dim: int, stochastic: bool) -> tuple[float, float]:
    """Bits a coordinate by Lemma 2.1, from σ and M: what a code for the whole ball of radius M needs, and what will do."""
    sigma, radius = ball
    if math.isnan(sigma):
        return math.nan, math.nan
    return max(0.0, math.log2(radius / sigma)) if radius else 0.0, lattice_bits(dim, sigma, radius, stochastic) / dim


def ball(sent: Compressed) -> tuple[float, float]:
    """σ and M of a message of lattice points; NaN for others."""
    return (sent.sigma, sent.radius) if isinstance(sent, Lattice) else (math.nan, math.nan)


def rounded_up(bound: float) -> float:
    """A bound that both ends compute, rounded up to 7 binary digits, so that its last bits cannot part them."""
    mantissa, exponent = math.frexp(bound)
    return math.ldexp(math.ceil(128 * mantissa) / 128, exponent)


def square(x: float) -> float:
    """x²; infinite where it overflows."""
    try:
        return x**2
    except OverflowError:
        return math.inf


def xi(start: float, s: float, c: float, rate: float) -> float:
    """ξ with x_k ≤ c'^k ξ wherever x_{k+1} ≤ c x_k + s c'^{k+1}, x_0 = start (Lemma 7.1; its text drops a prime)."""
    settled = s * rate / (rate - c)
    return max(0.0, start - settled) + settled
