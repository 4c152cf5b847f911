"""An estimator, with its server and its downlink: what a method is that moves x along a direction."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from mpi_compress.algorithms.averaging import Average
from mpi_compress.algorithms.contract import Algorithm, Setting, algorithms
from mpi_compress.algorithms.needs import EXACT_DOWN, WHOLE_GRADIENTS, Need
from mpi_compress.algorithms.parts import Direction, Downlink, Moved, Server, downlinks, servers
from mpi_compress.algorithms.sampling import Sampling
from mpi_compress.algorithms.steps import Step
from mpi_compress.algorithms.tuning.links import tuned
from mpi_compress.core.streams import Round
from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Link, Message
from mpi_compress.problem.scaled_vector import ScaledVector


class Verbs(Algorithm):
    """What an estimator defines. Beside `worker_sends` each has a default.

    `worker_sends` finds the point of the gradients as `node.x`, and what `start_known` began as `node.known`.
    """

    scaled: ClassVar[bool] = False  # True: x is a scalar times a vector, where the server moves such an x
    parts: ClassVar[tuple[str, str]] = ("step", "mean")  # the server and the downlink of the method's paper
    server: Any = None
    by: Any = None

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
        """The server of the method's paper, with those of its parameters that are the method's."""
        return of_method(servers.meant_by(self, self.parts[0]), self)

    def own_downlink(self) -> Downlink:
        """The downlink of the method's paper, likewise."""
        return of_method(downlinks.meant_by(self, self.parts[1]), self)

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

    @property
    def tunes(self) -> bool:
        """True if a parameter of its own says of its messages what `budget` in [up] says: they are tuned."""
        return False

    def starts_whole(self, k: int) -> bool:
        """True if round k sends whole gradients: all d coordinates, which are counted."""
        return k == 0 and self.first == "gradient"


@dataclass(frozen=True)
class Estimator(Verbs):
    """What workers send, and what the mean of it means; a server and a downlink make it a method.

    `by` is the downlink that [down] names; None: the method's own.
    """

    server: Any = field(default=None, kw_only=True)  # how x moves along the direction; left out: as the method's paper says

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.server is not None and not isinstance(self.server, Server):
            object.__setattr__(self, "server", servers.build(self.server, "server"))

    def heard_by(self, by: Any) -> Self:
        """This estimator with the downlink of a job's table, or of its name."""
        with_downlink = replace(self)
        object.__setattr__(with_downlink, "by", by if isinstance(by, Downlink) else downlinks.build(by, "by"))
        return with_downlink

    @property
    def differs(self) -> str:
        """The parts that are not those of the method's paper, such as "nesterov and ef21-p"; "" if it is the paper's."""
        given = [part.name for part in (self.server, self.by) if part is not None]
        return " and ".join(name for name in given if name not in self.parts)

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
        bound = super().within(replace(setting, up=tuned(setting.up, setting.cost)) if self.tunes else setting)
        bound.server.check()
        bound.server.weight_ratio(1)
        return bound

    def settles(self, compressor: Compressor, way: str = "up") -> bool:
        return (way == "up" and self.tunes) or super().settles(compressor, way)

    def names(self) -> set[str]:
        server, by = self.server or self.own_server(), self.by or self.own_downlink()
        return super().names() | server.names() | by.names()

    @property
    def answers_each(self) -> bool:
        return self.by.answers_each

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


@dataclass(frozen=True)
class Descent(Estimator):
    """An estimator with the parameters of plain descent."""

    step: Step = "1/L"  # γ, the step size
    batch: int | None = None  # rows of each worker's minibatch; left out: full gradients
    sampling: Sampling = "with-replacement"  # rows drawn uniformly over the shard, or from a new permutation in each epoch
    regularizer: Literal["worker", "master"] | None = None  # where (µ/2)‖x‖² is applied; left out: as [objective] says
    average: Average = "last"  # the point to evaluate: the last iterate, or a weighted mean of all (HT Theorem 9)


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


class AddsUp(Estimator):
    """An estimator whose workers send differences: the sum of their means, (1/n) Σ g_i, is the direction."""

    needs: ClassVar[Sequence[Need]] = (WHOLE_GRADIENTS, EXACT_DOWN)
    looks_back: ClassVar[bool] = False  # True: workers take gradients at x⁻, too
    tosses: ClassVar[bool] = False  # True: the next round is full with probability `p`

    def start_memory(self, x0: Vector) -> Sum:
        return Sum(np.zeros_like(x0))

    def start_known(self, x0: Vector) -> Known | None:
        return Known(x0.copy() if self.looks_back else None) if self.looks_back or self.tosses else None

    def estimate(self, node: Any, memory: Sum, mean: Compressed, t: Round) -> Direction:
        mean.add_to(memory.g)
        return (memory.g,)

    def next_round(self, node: Any, t: Round) -> None:
        if self.looks_back:
            node.known.before[:] = node.x
        if self.tosses:
            node.known.batches += not node.known.full
            node.known.full = bool(t.shared.random() < float(self.p))  # type: ignore[attr-defined]


def of_method(part: Any, method: Any) -> Any:
    """A part whose parameters are those of a method that have their names."""
    return part(**{f.name: getattr(method, f.name) for f in fields(part) if hasattr(method, f.name)})


def known_as(method: Estimator) -> str:
    """The name of another method that has the parts of this one; "": none has."""
    own = (
        type(method).worker_sends,
        method.server.name if method.server else method.parts[0],
        (method.by or method.own_downlink()).name,
    )
    products = {name: cls for name, cls in algorithms.items() if issubclass(cls, Estimator) and cls is not type(method)}
    return next((name for name, cls in products.items() if (cls.worker_sends, *cls.parts) == own), "")
