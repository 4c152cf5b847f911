"""What IADE, AIADE, IADE-SGD and DQGD share: differences are sent, by a quantiser whose precision grows from round to round."""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from mpi_compress.algorithms.base import Algorithm
from mpi_compress.core.errors import PrecisionExhausted
from mpi_compress.core.expressions import Expression, evaluate
from mpi_compress.core.streams import Round
from mpi_compress.kernels.vectors import norm
from mpi_compress.messages.compressors.lattice import LatticeQuantizer
from mpi_compress.messages.kinds import Compressed, Lattice, Vector, lattice_bits
from mpi_compress.messages.link import Link, Message
from mpi_compress.problem.objective import Objective

LATTICE = {"compressor": "lattice", "codec": {"float": 32}}
EPS = float(np.finfo(float).eps)  # one unit in the last place
TINY = float(np.finfo(float).tiny)  # the least normal float


@dataclass
class Node:
    x: Vector  # (d,) iterate
    v: Vector  # (d,) what every node takes for the gradient
    y: Vector = field(default_factory=lambda: np.empty(0))  # (d,) the point of the next gradients, where that is not x
    moved: float = 0.0  # how far that point moved in the last round, where a range is bounded by it
    k: int = 0  # rounds so far
    start: float = math.nan  # ‖x0 − x*‖, where x* is known
    ball: tuple[float, float] = (math.nan, math.nan)  # σ and M of the last message down


@dataclass
class Worker:
    s: Vector  # (d,) s_i: what the master has of ∇f_i
    g: Vector  # (d,) g_i of the last round
    ball: tuple[float, float] = (math.nan, math.nan)  # σ and M of its last message up


@dataclass
class Master:
    S: Vector  # (d,) (1/n) Σ s_i


@dataclass(frozen=True)
class DoubleEncoding(Algorithm):
    """The lines of AIADE's Algorithms 1 to 3 that do not depend on σ_k and on the step.

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
    stochastic: ClassVar[bool] = False  # whether the quantisers are to be unbiased
    logs = ("lower_up", "upper_up")
    level: Expression = "g0"  # s or ε
    step: Expression = "1/L_max"  # η
    convexity: Expression = "mu"  # µ of f, where it is more than the regulariser's

    @abstractmethod
    def budget(self, k: int) -> float:
        """What ‖v_k − ∇f(y_k)‖ cannot exceed."""

    @abstractmethod
    def move(self, node: Node) -> None:
        """The step that every node takes by v."""

    @abstractmethod
    def bound(self, k: int, start: float) -> float:
        """The theorem's bound on ‖x_k − x*‖, with ‖x_0 − x*‖ = start."""

    @property
    @abstractmethod
    def proved(self) -> bool:
        """Whether the theorem covers the step."""

    def sigma(self, k: int) -> float:
        """σ_k: half of the budget for each direction."""
        return self.budget(k) / 2

    def point(self, node: Node) -> Vector:
        """Where the next gradients are taken."""
        return node.x

    def gradient(self, node: Node, f: Objective, t: Round) -> Vector:
        """g_i."""
        return f.gradient(self.point(node))

    def names(self) -> set[str]:
        return super().names() | {"L_max"}

    def knows(self) -> Mapping[str, float]:
        numbers = dict(self.setting.numbers)
        for key in ("convexity", "rho", "step"):
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
        name = type(self).name  # type: ignore[attr-defined]
        if self.setting.mu_apart:
            raise ValueError(f'{name} encodes differences of the whole of ∇f_i: it needs regularizer = "worker"')
        if "L_max" not in self.setting.numbers:
            raise ValueError(f"{name} needs a loss that is smooth")
        for key, value in (("level", self.s), ("step", self.η)):
            if not value > 0:
                raise ValueError(f"{key} = {value:g} must be more than 0")
        for way, link in (("up", self.up), ("down", self.down)):
            self.check_link(way, link)

    def check_link(self, way: str, link: Link) -> None:
        """Raise ValueError where the link of a direction cannot keep its share of the budget."""
        name, q = type(self).name, link.compressor  # type: ignore[attr-defined]
        if isinstance(q, LatticeQuantizer):
            if q.sigma is not None or q.radius is not None:
                raise ValueError(f"{name} sets the sigma and the radius of {way}.compressor itself: leave them out")
            if q.stochastic and not self.stochastic:
                raise ValueError(f"{name} needs a deterministic lattice: leave stochastic out of {way}.compressor")
            if q.range == "bound" and self.stochastic:
                raise ValueError(
                    f'{name} knows no bound on how stochastic gradients change: it needs range = "sent" in {way}.compressor'
                )
        elif q.omega(link.dim) != 0.0:
            raise ValueError(f"{name} needs a quantiser of a given precision: {way}.compressor = lattice, or identity")

    def uplink(self, node: Node, k: int) -> Link:
        return self._link(self.up, node, k, 1)

    def downlink(self, node: Node, k: int) -> Link:
        return self._link(self.down, node, k, 3)

    def _link(self, link: Link, node: Node, k: int, old: int) -> Link:
        """A link in round k, whose messages have at most L·moved + old·σ_{k−1} to say; made once for all that ask."""
        made = self._made.get(old)
        if made is None or made[0] != (k, node.moved):
            made = self._made[old] = (k, node.moved), self._link_of_round(link, node, k, old)
        return made[1]

    @cached_property
    def _made(self) -> dict[int, tuple[tuple[int, float], Link]]:
        return {}

    def _link_of_round(self, link: Link, node: Node, k: int, old: int) -> Link:
        known: dict[str, Any] = {"sigma": self.sigma(k), "stochastic": self.stochastic}
        if k == 0:
            known["range"] = "sent"
        elif isinstance(link.compressor, LatticeQuantizer) and link.compressor.range == "bound":
            known["radius"] = rounded_up(self.L * node.moved + old * self.sigma(k - 1))
        return link.at(**known)

    @cached_property
    def lattices(self) -> list[LatticeQuantizer]:
        return [link.compressor for link in (self.up, self.down) if isinstance(link.compressor, LatticeQuantizer)]

    @cached_property
    def bounds_a_range(self) -> bool:
        return any(q.range == "bound" for q in self.lattices)

    def start(self, x0: Vector) -> Node:
        x_star = self.setting.x_star
        return Node(x0.copy(), np.zeros_like(x0), start=math.nan if x_star is None else norm(x0 - x_star))

    def start_worker(self, node: Node, f: Objective) -> Worker:
        return Worker(np.zeros(f.dim), np.zeros(f.dim))

    def start_master(self, node: Node) -> Master:
        return Master(np.zeros_like(node.x))

    def asks_for(self, node: Node) -> Vector | None:
        return self.point(node)

    def worker_sends(self, node: Node, worker: Worker, f: Objective, t: Round) -> Message:
        worker.g[:] = self.gradient(node, f, t)
        if self.lattices and self.budget(t.k) < max(TINY, EPS * norm(worker.g), EPS * self.L * norm(self.point(node))):
            raise PrecisionExhausted(f"a precision of {self.budget(t.k):g} is finer than floats")
        Q = self.uplink(node, t.k)
        d = Q.pack(worker.g - worker.s, t)
        sent = Q.unpack(d)
        sent.add_to(worker.s)
        worker.ball = ball(sent)
        return d

    def master_answers(self, node: Node, master: Master, ups: Sequence[Compressed], t: Round) -> Message:
        self.mean(ups).add_to(master.S)
        return self.downlink(node, t.k).pack(master.S - node.v, t)

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        down.add_to(node.v)
        before = self.point(node).copy() if self.bounds_a_range else None
        self.move(node)
        if before is not None:
            node.moved = norm(self.point(node) - before)
        node.k = t.k + 1
        node.ball = ball(down)

    def lemma(self, sigma: float, radius: float) -> tuple[float, float]:
        """Bits a coordinate by Lemma 2.1: what a code for the whole ball of radius M needs, and what will do."""
        if math.isnan(sigma):
            return math.nan, math.nan
        dim = self.setting.dim
        return max(0.0, math.log2(radius / sigma)) if radius else 0.0, lattice_bits(dim, sigma, radius, self.stochastic) / dim

    def worker_logs(self, worker: Worker) -> Sequence[float]:
        return self.lemma(*worker.ball)

    def trace_logs(self, means: Mapping[str, float], node: Node) -> Mapping[str, float]:
        lower, upper = self.lemma(*node.ball)
        columns = {**means, "lower_down": lower, "upper_down": upper}
        if self.setting.x_star is None:
            return columns
        return {**columns, "bound": self.bound(node.k, node.start) if self.proved else math.nan}

    def worker_vector(self, worker: Worker) -> Vector:
        return worker.g

    def mean_logs(self, mean: Vector, node: Node) -> Mapping[str, float]:
        """gap: ‖v_k − ∇f(y_k)‖ of the last round over what it cannot exceed; NaN where no lattice makes a difference."""
        return {"gap": norm(node.v - mean) / self.budget(node.k - 1) if node.k and self.lattices else math.nan}


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
