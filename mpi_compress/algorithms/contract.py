"""The contract of a method: what it states, and the verbs of its rounds.

There are three kinds of state, plain dataclasses of arrays and numbers that a checkpoint can save:

- the *node*: what every node knows alike, the iterate x first of all. It changes only in `all_hear`, by what the master's message
  decodes to, so all copies of it are equal to the last bit; a process that hosts many workers keeps one;
- a *worker's* own memory (an error e_i, an estimate s_i), if it has one;
- the *master's* own memory.

A method that moves x along a direction is best written as an estimator (`algorithms.product`).

A *declared* method has its parameters and nothing else, and never changes. `bind` makes a *bound* one of it: a new object for one
run, which has the run's setting and links, and numbers in place of formulas.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, Self

import numpy as np

from mpi_compress.algorithms import memories
from mpi_compress.algorithms.error_memory import packed, residual_of
from mpi_compress.algorithms.lemma import Lemma
from mpi_compress.algorithms.log import Log
from mpi_compress.algorithms.needs import Need, check_needs
from mpi_compress.algorithms.rules import Rule
from mpi_compress.algorithms.sampling import Batches, Sampling
from mpi_compress.algorithms.steps import OF_COMPRESSORS, Changing, Step, named_by, of_compressor, step_at, theorems_of, values_of
from mpi_compress.algorithms.theorem import Theorem
from mpi_compress.core import arrays
from mpi_compress.core.errors import UserError
from mpi_compress.core.forms import complete
from mpi_compress.core.registry import Part, Registry
from mpi_compress.core.returned import returns
from mpi_compress.core.streams import Round, Rounds
from mpi_compress.messages.batch import Batch, Message, attempt, together
from mpi_compress.messages.compressors.base import coordinates_sent
from mpi_compress.messages.costs import CostModel
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import ChoosingLink, Link
from mpi_compress.messages.mean import Averager
from mpi_compress.problem.computing import Computing
from mpi_compress.problem.objective import Objective, Shards
from mpi_compress.problem.penalties import Penalty
from mpi_compress.problem.rows import Rows

Average = Literal["last", "uniform", "linear", "geometric"]
First = Literal["gradient", "compressed"]
PartialMean = Literal["", "over all", "over participants"]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a run fixes for its algorithm."""

    n: int  # workers
    dim: int  # d
    up: Link
    down: Link
    cost: CostModel
    numbers: Mapping[str, float]  # what formulas may name: L, L_max, L_mean, L_rms, L_pm, L_row, g0, mu, n, d, N, kappa
    mu_apart: float = 0.0  # µ where the regulariser is applied by every node on its own, uncommunicated; 0 where it is in the f_i
    x_star: Any = None  # (d,), where it is known
    penalty: Penalty | None = None  # r, beside µ
    penalty_apart: Penalty | None = None  # r likewise where it is applied apart, as one that is not smooth always is
    participants: int | None = None  # r of the n workers that take part in each round; None: all
    rule: Rule | None = None  # whose messages the master takes, as they arrive; None: those of all that take part
    computing: Computing | None = None  # how long workers compute; None: it takes no time
    whole: Callable[[Rows], Objective] | None = None  # f of all samples, where samples say all of it: a loss of a margin, no model
    shapes: Sequence[tuple[int, ...]] = ()  # of the model's blocks of x, in order; (): a loss of a margin has none
    f_star: float = math.nan  # where it is known

    @property
    def r(self) -> int:
        return self.n if self.participants is None else self.participants

    @property
    def has_clock(self) -> bool:
        """True if the run has a model's clock."""
        return self.cost.clock is not None or self.computing is not None

_THEOREM, _LOG = "theorem is an mc.Theorem, which has V, terms and rate", "log is an mc.Log, of names and a function"
_MOVED = {"lyapunov": _THEOREM, "lyapunov_terms": _THEOREM, "logs": _LOG, "worker_logs": _LOG}
_OF_LINKS = ("up", "down", "codec")


class Method(Part, ABC):
    """A method of distributed optimisation. Its fields are its parameters; those that others ask for have the defaults below."""

    paper: ClassVar[str] = ""
    needs: ClassVar[Sequence[Need]] = ()  # of the problem, the links and the setting: `needs.check_needs`
    shares: ClassVar[Sequence[str]] = ()  # parameters that must be above 0 and at most 1
    theory: ClassVar[str] = ""  # its theoretical step size as a formula; the formulas of its parameters may name it `theory`
    theorem: ClassVar[Theorem] = Theorem()  # what falls in a round, and by how much
    log: ClassVar[Log] = Log()  # the columns that it adds to the trace
    compressor: ClassVar[str] = "identity"  # of the uplink, where a job names none
    links: ClassVar[Mapping[str, Any]] = {}  # "up", "down": the table of a direction, where a job names none
    sets_compressor: ClassVar[bool] = False  # True: it sets the parameters of its `compressor` itself, in every direction
    partial_mean: ClassVar[PartialMean] = ""  # of what r of n workers sent: its divisor; "": needs all
    proximal: ClassVar[bool] = False  # True: its step applies a penalty that is not in the f_i
    step: Step | None = None  # γ, the step size: a number, or a formula such as "1/L"
    batch: int | None = None  # samples of each worker's minibatch; left out: full gradients
    sampling: Sampling = "with-replacement"  # samples drawn uniformly over the shard, or from a new permutation in each epoch
    regularizer: Literal["worker", "master"] | None = None  # where (µ/2)‖x‖² is applied; left out: as [objective] says

    first: First | None = None  # what round 0 sends: whole gradients, or compressed ones; None: as later rounds

    # of a bound method alone, each its own; `up` and `down` are the setting's links, unless the method has others
    setting: ClassVar[Setting]  # its numbers have the values of the method's formulas, too
    up: ClassVar[Any]
    down: ClassVar[Any]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in _MOVED.keys() & vars(cls).keys():
            raise TypeError(f"{cls.__name__}.{name} was removed: {_MOVED[name]}")
        for name in vars(cls).keys() & {*_OF_LINKS}:
            raise TypeError(f'{cls.__name__}.{name}: a class states its links as links = {{"up": {{…}}, "down": {{…}}}}')

    def bind(self, setting: Setting) -> Self:
        """This method in one run: a new object, its formulas evaluated; ValueError where one has no value or a need is not met."""
        bound = in_setting(self, setting)
        check_needs(bound)
        bound.check()
        return bound

    def check(self) -> None:
        """Raise ValueError where the setting and the method do not go together."""

    def knows(self) -> Mapping[str, float]:
        """Quantities that formulas may name beside those of the setting: the minibatch, δ and ω of the compressors, if named."""
        stated = {name: of_compressor(self, name) for name in named_by(self) & OF_COMPRESSORS.keys()}
        return {name: value for name, value in {"batch": self.batch, **stated}.items() if value is not None}

    def gamma(self, k: int) -> float:
        """γ_k."""
        return step_at(self.step, k)

    @cached_property
    def _batches(self) -> Batches | None:
        return None if self.batch is None else Batches(self.batch, self.sampling)

    def rows(self, f: Any, t: Any, number: int | None = None) -> Any:
        """The rows of a worker's minibatch of round t.k, of that `number` if not every round takes one; None: all of its shard. Of
        workers together a list of each one's."""
        if self._batches is None:
            return None
        if isinstance(t, Rounds):
            return [self._batches.rows(size, each, number) for size, each in zip(f.sizes, t, strict=True)]
        return self._batches.rows(len(f.rows), t, number)

    def iterate(self, node: Any) -> Vector:
        """The point (d,) to evaluate."""
        return node.x

    def more_memory(self, dim: int, n: int) -> tuple[float, float]:
        """Numbers that a worker, and the master of n workers, keep beside a few vectors (dim,)."""
        return 0.0, 0.0

    @property
    def lemma(self) -> Lemma:
        """What CAT's descent lemmas say of the next round."""
        return Lemma(T=None if isinstance(self.up, ChoosingLink) else coordinates_sent(self.up.compressor, self.setting.dim))


def in_setting(method: Any, setting: Setting) -> Any:
    """A declared method with the links of a run, and numbers in place of formulas; nothing is checked yet."""
    bound = method.bound_to(setting=setting, up=setting.up, down=setting.down)
    numbers = {**setting.numbers, "r": float(setting.r), **bound.knows()}
    values = values_of(bound, numbers, theorems_of(method))
    constants = {name: value for name, value in values.items() if not isinstance(value, Changing)}
    return bound.bound_to(**values, setting=replace(setting, numbers=constants | numbers))


def starts_whole(method: Method, k: int) -> bool:
    """True if round k sends whole gradients: all d coordinates, which are counted."""
    return k == 0 and method.first == "gradient"


class Algorithm(Method):
    """A method in rounds: workers send, the master answers, everyone hears.

    What one worker does is `worker_sends`; what all that a process hosts do is `workers_send`, whose arrays have an axis of workers
    in front. A class defines one of the two, and has the other by it. So do `start_worker` and `worker_hears`.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        complete(cls, Algorithm, _FORMS)

    @abstractmethod
    def start(self, x0: Vector) -> Any:
        """What every node knows before round 0."""

    def start_worker(self, node: Any, f: Objective) -> Any:
        """A worker's own memory before round 0."""
        return None

    def start_workers(self, node: Any, fs: Shards) -> Any:
        """The workers' own memories before round 0, as rows."""
        each = [self.start_worker(node, f) for f in fs]
        own = type(self).workers_send, type(self).workers_hear
        takes_rows = self.log.of_rows or own != (Algorithm.workers_send, Algorithm.workers_hear)
        return memories.together(each) if each and takes_rows else each

    def start_master(self, node: Any) -> Any:
        """The master's own memory before round 0."""
        return residual_of(self)

    @abstractmethod
    def worker_sends(self, node: Any, worker: Any, f: Objective, t: Round) -> Message:
        """A worker's message of round t.k. It must not change `node`."""

    def workers_send(self, node: Any, w: Any, fs: Shards, t: Rounds) -> Batch:
        """The messages of round t.k of the workers `t.who`, whose memories and f_i are the rows of w and fs. It must not change
        `node`."""
        before = _x_of(node)
        sent = together([self._sent(node, w, fs, t, i) for i in range(len(fs))])
        if _x_of(node) != before:
            raise UserError(f"{self.name}: worker_sends changes node.x, which workers share; change a copy, node.x.copy()")
        return sent

    def _sent(self, node: Any, w: Any, fs: Shards, t: Rounds, i: int) -> Batch:
        worker = memories.one(w, i)
        sent = attempt(self.worker_sends, getattr(node, "of_worker", lambda i: node)(i), worker, fs[i], t[i])
        memories.put(w, i, worker)
        if not isinstance(sent, Batch):
            kind = type(sent).__name__
            raise UserError(f"{self.name}: worker_sends returned an object of type {kind}; return self.up.pack(v, t)")
        return sent

    def master_answers(self, node: Any, master: Any, ups: Sequence[Compressed], t: Round) -> Message:
        """The master's message: the mean of what the workers' messages decode to, in worker order. It must not change `node`."""
        return packed(master, self.downlink(node, t.k), self.mean(ups), t)

    def worker_hears(self, node: Any, worker: Any, down: Compressed, t: Round) -> None:
        """Take the master's message over into a worker's own memory, before `all_hear`. It must not change `node`."""

    def workers_hear(self, node: Any, w: Any, down: Compressed, t: Rounds) -> None:
        """The same of all workers hosted here; `down` is one vector, or rows of one for each."""
        if type(self).worker_hears is not Algorithm.worker_hears:
            for i in range(len(t)):
                worker = memories.one(w, i)
                self.worker_hears(node, worker, down if down.rows is None else down[i], t[i])
                memories.put(w, i, worker)

    @abstractmethod
    def all_hear(self, node: Any, down: Compressed, t: Round) -> None:
        """Take the master's message over into what every node knows, the master included."""

    def needs_all(self, node: Any, k: int) -> bool:
        """True if all workers take part in round k, whatever [workers] participate says."""
        return starts_whole(self, k)

    def uplink(self, node: Any, k: int) -> Link:
        """The link that workers' messages are read with in round k; it depends on what both ends know alone."""
        return self.up.whole if starts_whole(self, k) else self.up

    def downlink(self, node: Any, k: int) -> Link:
        """The link that the master's message is read with in round k."""
        return self.down

    @cached_property
    def mean(self) -> Callable[[Sequence[Compressed]], Compressed]:
        """(1/n) Σ of compressed vectors, added in worker order, sparse where they are; (1/r) Σ if `partial_mean` says so."""
        average, setting = Averager(self.setting.dim).mean, self.setting
        n = setting.n if setting.rule else None  # several of a worker's messages may be taken
        return partial(average, n=setting.participants if self.partial_mean == "over participants" else n)


def _x_of(node: Any) -> bytes:
    return np.asarray(getattr(node, "x", 0)).tobytes()


def _starts(self: Any, of_rows: Callable[..., Any], node: Any, f: Objective) -> Any:
    """`start_worker` by rows of one."""
    return memories.one(of_rows(self, node, f.shard), 0)


def _of_one(self: Any, of_rows: Callable[..., Any], node: Any, worker: Any, given: Any, t: Round) -> Any:
    """A verb of a worker by that of rows of one."""
    w = memories.together([worker])
    found = of_rows(self, node, w, given, Rounds.of(t))
    memories.put(worker, memories.ALL, memories.one(w, 0))
    return found


def _sends(self: Any, of_rows: Callable[..., Any], node: Any, worker: Any, f: Objective, t: Round) -> Message:
    """`worker_sends` by rows of one."""
    sent = _of_one(self, of_rows, node, worker, f.shard, t)
    return replace(sent, content=None if sent.content is None else sent.content[0], one=True)


_FORMS: dict[str, tuple[str, Callable[..., Any]]] = {
    "start_worker": ("start_workers", _starts),
    "worker_sends": ("workers_send", _sends),
    "worker_hears": ("workers_hear", _of_one),
}


def one_each(method: Any, given: Any, *_: Any) -> Sequence[Message]:
    """The check of messages to all workers."""
    n = method.setting.n
    if not (isinstance(given, list | tuple) and len(given) == n and all(isinstance(each, Message) for each in given)):
        right = f"a list of {n} messages, one to each worker in worker order"
        raise ValueError(f"{arrays.shown(given)} was given; it should be {right}")
    return given


class AnswersEach(Algorithm):
    """A method whose master sends each worker a message of its own, so that the master alone knows the iterate. It has `answers` in
    place of `master_answers`, and each worker hears its own by `worker_hears`. What `all_hear` takes over then is the `point` that
    the master holds: evaluations need it on every rank. It is not counted, and no worker may use it."""

    @abstractmethod
    @returns(one_each)
    def answers(self, node: Any, master: Any, ups: Sequence[Compressed], t: Round) -> Sequence[Message]:
        """The master's message to each of the n workers, in worker order; worker i's is drawn in the round `t.to(i)`."""

    @abstractmethod
    def point(self, master: Any) -> Vector:
        """The iterate (d,) that the master holds."""


algorithms: Registry[Any] = Registry("algorithm", Method, own="Algorithm")
