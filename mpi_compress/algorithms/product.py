"""An estimator, with its server and its downlink: what a method is that moves x along a direction."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from mpi_compress.algorithms.contract import Method, Setting, algorithms, one_each
from mpi_compress.algorithms.needs import EXACT_DOWN
from mpi_compress.algorithms.parts import Direction, Downlink, Moved, Server, downlinks, servers
from mpi_compress.algorithms.tuning.sizes import tuned
from mpi_compress.core import arrays
from mpi_compress.core.errors import NotMet
from mpi_compress.core.registry import Part
from mpi_compress.core.returned import returns
from mpi_compress.core.streams import Round
from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Link, Message
from mpi_compress.problem.scaled_vector import ScaledVector


@dataclass
class Sum:
    """The sum of the means so far."""

    g: Vector  # (d,) (1/n) Σ g_i


@dataclass
class Known:
    """What every node knows of the rounds beside x."""

    before: Vector | None  # (d,) x⁻, the point before, where gradients are taken there too
    full: bool = True  # True: this round takes full gradients, where a coin says so, which all toss alike at no cost of bits
    batches: int = 0  # minibatches so far: rounds that were not full


class Product(Method):
    """A method of three parts; what its downlink says of states and of the master's message is what the method does."""

    parts: ClassVar[tuple[str, str]] = ("step", "mean")  # the server and the downlink of the method's paper
    server: Any = None  # how x moves: a part, its name or its table; a bound method has the part
    by: Any = None  # the downlink that [down] names; None: the method's own; a bound method has the part
    scaled: ClassVar[bool] = False  # True: x is a scalar times a vector, where the server moves such an x

    def heard_by(self, by: Any) -> Self:
        """This method with the downlink of a job's table, or of its name."""
        by = by if isinstance(by, Downlink) else downlinks.build(by, "by")
        return self.bound_to(by=by, server_given=self.server_given)

    @cached_property
    def server_given(self) -> Server | None:
        """`server` as a part; UserError if there is none of its name."""
        return servers.build(self.server, "server") if isinstance(self.server, str | dict) else self.server

    def own_server(self) -> Server:
        """The server of the method's paper, with those of its parameters that are the method's."""
        return of_method(servers.meant_by(self, self.parts[0]), self)

    def parts_meant(self) -> tuple[Server, Downlink]:
        """The server and the downlink that were given, and else those of the method's paper."""
        by = self.by or of_method(downlinks.meant_by(self, self.parts[1]), self)
        return self.server_given or self.own_server(), by

    @property
    def differs(self) -> str:
        """The parts that are not those of the method's paper, such as "nesterov and ef21-p"; "" if it is the paper's."""
        given = [part.name for part in (self.server_given, self.by) if part is not None]
        return " and ".join(name for name in given if name not in self.parts)

    @property
    def tunes(self) -> bool:
        """True if a parameter of its own says of its messages what `budget` in [up] says: they are tuned."""
        return False

    def settled(self, setting: Setting) -> Self:
        bound = super().settled(replace(setting, up=tuned(setting.up, setting.cost)) if self.tunes else setting)
        server, by = bound.parts_meant()
        server = replace(server, average=server.average or bound.average)
        needs = (*(need for need in bound.needs if need not in by.lifts), *server.needs, *by.needs)
        keeps_rest = by.keeps_rest and EXACT_DOWN in needs
        return bound.bound_to(
            server=server.bind(bound), by=by.bind(bound), needs=needs, answers_each=by.answers_each, keeps_rest=keeps_rest
        )

    def bind(self, setting: Setting) -> Self:
        bound = super().bind(setting)
        if (r := setting.penalty_apart) is not None and not bound.server.proximal:
            those = ", ".join(name for name, server in servers.items() if server.proximal)
            raise NotMet(f"the server {bound.server.name} does not apply the penalty '{r.name}'; these do: {those}")
        bound.by.check()
        bound.server.check()
        bound.server.weight_ratio(1)
        return bound.bound_to(**bound.by.verbs(bound))

    def settles(self, compressor: Compressor, way: str = "up") -> bool:
        return (way == "up" and self.tunes) or super().settles(compressor, way)

    def names(self) -> set[str]:
        return super().names().union(*(part.names() for part in self.parts_meant()))

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

    def answer(self, ups: Sequence[Compressed]) -> Compressed:
        """What the master makes of the workers' messages: their mean."""
        return self.mean(ups)

    def master_answers(self, node: Any, master: Any, ups: Sequence[Compressed], t: Round) -> Message:
        return self.by.master_answers(self, node, master, self.answer(ups), t)

    @returns(one_each)
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


@dataclass(frozen=True)
class Estimator(Part, Product):
    """What workers send, and what the mean of it means; a server and a downlink make it a method. Beside `worker_sends` each verb
    has a default. It finds the point of the gradients as `node.x`, and what `start_known` began as `node.known`."""

    adds_up: ClassVar[bool] = False  # True: workers send differences, so the sum of their means, (1/n) Σ g_i, is the direction
    looks_back: ClassVar[bool] = False  # True: workers take gradients at x⁻, too
    tosses: ClassVar[bool] = False  # True: the next round is full with probability `p`
    server: Any = field(default=None, kw_only=True)  # how x moves along the direction; left out: as the method's paper says

    def __post_init__(self) -> None:
        super().__post_init__()
        self.server_given  # noqa: B018  raises if there is none of its name

    def start_memory(self, x0: Vector) -> Any:
        """What is remembered of the means, before round 0: every node's or the master's, as the downlink says."""
        return Sum(np.zeros_like(x0)) if self.adds_up else None

    def start_known(self, x0: Vector) -> Any:
        """What every node knows beside x before round 0: coins, points before."""
        return Known(x0.copy() if self.looks_back else None) if self.looks_back or self.tosses else None

    @returns(lambda method, given, *_: _terms(method, given))
    def estimate(self, node: Any, memory: Any, mean: Compressed, t: Round) -> Direction | None:
        """The direction that the mean of round t.k means, which `memory` takes in; None: x stays. It must not change `node`."""
        if not self.adds_up:
            return (mean,)
        mean.add_to(memory.g)
        return (memory.g,)

    def renews(self, node: Any) -> bool:
        """True if the mean of this round takes the place of the sum of those before it."""
        return False

    def weight(self, node: Any) -> float:
        """The factor with which the mean of this round is added to that sum."""
        return 1.0

    def next_round(self, node: Any, t: Round) -> None:
        """Change `node.known` for the next round; `node.x` still is where gradients of round t.k were taken."""
        if self.looks_back:
            node.known.before[:] = node.x
        if self.tosses:
            node.known.batches += not node.known.full
            node.known.full = bool(t.shared.random() < float(self.p))  # type: ignore[attr-defined]

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

    def starts_whole(self, k: int) -> bool:
        """True if round k sends whole gradients: all d coordinates, which are counted."""
        return k == 0 and self.first == "gradient"

    def needs_all(self, node: Any, k: int) -> bool:
        return self.starts_whole(k)

    def uplink(self, node: Any, k: int) -> Link:
        return self.up.whole if self.starts_whole(k) else self.up


def _terms(method: Any, given: Any) -> Direction | None:
    """The check of a direction: an array would be taken for d terms."""
    shape, terms = (method.setting.dim,), given if isinstance(given, list | tuple) else [None] * (given is not None)
    if not all(isinstance(each, Compressed) or np.shape(each) == shape for each in terms):
        right = f"a list of terms, each a vector {shape} or what was decoded, such as [g]; or None, and x stays"
        raise ValueError(f"{arrays.shown(given)} was given; it should be {right}")
    return given


def of_method(part: Any, method: Any) -> Any:
    """A part whose parameters are those of a method that have their names."""
    return part(**{f.name: getattr(method, f.name) for f in fields(part) if hasattr(method, f.name)})


def known_as(method: Estimator) -> str:
    """The name of another method that has the parts of this one; "": none has."""
    own = (type(method).worker_sends, *(part.name for part in method.parts_meant()))
    products = {name: cls for name, cls in algorithms.items() if issubclass(cls, Estimator) and cls is not type(method)}
    return next((name for name, cls in products.items() if (cls.worker_sends, *cls.parts) == own), "")
