"""An estimator, with its server and its downlink: what a method is that moves x along a direction."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from mpi_compress.algorithms.contract import Algorithm, Average, Setting, algorithms, in_setting
from mpi_compress.algorithms.needs import EXACT_DOWN, ROUNDED_DOWN, check_needs
from mpi_compress.algorithms.parts import Direction, Downlink, ServerState, downlinks, servers
from mpi_compress.algorithms.sampling import Sampling
from mpi_compress.algorithms.steps import Step
from mpi_compress.core import arrays
from mpi_compress.core.errors import NotMet, UserError
from mpi_compress.core.returned import returns
from mpi_compress.core.streams import Round
from mpi_compress.messages.batch import Message
from mpi_compress.messages.kinds import Compressed, Vector


@dataclass
class Sum:
    """The sum of the means so far."""

    g: Vector  # (d,) (1/n) Σ g_i


@dataclass
class RoundState:
    """What every node knows of the rounds beside x."""

    before: Vector | None  # (d,) x⁻, the point before, where gradients are taken there too
    full: bool = True  # True: this round takes full gradients, where a coin says so, which all toss alike at no cost of bits
    batches: int = 0  # minibatches so far: rounds that were not full


@dataclass(frozen=True)
class MinibatchParameters:
    """Parameters of estimators that take whole gradients, or those of minibatches."""

    step: Step = "1/L"  # γ, the step size
    batch: int | None = None  # samples of each worker's minibatch; left out: full gradients
    sampling: Sampling = "with-replacement"  # samples drawn uniformly over the shard, or from a new permutation in each epoch


@dataclass(frozen=True)
class UsualParameters(MinibatchParameters):
    """Those of estimators whose regulariser may be applied at the master, too, and whose iterates may be averaged."""

    regularizer: Literal["worker", "master"] | None = None  # where (µ/2)‖x‖² is applied; left out: as [objective] says
    average: Average = "last"  # the point to evaluate: the last iterate, or a weighted mean of all (HT Theorem 9)


@dataclass(frozen=True)
class Estimator(Algorithm):
    """What workers send, and what the mean of it means; a server and a downlink make it a method. Beside `worker_sends` each verb
    has a default. It finds the point of the gradients as `node.x`, and what `start_known` began as `node.known`."""

    parts: ClassVar[tuple[str, str]] = ("step", "mean")  # the server and the downlink of the method's paper
    scaled: ClassVar[bool] = False  # True: x is a scalar times a vector, where the server moves such an x
    adds_up: ClassVar[bool] = False  # True: workers send differences, so the sum of their means, (1/n) Σ g_i, is the direction
    beside: ClassVar[Collection[str]] = ()  # what is known beside x: "before", x⁻; "coin", by which rounds are full, of chance `p`
    by: ClassVar[Any] = None  # what workers hear: the downlink that [down] names; left out: "mean", or the second of parts
    server: Any = field(default=None, kw_only=True)  # how x moves; left out: "step", or the first of the class's parts

    def __post_init__(self) -> None:
        super().__post_init__()
        own = of_method(servers, self.parts[0], self) if self.server is None else self.server
        server = servers.build(own, "server") if isinstance(own, str | dict) else own
        if vars(type(self)).get("by") is not None:
            says = f'parts = ("{server.name}", …) in the class names its downlink'
            raise UserError(f"{type(self).__name__}: by is a key of [down]; {says}")
        vars(self).update(server=server, by=of_method(downlinks, self.parts[1], self))

    def bind(self, setting: Setting) -> Self:
        bound: Self = in_setting(self, setting)
        server = replace(self.server, average=self.server.average or getattr(bound, "average", "last")).bind(bound)
        by, r = self.by.bind(bound), setting.penalty_apart
        needs = [need for need in bound.needs if need is not EXACT_DOWN or by.everyone_remembers]
        own = [ROUNDED_DOWN if need is EXACT_DOWN else need for need in needs]
        bound = bound.bound_to(server=server, by=by, needs=(*own, *server.needs, *by.needs))
        check_needs(bound)
        bound.check()
        if r is not None and not server.proximal:
            those = ", ".join(name for name, each in servers.items() if each.proximal)
            raise NotMet(f"the server {server.name} does not apply the penalty '{r.name}'; these do: {those}")
        by.check()
        server.check()
        server.weight_ratio(1)
        return bound.bound_to(**by.verbs(bound))

    def start_memory(self, x0: Vector) -> Any:
        """What is remembered of the means, before round 0: every node's or the master's, as the downlink says."""
        return Sum(np.zeros_like(x0)) if self.adds_up else None

    def start_known(self, x0: Vector) -> Any:
        """What every node knows beside x before round 0: coins, points before."""
        return RoundState(x0.copy() if "before" in self.beside else None) if self.beside else None

    def answer(self, ups: Sequence[Compressed]) -> Compressed:
        """What the master makes of the workers' messages: their mean."""
        return self.mean(ups)

    @returns(lambda method, given, *_: _terms(method, given))
    def estimate(self, node: Any, memory: Any, mean: Compressed, t: Round) -> Direction | None:
        """The direction that the mean of round t.k means, which `memory` takes in; None: x stays. It must not change `node`."""
        if not self.adds_up:
            return (mean,)
        mean.add_to(memory.g)
        return (memory.g,)

    def move(self, s: ServerState, g: Direction | None, k: int) -> None:
        """Let x move along −g in round k."""
        self.server.advance(s, g, self.gamma(k), k)

    def next_round(self, node: Any, t: Round) -> None:
        """Change `node.known` for the next round; `node.x` still is where gradients of round t.k were taken."""
        if "before" in self.beside:
            node.known.before[:] = node.x
        if "coin" in self.beside:
            node.known.batches += not node.known.full
            node.known.full = bool(t.shared.random() < self.p)  # type: ignore[attr-defined]

    def needs_all(self, node: Any, k: int) -> bool:
        return super().needs_all(node, k) or ("coin" in self.beside and node.known.full)

    def start(self, x0: Vector) -> Any:
        return self.by.start(self, x0)

    def start_master(self, node: Any) -> Any:
        return self.by.start_master(self, node)

    def master_answers(self, node: Any, master: Any, ups: Sequence[Compressed], t: Round) -> Message:
        return self.by.master_answers(self, node, master, self.answer(ups), t)

    def all_hear(self, node: Any, down: Compressed, t: Round) -> None:
        self.by.all_hear(self, node, down, t)

    def iterate(self, node: Any) -> Vector:
        return node.iterate


def _terms(method: Any, given: Any) -> Direction | None:
    """The check of a direction: an array would be taken for d terms."""
    shape: tuple[int, ...] = (method.setting.dim,)
    terms: Any = given if isinstance(given, list | tuple) else [None] * (given is not None)
    if not all(isinstance(each, Compressed) or np.shape(each) == shape for each in terms):
        right = f"a list of terms, each a vector {shape} or what was decoded, such as [g]; or None, and x stays"
        raise ValueError(f"{arrays.shown(given)} was given; it should be {right}")
    return given


def of_method(registry: Any, name: str, method: Any) -> Any:
    """The part of that name whose parameters are those of a method that have their names."""
    part = registry[name]
    return part(**{f.name: getattr(method, f.name) for f in fields(part) if hasattr(method, f.name)})


def heard_by(method: Estimator, by: Any) -> Estimator:
    """A declared method with the downlink of a job's table, or of its name."""
    return method.bound_to(by=by if isinstance(by, Downlink) else downlinks.build(by, "by"))


def other_parts(method: Estimator) -> str:
    """The parts that are not those of the method's paper, such as "nesterov and ef21-p"; "" if it is the paper's."""
    return " and ".join(part.name for part in (method.server, method.by) if part.name not in method.parts)


def known_as(method: Estimator) -> str:
    """The name of another method that has the parts of this one; "": none has."""
    own = (type(method).worker_sends, method.server.name, method.by.name)
    products = {name: cls for name, cls in algorithms.items() if issubclass(cls, Estimator) and cls is not type(method)}
    return next((name for name, cls in products.items() if (cls.worker_sends, *cls.parts) == own), "")
