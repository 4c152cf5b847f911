"""The contract of an algorithm: what is known where, and three verbs a round.

There are three kinds of state, plain dataclasses of arrays and numbers that a checkpoint can save:

- the *node*: what every node knows alike, the iterate x first of all. It changes only in `all_hear`, by what the master's message
  decodes to, so all copies of it are equal to the last bit; a process that hosts many workers keeps one;
- a *worker's* own memory (an error e_i, an estimate s_i), if it has one;
- the *master's* own memory.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from math import nan
from typing import Any, ClassVar, Literal, Self, get_type_hints

import numpy as np
from numpy.typing import NDArray

from mpi_compress.algorithms.formulas import OF_COMPRESSORS, names_of, settled
from mpi_compress.algorithms.sampling import Batches, Sampling
from mpi_compress.algorithms.steps import Step, step_at
from mpi_compress.core.expressions import Expression
from mpi_compress.core.registry import Part, Registry
from mpi_compress.core.streams import Round
from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.costs import CostModel
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Link, Message
from mpi_compress.messages.mean import Averager
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.penalties import Penalty


@dataclass(frozen=True)
class Setting:
    """What a run fixes for its algorithm."""

    n: int  # workers
    dim: int  # d
    up: Link
    down: Link
    cost: CostModel
    mu_apart: float  # µ where the regulariser is applied by every node on its own, uncommunicated; 0 where it is in the f_i
    numbers: Mapping[str, float]  # what formulas may name: L, L_max, L_rms, L_pm, L_row, g0, mu, n, d, N, kappa
    x_star: Vector | None = None  # (d,), where it is known
    penalty_apart: Penalty | None = None  # r likewise, beside µ; one that is not smooth always is apart
    participants: int | None = None  # r of the n workers that take part in each round; None: all
    shapes: Sequence[tuple[int, ...]] = ()  # of the model's blocks of x, in order; (): a loss of a margin has none

    @property
    def r(self) -> int:
        return self.n if self.participants is None else self.participants


PartialMean = Literal["", "over all", "over participants"]


class Method(Part, ABC):
    """A method of distributed optimisation; its fields are its parameters."""

    paper: ClassVar[str] = ""
    shares_memory: ClassVar[bool] = False  # True: workers update one iterate in shared memory and send no messages
    compressor: ClassVar[str] = "identity"  # of the uplink, where a job names none
    links: ClassVar[Mapping[str, Any]] = {}  # "up", "down": the table of a direction, where a job names none
    sets_compressor: ClassVar[bool] = False  # True: it sets the parameters of its `compressor` itself, in every direction
    needs_optimum: ClassVar[bool] = False  # True: it is given x*
    theory: ClassVar[str] = ""  # its theorem's step as a formula; the formulas of its parameters may name it `theory`
    plans_by_cost: ClassVar[bool] = False  # True: what it sends depends on the cost model, whatever its `budget`
    proximal: ClassVar[bool] = False  # True: its step applies a penalty that is not in the f_i
    partial_mean: ClassVar[PartialMean] = ""  # of what r of n workers sent: its divisor, n or r; "": all must take part
    step: Any = None  # γ, the step size, where there is one; `within` evaluates it
    batch: int | None = None  # rows of each worker's minibatch; left out: full gradients
    sampling: Sampling = "with-replacement"  # rows drawn uniformly over the shard, or from a new permutation in each epoch
    regularizer: Literal["worker", "master"] | None = None  # where (µ/2)‖x‖² is applied; left out: as [objective] says
    setting: Setting  # set by `within`

    def within(self, setting: Setting) -> Self:
        """This algorithm for one run, its formulas evaluated.

        Raises:
            ValueError: a formula without a value, or a setting that the algorithm cannot work in.
        """
        bound = copy.copy(self)
        object.__setattr__(bound, "setting", setting)
        numbers = {**setting.numbers, "r": float(setting.r), **bound.knows()}
        formulas = self.formulas()
        for key in sorted(formulas, key=formulas.__getitem__):  # steps come last: they may name the other parameters
            value = getattr(self, key)
            if value is not None:
                object.__setattr__(bound, key, known := settled(key, value, formulas[key], numbers, self.theory))
                if isinstance(known, float):
                    numbers.setdefault(key, known)
        bound.check()
        return bound

    @classmethod
    def formulas(cls) -> dict[str, bool]:
        """The parameters that may be formulas; True for those that are steps."""
        hints = get_type_hints(cls, include_extras=True)
        kinds: dict[Any, bool] = {Expression: False, Expression | None: False, Step: True, Step | None: True}
        return {f.name: kinds[hints[f.name]] for f in fields(cls) if f.init and hints[f.name] in kinds}  # type: ignore[arg-type]

    def settles(self, compressor: Compressor, way: str = "up") -> bool:
        """True if this algorithm itself sets, and so checks, parameters of a direction's compressor."""
        return self.sets_compressor and (way == "up" or way in self.links)

    def names(self) -> set[str]:
        """The quantities that the formulas of this algorithm name."""
        return set().union(*(names_of(getattr(self, key), self.theory) for key in self.formulas()))

    def knows(self) -> Mapping[str, float]:
        """Quantities that formulas may name beside those of the setting: the minibatch, δ and ω of the compressors, if named."""
        known: dict[str, float | None] = {"batch": self.batch}
        for name in self.names() & OF_COMPRESSORS.keys():
            compressor = (self.up if OF_COMPRESSORS[name][0] == "up" else self.down).compressor
            known[name] = getattr(compressor, name.removesuffix("_down"))(self.setting.dim)
        return {name: value for name, value in known.items() if value is not None}

    def check(self) -> None:
        """Raise ValueError where the setting and the algorithm do not go together."""

    @property
    def up(self) -> Link:
        return self.setting.up

    @property
    def down(self) -> Link:
        return self.setting.down

    def gamma(self, k: int) -> float:
        """γ_k."""
        return step_at(self.step, k)

    @cached_property
    def batches(self) -> Batches | None:
        return None if self.batch is None else Batches(self.batch, self.sampling)

    def rows(self, f: Objective, t: Round, number: int | None = None) -> NDArray[np.uint64] | None:
        """The rows of a worker's minibatch of round t.k; None: all of its shard.

        Args:
            number: the number of the minibatch, from 0 on; to be given if not every round takes one.
        """
        return None if self.batches is None else self.batches.rows(len(f.rows), t, number)

    @property
    def logs(self) -> Sequence[str]:
        """Columns that `worker_logs` adds to the trace."""
        return ()

    def worker_logs(self, worker: Any) -> Sequence[float]:
        """One number for each of `logs`, at logged rounds: /workers has them, and /trace the `trace_logs` of their means."""
        return ()

    def trace_logs(self, means: Mapping[str, float], node: Any) -> Mapping[str, float]:
        """The trace's columns, from the means of `worker_logs` over workers and from what every node knows."""
        return means

    @property
    def curve(self) -> str:
        """The symbol of `improvement`: "alpha", "beta" or "omega"."""
        return ""

    def improvement(self, g: Vector) -> float:
        """The share of ‖g‖²/2L by which f falls in a round that compresses the gradient g (d,), in the mean over random choices
        (CAT's descent lemmas); NaN: no lemma covers the step."""
        return nan

    @property
    def fixed_budget(self) -> int | None:
        """The number T of coordinates in every message; None if it varies, or is not known."""
        return self.up.compressor.count(self.setting.dim)

    def worker_vector(self, worker: Any) -> Vector | None:
        """A vector (d,) whose mean over workers `mean_logs` wants at logged rounds."""
        return None

    def mean_logs(self, mean: Vector, node: Any) -> Mapping[str, float]:
        """Columns of the trace from the mean of `worker_vector` over workers, at rank 0."""
        return {}

    def iterate(self, node: Any) -> Vector:
        """The point (d,) to evaluate."""
        return node.x


class SharedMemoryMethod(Method):
    """A method without messages: each worker adds to one iterate in memory that all of them share."""

    shares_memory = True
    pool: int | None = None  # random numbers drawn for each worker before the clock starts; left out: anew in each update

    @abstractmethod
    def update(self, shared: Any, i: int, f: Objective, t: Round) -> None:
        """Worker i's next update of `shared.x`."""


class Algorithm(Method):
    """A method in rounds: workers send, the master answers, everyone hears."""

    @cached_property
    def mean(self) -> Callable[[Sequence[Compressed]], Compressed]:
        """(1/n) Σ of compressed vectors, added as [workers] fold says, sparse where they are; (1/r) Σ if `partial_mean` says so."""
        average = Averager(self.setting.dim).mean
        return partial(average, n=self.setting.participants) if self.partial_mean == "over participants" else average

    @property
    def needs_each(self) -> bool:
        """True if its master uses the workers' messages one by one, not their `mean` alone."""
        return False

    def needs_all(self, node: Any, k: int) -> bool:
        """True if all workers take part in round k, whatever [workers] participate says."""
        return False

    def uplink(self, node: Any, k: int) -> Link:
        """The link that workers' messages are read with in round k; it depends on what both ends know alone."""
        return self.up

    def downlink(self, node: Any, k: int) -> Link:
        """The link that the master's message is read with in round k."""
        return self.down

    @abstractmethod
    def start(self, x0: Vector) -> Any:
        """What every node knows before round 0."""

    def start_worker(self, node: Any, f: Objective) -> Any:
        """A worker's own memory before round 0."""
        return None

    def start_master(self, node: Any) -> Any:
        """The master's own memory before round 0."""
        return None

    @abstractmethod
    def worker_sends(self, node: Any, worker: Any, f: Objective, t: Round) -> Message:
        """A worker's message of round t.k. It must not change `node`."""

    def master_answers(self, node: Any, master: Any, ups: Sequence[Compressed], t: Round) -> Message:
        """The master's message: the mean of what the workers' messages decode to, in worker order. It must not change `node`.

        With [workers] fold = "tree" `ups` says how many there are, and `mean` is all that can be asked of it: a master that uses
        them one by one says so by `needs_each`.
        """
        return self.downlink(node, t.k).pack(self.mean(ups), t)

    @abstractmethod
    def all_hear(self, node: Any, down: Compressed, t: Round) -> None:
        """Take the master's message over into what every node knows, the master included."""


def whole_gradients(method: Method) -> None:
    """ValueError if the regulariser is not in the f_i: the method needs the whole of ∇f_i."""
    if method.setting.mu_apart:
        raise ValueError(f'{method.name} needs the whole of ∇f_i: set regularizer = "worker"')


def check_adding_up(algorithm: Algorithm) -> None:
    """For a method whose nodes add up what they hear to an estimate of ∇f.

    Raises:
        ValueError: the downlink compresses, or rounds, which would never be made good; or the regulariser is not in the f_i.
    """
    whole_gradients(algorithm)
    if algorithm.down.compressor.omega(algorithm.setting.dim) != 0.0 or algorithm.down.codec.float != 64:
        raise ValueError(
            f"{algorithm.name} adds up what comes down, so that must be exact: leave [down] out, or use the identity and float = 64"
        )


def check_unbiased(algorithm: Algorithm) -> None:
    """ValueError if the uplink's compressor is not unbiased."""
    if not algorithm.up.compressor.unbiased(algorithm.setting.dim):
        raise ValueError(f"{algorithm.name} needs an unbiased compressor, such as random-k or qsgd")


def check_share(method: Method, name: str) -> None:
    """ValueError if a parameter, whose formula is evaluated, is not above 0 and at most 1."""
    if not 0 < float(getattr(method, name)) <= 1:
        raise ValueError(f"{name} = {getattr(method, name)} must be above 0 and at most 1")


algorithms: Registry[Any] = Registry("algorithm", Method, own="Algorithm")
