"""A method as a product of three parts: x moves along what workers' messages mean.

- An *estimator* says what workers send, and what the mean of it means: a direction.
- A *server* says how x moves along the direction. The regulariser that is not in the f_i, its prox, and means
  of iterates are its part.
- A *downlink* says what workers hear. From it follows whose the states are: by the mean everybody remembers and moves alike; else
  the master alone does, and workers know what it tells them.

A direction is a sequence of terms, arrays or compressed vectors, that are added one by one: to the last bit x − γ h − γ m is not
x − γ (h + m), and a sparse m is added where it is not 0.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from mpi_compress.algorithms.contract import Average
from mpi_compress.algorithms.needs import Need
from mpi_compress.algorithms.steps import Decreasing, step_at, values_of
from mpi_compress.core.errors import UserError
from mpi_compress.core.registry import Part, Registry
from mpi_compress.core.streams import Round
from mpi_compress.messages.batch import Message
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.problem.scaled_vector import ScaledVector

Point = Vector | ScaledVector
Direction = Sequence[Compressed | Vector]


@dataclass
class IterateMean:
    """x̄_T = (1/W_T) Σ_{t ≤ T} w_t x_t of the rounds so far: where HT's convex theorems measure f."""

    x: Vector  # (d,) x̄_T
    ratio: float = 1.0  # W_T / w_T

    def take_in(self, x: Vector, ratio: float) -> None:
        """Take in the next iterate x (d,), with w_(T−1) / w_T = `ratio`."""
        self.ratio = 1.0 + self.ratio * ratio
        self.x += (x - self.x) / self.ratio


@dataclass
class ServerState:
    """What a server moves."""

    x: Point  # (d,) iterate
    mean: IterateMean | None  # of the iterates, where it is wanted

    @property
    def point(self) -> Point:
        """Where gradients are taken (d,)."""
        return self.x


@dataclass
class Node:
    """What every node knows where it hears the mean."""

    state: ServerState
    memory: Any = None  # the estimator's, of the means so far
    known: Any = None  # the estimator's, of coins and of points before

    @property
    def x(self) -> Point:
        """Where gradients are taken (d,)."""
        return self.state.point

    @x.setter
    def x(self, x: Point) -> None:
        """Take the same array, as after `node.x *= 2`; UserError for another one."""
        if x is not self.state.point:
            raise UserError("node.x is another array now: a server moves x, and workers share it; change a copy, node.x.copy()")

    @property
    def iterate(self) -> Vector:
        """The point (d,) to evaluate."""
        return dense(self.state.x) if self.state.mean is None else self.state.mean.x


class PartOfMethod(Part):
    """What a server and a downlink have in common: they are declared by themselves, and bound to a method in a run."""

    paper: ClassVar[str] = ""
    needs: ClassVar[Sequence[Need]] = ()
    method: ClassVar[Any]  # of a bound part: the method, bound to its setting

    def bind(self, method: Any) -> Self:
        """This part in a method that is bound to its setting: a new object, its formulas evaluated."""
        return self.bound_to(method=method, **values_of(self, method.setting.numbers))

    def check(self) -> None:
        """Raise ValueError where a parameter does not go with the method."""


@dataclass(frozen=True)
class Server(PartOfMethod, ABC):
    """How x moves along a direction."""

    scales: ClassVar[bool] = False  # True: it moves an x that is a scalar times a vector
    proximal: ClassVar[bool] = False  # True: it applies a penalty that is not in the f_i
    average: Average | None = field(default=None, kw_only=True)  # the point to evaluate; left out: as the algorithm says

    def begun(self, x0: Vector) -> Any:
        """What moves from x0 (d,) on."""
        x = x0.copy()
        return self.start(ScaledVector(x) if self.scales and self.method.scaled else x)

    def start(self, x: Point) -> ServerState:
        """What moves from x (d,) on, its own copy."""
        return ServerState(x, self.begun_mean(x))

    @abstractmethod
    def move(self, s: Any, g: Direction, γ: float, k: int) -> None:
        """Move x along −g in round k, in place."""

    def begun_mean(self, x: Point) -> IterateMean | None:
        """The mean of x alone; None where the last iterate is wanted."""
        return None if self.average == "last" else IterateMean(dense(x).copy())

    def advance(self, s: Any, g: Direction | None, γ: float, k: int) -> None:
        """Move x along −g in round k, None: x stays; and take it into the mean, if one is wanted."""
        if g is not None:
            self.move(s, g, γ, k)
        if s.mean is not None:
            s.mean.take_in(dense(s.x), self.weight_ratio(k + 1))

    def weight_ratio(self, k: int) -> float:
        """w_(k−1) / w_k for k ≥ 1, with the weights of HT Theorem 9; ValueError if they do not go with the step.

        They are geometric, (1 − µγ/2)^−(t+1) (Theorem 4); uniform, 1 (Theorem 5); or linear, φ + t, for γ_t = a/(φ + t).
        """
        if self.average in ("last", "uniform"):
            return 1.0
        step, µ = self.method.step, self.method.setting.numbers["mu"]
        γ = step_at(step, k)
        if self.average == "linear":
            if not (isinstance(step, Decreasing) and step.power == 1.0):
                raise ValueError(
                    'average = "linear" goes with step = { form = "1/t", a = "4/mu", b = "16 L/mu" } (HT Theorem 9 iii)'
                )
            return (step.b + k - 1) / (step.b + k)
        ratio = 1.0 - µ * γ / 2
        if not 0 < ratio < 1:
            raise ValueError(f'average = "geometric" needs 0 < µγ < 2 (HT Theorem 4); µγ is {µ * γ:g}')
        return ratio

    def along(self, x: Point, g: Direction, γ: float) -> None:
        """x ← x − γ (g + ∇r(x)), in place; where r is not smooth, x ← prox_{γr}(x − γ g)."""
        r = self.method.setting.penalty_apart
        slope = r.gradient(dense(x)) if r is not None and r.smooth else None
        self.regularise(x, γ, at_once=self.method.batch is None)
        for term in g:
            add(x, term, -γ)
        if slope is not None:
            add(x, slope, -γ)
        elif r is not None:
            assign(x, r.prox(dense(x), γ))

    def regularise(self, x: Point, γ: float, at_once: bool) -> None:
        """x ← (1 − γµ) x where (µ/2)‖x‖² is not in the f_i; `at_once`: not by a scale that is multiplied into x later."""
        factor = 1.0 - γ * self.method.setting.mu_apart
        if isinstance(x, ScaledVector):
            x.shrink(factor, at_once)
        elif factor != 1.0:
            x *= factor


@dataclass(frozen=True)
class Downlink(PartOfMethod, ABC):
    """What workers hear of the means, or of x."""

    compressor: ClassVar[str] = "identity"  # of [down], where a job names none
    everyone_remembers: ClassVar[bool] = False  # True: every node has the memory of the means; else the master alone

    @abstractmethod
    def start(self, m: Any, x0: Vector) -> Any:
        """What every node knows before round 0, with the point of the gradients as `x`, the one to evaluate as `iterate`, and the
        estimator's `known`."""

    def start_master(self, m: Any, node: Any) -> Any:
        return None

    @abstractmethod
    def master_answers(self, m: Any, node: Any, master: Any, mean: Compressed, t: Round) -> Message: ...

    @abstractmethod
    def all_hear(self, m: Any, node: Any, down: Compressed, t: Round) -> None: ...

    def verbs(self, m: Any) -> Mapping[str, Any]:
        """Attributes of a bound method that this downlink takes over, such as `worker_sends`, by name: here none."""
        return {}


servers: Registry[Server] = Registry("server", Server)
downlinks: Registry[Downlink] = Registry("downlink", Downlink)


def add(x: Point, c: Compressed | Vector, factor: float = 1.0) -> None:
    """x ← x + factor · c, in place."""
    if isinstance(x, ScaledVector):
        x.add(c, factor)
    elif isinstance(c, np.ndarray):
        x += factor * c
    else:
        c.add_to(x, factor)


def assign(x: Point, value: Vector) -> None:
    """x ← value (d,), in place."""
    if isinstance(x, ScaledVector):
        x.scale, x = 1.0, x.v
    x[:] = value


def dense(x: Point) -> Vector:
    """x (d,) as an array."""
    return x.dense() if isinstance(x, ScaledVector) else x


def summed(g: Direction) -> Vector:
    """The sum of a direction's terms (d,)."""
    first, *others = (term.dense() if isinstance(term, Compressed) else term for term in g)
    return sum(others, start=np.array(first)) if others else first
