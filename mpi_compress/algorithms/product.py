"""A method as a product of three parts: x moves along what workers' messages mean.

- An *estimator* says what workers send, and what the mean of it means: a direction.
- A *server* says how x moves along the direction. The regulariser that is not in the f_i, its prox, and means
  of iterates are its part.
- A *downlink* says what workers hear. From it follows whose the states are: by the mean everybody remembers and moves alike; else
  the master alone does, and workers know what it tells them.

A direction is a sequence of terms, arrays or compressed vectors, that are added one by one: to the last bit x − γ h − γ m is not
x − γ (h + m), and a sparse m is added where it is not 0.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, cast

import numpy as np

from mpi_compress.algorithms.averaging import Average, IterateMean, weight_ratio
from mpi_compress.algorithms.contract import Algorithm, Method, Setting
from mpi_compress.algorithms.formulas import formulas_of, names_of, settled
from mpi_compress.algorithms.needs import EXACT_DOWN, Need
from mpi_compress.algorithms.tuning.links import tuned
from mpi_compress.core.registry import Part, Registry
from mpi_compress.core.streams import Round
from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Link, Message
from mpi_compress.problem.scaled_vector import ScaledVector

Point = Vector | ScaledVector
Direction = Sequence[Compressed | Vector]


@dataclass
class Moved:
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

    moved: Moved
    memory: Any = None  # the estimator's, of the means so far
    known: Any = None  # the estimator's, of coins and of points before

    @property
    def x(self) -> Point:
        """Where gradients are taken (d,)."""
        return self.moved.point


class Bindable(Part):
    """A part of a product, whose formulas are evaluated as it joins a method in a run."""

    paper: ClassVar[str] = ""
    needs: ClassVar[Sequence[Need]] = ()
    method: Any

    def joined(self, method: Method, numbers: Mapping[str, float]) -> Self:
        """This part in a method that is bound to its setting; `numbers` are what formulas may name."""
        formulas = {key: (getattr(self, key), kind) for key, kind in formulas_of(cast(Hashable, type(self))).items()}
        known = {key: settled(key, value, kind, numbers, "") for key, (value, kind) in formulas.items() if value is not None}
        bound = replace(self, **known)  # type: ignore[type-var]
        object.__setattr__(bound, "method", method)
        return bound

    def names(self) -> set[str]:
        """The quantities that its formulas name."""
        return set().union(*(names_of(getattr(self, key), "") for key in formulas_of(cast(Hashable, type(self)))))


@dataclass(frozen=True)
class Server(Bindable, ABC):
    """How x moves along a direction."""

    scales: ClassVar[bool] = False  # True: it moves an x that is a scalar times a vector
    proximal: ClassVar[bool] = False  # True: it applies a penalty that is not in the f_i
    average: Average | None = field(default=None, kw_only=True)  # the point to evaluate; left out: as the algorithm says

    def start(self, x: Point) -> Moved:
        """What moves from x (d,) on, its own copy."""
        return Moved(x, self.begun_mean(x))

    @abstractmethod
    def move(self, s: Any, g: Direction, γ: float, k: int) -> None:
        """Move x along −g in round k, in place."""

    def check(self) -> None:
        """ValueError where a parameter does not go with the setting."""

    def begun_mean(self, x: Point) -> IterateMean | None:
        """The mean of iterates before the first round."""
        return IterateMean.begun(self.average or "last", dense(x))

    def take_in(self, s: Moved, k: int) -> None:
        """Take the iterate of round k into the mean, if one is wanted."""
        if s.mean is not None:
            s.mean.take_in(dense(s.x), self.weight_ratio(k))

    def weight_ratio(self, k: int) -> float:
        """w_(k−1) / w_k; ValueError if the weights do not go with the step."""
        return weight_ratio(self.average or "last", self.method.step, self.method.setting.numbers["mu"], k)

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
class Downlink(Bindable, ABC):
    """What workers hear of the means, or of x."""

    compressor: ClassVar[str] = "identity"  # of [down], where a job names none
    lifts: ClassVar[Sequence[Need]] = (EXACT_DOWN,)  # what estimators need that is no need here
    answers_each: ClassVar[bool] = False  # True: each worker hears a message of its own
    everyone_remembers: ClassVar[bool] = False  # True: every node has the memory of the means; else the master alone

    @abstractmethod
    def start(self, m: "Estimator", x0: Vector) -> Any:
        """What every node knows before round 0, with the point of the gradients as `x` and the estimator's `known`."""

    def start_master(self, m: "Estimator", node: Any) -> Any:
        return None

    @abstractmethod
    def master_answers(self, m: "Estimator", node: Any, master: Any, mean: Compressed, t: Round) -> Message: ...

    @abstractmethod
    def all_hear(self, m: "Estimator", node: Any, down: Compressed, t: Round) -> None: ...

    def downlink(self, m: "Estimator", node: Any, k: int) -> Link:
        return m.down

    def iterate(self, m: "Estimator", node: Any) -> Vector:
        """The point (d,) to evaluate."""
        return dense(node.x)

    def wrap(self, m: "Estimator") -> None:
        """Let workers of a bound method have what this downlink keeps for them."""


servers: Registry[Server] = Registry("server", Server)
downlinks: Registry[Downlink] = Registry("downlink", Downlink)


@dataclass(frozen=True)
class Estimator(Algorithm):
    """What workers send, and what the mean of it means; a server and a downlink make it a method.

    `worker_sends` finds the point of the gradients as `node.x`, and what `start_known` began as `node.known`.
    """

    scaled: ClassVar[bool] = False  # True: x is a scalar times a vector, where the server moves such an x
    by: ClassVar[Any] = None  # the downlink that [down] names; None: the method's own
    server: Any = field(default=None, kw_only=True)  # how x moves along the direction; left out: as the method's paper says

    def __post_init__(self) -> None:
        if self.server is not None and not isinstance(self.server, Server):
            object.__setattr__(self, "server", servers.build(self.server, "server"))

    def start_memory(self, x0: Vector) -> Any:
        """What is remembered of the means, before round 0: every node's or the master's, as the downlink says."""
        return None

    def start_known(self, x0: Vector) -> Any:
        """What every node knows beside x before round 0: coins, points before."""
        return None

    def answer(self, ups: Sequence[Compressed]) -> Compressed:
        """What the master makes of the workers' messages: their mean."""
        return self.mean(ups)

    def estimate(self, node: Any, memory: Any, mean: Compressed, t: Round) -> Direction | None:
        """The direction that the mean of round t.k means, which `memory` takes in; None: x stays. It must not change `node`."""
        return (mean,)

    def next_round(self, node: Any, t: Round) -> None:
        """Change `node.known` for the next round; `node.x` still is where gradients of round t.k were taken."""

    def own_server(self) -> Server:
        """The server of the method's paper."""
        return servers["step"]()

    def own_downlink(self) -> Downlink:
        """The downlink of the method's paper."""
        return downlinks["mean"]()

    @property
    def is_plain(self) -> bool:
        """True if everyone moves x by the gradient step along the mean that is heard."""
        return self.server.name == "step" and self.by.name == "mean"

    @property
    def is_lemma_step(self) -> bool:
        """True if CAT's descent lemmas speak of the step: x ← x − (1/L) Q(∇f(x)), all of ∇f compressed."""
        exact = self.is_plain and self.down.compressor.omega(self.setting.dim) == 0.0
        L = self.setting.numbers.get("L", math.nan)
        return exact and isinstance(self.step, float) and abs(self.step * L - 1) < 1e-12 and not self.setting.mu_apart

    def pace(self, k: int) -> float:
        """The step size of the server in round k."""
        return self.gamma(k)

    def move(self, moved: Moved, g: Direction | None, k: int) -> None:
        """Let x move along −g in round k."""
        if g is not None:
            self.server.move(moved, g, self.pace(k), k)
        self.server.take_in(moved, k + 1)

    # what follows is the same for all of them

    def heard_by(self, by: Any) -> Self:
        """This estimator with the downlink of a job's table, or of its name."""
        with_downlink = replace(self)
        object.__setattr__(with_downlink, "by", downlinks.build(by, "by"))
        return with_downlink

    @property
    def differs(self) -> str:
        """The parts that are not those of the method's paper, such as "nesterov and ef21-p"; "" if it is the paper's."""
        own = (self.own_server().name, self.own_downlink().name)
        given = [part.name for part in (self.server, self.by) if part is not None]
        return " and ".join(name for name in given if name not in own)

    def begin(self, numbers: Mapping[str, float]) -> None:
        by = self.by if self.by is not None else self.own_downlink()
        server = self.server if self.server is not None else self.own_server()
        server = replace(server, average=server.average or self.average)
        needs = [need for need in self.needs if need not in by.lifts]
        object.__setattr__(self, "server", server.joined(self, numbers))
        object.__setattr__(self, "by", by.joined(self, numbers))
        object.__setattr__(self, "needs", (*needs, *server.needs, *by.needs))
        by.wrap(self)

    def within(self, setting: Setting) -> Self:
        return super().within(replace(setting, up=tuned(setting.up, setting.cost)) if self.tunes else setting)

    @property
    def tunes(self) -> bool:
        """True if a parameter of its own says of its messages what `budget` in [up] says: they are tuned."""
        return False

    def settles(self, compressor: Compressor, way: str = "up") -> bool:
        return (way == "up" and self.tunes) or super().settles(compressor, way)

    def names(self) -> set[str]:
        server, by = self.server or self.own_server(), self.by or self.own_downlink()
        return super().names() | server.names() | by.names()

    def check(self) -> None:
        self.server.check()
        self.server.weight_ratio(1)

    @property
    def answers_each(self) -> bool:
        return self.by.answers_each

    def starts_whole(self, k: int) -> bool:
        """True if round k sends whole gradients: all d coordinates, which are counted."""
        return k == 0 and self.first == "gradient"

    def needs_all(self, node: Any, k: int) -> bool:
        return self.starts_whole(k)

    def uplink(self, node: Any, k: int) -> Link:
        return self.up.whole if self.starts_whole(k) else self.up

    def downlink(self, node: Any, k: int) -> Link:
        return self.by.downlink(self, node, k)

    def start(self, x0: Vector) -> Any:
        return self.by.start(self, x0)

    def started(self, x0: Vector) -> Moved:
        """What the server moves, before round 0."""
        x = x0.copy()
        return self.server.start(ScaledVector(x) if self.scaled and self.server.scales else x)

    def start_master(self, node: Any) -> Any:
        return self.by.start_master(self, node)

    def master_answers(self, node: Any, master: Any, ups: Sequence[Compressed], t: Round) -> Message:
        return self.by.master_answers(self, node, master, self.answer(ups), t)

    def answers(self, node: Any, master: Any, ups: Sequence[Compressed], t: Round) -> Sequence[Message]:
        """The master's message to each worker, where the downlink has one for each."""
        return self.by.answers(self, node, master, self.answer(ups), t)

    def point(self, master: Any) -> Vector:
        """The iterate (d,) that the master holds, where each worker hears a message of its own."""
        return self.by.point(self, master)

    def all_hear(self, node: Any, down: Compressed, t: Round) -> None:
        self.by.all_hear(self, node, down, t)

    def iterate(self, node: Any) -> Vector:
        return self.by.iterate(self, node)


def add(x: Point, c: Compressed | Vector, factor: float = 1.0) -> None:
    """x ← x + factor · c, in place."""
    if isinstance(x, ScaledVector):
        x.add(c, factor)
    elif isinstance(c, Compressed):
        c.add_to(x, factor)
    else:
        x += factor * c


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
