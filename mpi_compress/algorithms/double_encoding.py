"""What IADE, AIADE, IADE-SGD and DQGD share: differences are sent, by a quantiser whose precision grows from round to round."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from mpi_compress.algorithms.vocabulary import (
    SMOOTH,
    WHOLE_GRADIENTS,
    Algorithm,
    Batch,
    Compressed,
    Expression,
    Lattice,
    Link,
    Log,
    Message,
    PrecisionExhausted,
    Round,
    Rounds,
    Shards,
    Vector,
    fact,
    lattice_bits,
    norm,
)

LATTICE = {"compressor": "lattice", "codec": {"float": 32}}
EPS = float(np.finfo(float).eps)  # one unit in the last place
TINY = float(np.finfo(float).tiny)  # the least normal float


@dataclass
class Past:
    """What every node knows of the rounds so far, beside its vectors."""

    start: float  # ‖x0 − x*‖; NaN where x* is not known
    moved: float = 0.0  # how far the point of the gradients moved in the last round
    k: int = 0  # rounds so far
    ball: tuple[float, float] = (math.nan, math.nan)  # σ and M of the last message down

    def note(self, down: Compressed, move: Vector, k: int) -> None:
        """Note the message of round k, and the move of the point of the gradients (d,)."""
        self.moved, self.k, self.ball = norm(move), k + 1, ball(down)


@dataclass
class Worker:
    s: Vector  # (m, d) s_i, the master's copy of ∇f_i
    g: Vector  # (m, d) g_i of the last round
    ball: Vector  # (m, 2) σ and M of its last message up

    def hear(self, d: Compressed) -> None:
        """s ← s + d, what the master heard."""
        d.add_to(self.s)
        self.ball[:] = np.array(np.broadcast_arrays(*ball(d))).T


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
    """What the AIADE paper's Algorithms 1 to 3 share. 1 and 3 differ in g_i and in σ_k; in 2 gradients are taken at y.

    Both links are lattices whose σ_k both ends know; an exact link can stand in for either. The range M of a message is sent, or,
    with range = "bound", follows from what both ends know: L ‖y_k − y_{k−1}‖ + σ_{k−1} up and L ‖y_k − y_{k−1}‖ + 3σ_{k−1} down,
    L the largest L_i and y the point of the gradients; round 0 sends M.

    Without [up] or [down] that link is a lattice with floats of 32 bits.

    A run ends where the budget of a round falls below one unit in the last place of g_i, or below what such a unit of y changes it
    by, or below all normal floats.
    """

    compressor = "lattice"
    links = {"up": LATTICE, "down": LATTICE}
    sets_compressor = True
    needs = [WHOLE_GRADIENTS, SMOOTH]
    stochastic = False  # True: the quantisers are to be unbiased
    theory = "1/L_max"
    level: Expression = "g0"  # s, in aiade ε: the scale of the bound on ‖v − ∇f‖, which falls from round to round
    step: Expression = "theory"  # η, the step size
    convexity: Expression = "mu"  # µ, the strong convexity of f: mu is the regulariser's, and f may have more

    # of a bound method: the largest L_i, and its parameters' values
    L = property(lambda self: self.setting.numbers["L_max"])
    η = property(lambda self: self.step)
    µ = property(lambda self: self.convexity)
    s = property(lambda self: self.level)

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
        elif link.compressor.follows == "range":
            known["radius"] = rounded_up(self.L * moved + old * self.sigma(k - 1))
        own = {name: value for name, value in known.items() if hasattr(link.compressor, name)}  # the identity has none of them
        return link.at_once(**own)

    @cached_property
    def quantises(self) -> bool:
        """True if the link of some direction is not exact; ValueError if a link cannot keep its share of the budget."""
        ways = (("up", self.up), ("down", self.down))
        able = [sets_precision(self, link.compressor, way) for way, link in ways]
        for (way, link), quantises in zip(ways, able, strict=True):
            if not quantises and link.codec.float_format.bits < 32:  # its rounding is in no budget
                raise ValueError(
                    f"{self.name} needs {way}.compressor = lattice with floats of 16 bits: with the identity, use float = 32 or 64"
                )
        return any(able)

    @fact
    def log(self) -> Log:
        """The lemma's bits a coordinate, up and down, the theorem's bound, and the gap.

        gap: ‖v_k − ∇f(y_k)‖ of the last round over what it cannot exceed; NaN where no lattice makes a difference.
        """
        d = self.setting.dim

        def of_means(means: Mapping[str, float], node: Any) -> Mapping[str, float]:
            lower, upper = lemma(node.past.ball, d, self.stochastic)
            columns = {**means, "lower_down": lower, "upper_down": upper}
            if self.setting.x_star is None:
                return columns
            return {**columns, "bound": self.bound(node.past.k, node.past.start) if self.proved else math.nan}

        def gap(mean: Vector, node: Any) -> Mapping[str, float]:
            k = node.past.k
            return {"gap": norm(node.v - mean) / self.budget(k - 1) if k and self.quantises else math.nan}

        bits = lambda w: np.array([lemma(ball, d, self.stochastic) for ball in w.ball.tolist()]).T  # noqa: E731
        return Log(("lower_up", "upper_up"), bits, of_means, attrgetter("g"), gap, of_rows=True)

    def point(self, node: Node) -> Vector:
        """Where gradients are taken (d,)."""
        return node.x

    def start(self, x0: Vector) -> Node:
        x_star = self.setting.x_star
        return Node(x0.copy(), np.zeros_like(x0), Past(math.nan if x_star is None else norm(x0 - x_star)))

    def start_workers(self, node: Node, fs: Shards) -> Worker:
        return Worker(fs.zeros(), fs.zeros(), np.full((len(fs), 2), np.nan))

    def start_master(self, node: Node) -> Master:
        return Master(np.zeros_like(node.x))

    def workers_send(self, node: Node, w: Worker, fs: Shards, t: Rounds) -> Batch:
        Q = self.uplink(node, t.k)
        y = self.point(node)
        w.g[:] = fs.gradients(y, self.rows(fs, t))
        if self.quantises and self.budget(t.k) < max(TINY, EPS * max(map(norm, w.g)), EPS * self.L * norm(y)):
            raise PrecisionExhausted(f"a precision of {self.budget(t.k):g} is finer than floats")
        d = Q.pack(w.g - w.s, t)
        w.hear(Q.unpack(d))  # s_i ← s_i + d_i
        return d

    def master_answers(self, node: Node, master: Master, ups: Any, t: Round) -> Message:
        self.mean(ups).add_to(master.S)
        return self.downlink(node, t.k).pack(master.S - node.v, t)

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        down.add_to(node.v)
        x = node.x - self.η * node.v
        node.past.note(down, x - node.x, t.k)
        node.x = x


def sets_precision(method: DoubleEncoding, C: Any, way: str) -> bool:
    """True if a method sets the precision σ of a direction's compressor from round to round; False where that is exact."""
    if C.name != "lattice":
        if C.omega(method.setting.dim) != 0.0:
            raise ValueError(f"{method.name} needs a quantiser of a given precision: {way}.compressor = lattice, or identity")
        return False
    if C.sigma is not None or C.radius is not None:
        raise ValueError(f"{method.name} sets the sigma and the radius of {way}.compressor itself: leave them out")
    if C.stochastic and not method.stochastic:
        raise ValueError(f"{method.name} needs a deterministic lattice: leave stochastic out of {way}.compressor")
    if C.range == "bound" and method.stochastic:
        raise ValueError(
            f'{method.name} knows no bound on how stochastic gradients change: it needs range = "sent" in {way}.compressor'
        )
    return True


def lemma(ball: tuple[float, float], dim: int, stochastic: bool) -> tuple[float, float]:
    """Bits a coordinate by Lemma 2.1, from σ and M: what a code for the whole ball of radius M needs, and what will do."""
    sigma, radius = ball
    if math.isnan(sigma):
        return math.nan, math.nan
    return max(0.0, math.log2(radius / sigma)) if radius else 0.0, lattice_bits(dim, sigma, radius, stochastic) / dim


def ball(sent: Compressed) -> tuple[float, Any]:
    """σ and M of a message of lattice points, M (m,) of rows; NaN for others."""
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
