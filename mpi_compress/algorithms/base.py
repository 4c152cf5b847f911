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
from functools import cached_property
from math import nan
from typing import Any, ClassVar, get_type_hints

from mpi_compress.algorithms.steps import Step, bind, formulas_in
from mpi_compress.core.expressions import Expression, evaluate, names_in
from mpi_compress.core.registry import Registry
from mpi_compress.core.streams import Round
from mpi_compress.engine.fast.crew import Crew
from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.costs import CostModel
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Link, Message, attempt
from mpi_compress.messages.mean import Averager
from mpi_compress.problem.objective import Objective


@dataclass(frozen=True)
class Setting:
    """What a run fixes for its algorithm."""

    n: int  # workers
    dim: int  # d
    up: Link
    down: Link
    cost: CostModel
    mu_apart: float  # µ where the regulariser is applied by every node on its own, uncommunicated; 0 where it is in the f_i
    numbers: Mapping[str, float]  # what formulas may name: L, L_max, L_rms, L_row, g0, mu, n, d, N, kappa
    x_star: Vector | None = None  # (d,), where it is known


_OF_COMPRESSORS = {"delta": "the δ of a contraction", "omega": "the ω of a bounded variance without bias"}


class Algorithm(ABC):
    """A method of distributed optimisation; its fields are its parameters."""

    paper: ClassVar[str] = ""
    compressor: ClassVar[str] = "identity"  # of the uplink, where a job names none
    links: ClassVar[Mapping[str, Any]] = {}  # "up", "down": the table of a direction, where a job names none and that is not all
    sets_compressor: ClassVar[bool] = False  # whether it sets the parameters of its `compressor` itself, in every direction
    needs_optimum: ClassVar[bool] = False  # whether it is told x*
    curve: ClassVar[str] = ""  # which improvement `improvement` is: "alpha", "beta" or "omega"
    logs: ClassVar[tuple[str, ...]] = ()  # columns that `worker_logs` adds to the trace
    setting: Setting  # set by `within`

    def within(self, setting: Setting) -> "Algorithm":
        """This algorithm for one run, its formulas evaluated.

        Raises:
            ValueError: a formula without a value, or a setting that the algorithm cannot work in.
        """
        bound = copy.copy(self)
        object.__setattr__(bound, "setting", setting)
        numbers = {**setting.numbers, **bound.knows()}
        for key, is_step in self.formulas().items():
            value = getattr(self, key)
            if value is not None:
                for name in {
                    n for formula in formulas_in(value) for n in names_in(formula)
                } & _OF_COMPRESSORS.keys() - numbers.keys():
                    raise ValueError(f"{key} = '{value}' needs {_OF_COMPRESSORS[name]} and the uplink's compressor states none")
                object.__setattr__(bound, key, bind(value, numbers) if is_step else evaluate(value, numbers))
        bound.check()
        return bound

    @classmethod
    def formulas(cls) -> dict[str, bool]:
        """The parameters that may be formulas, and whether they are steps."""
        hints = get_type_hints(cls, include_extras=True)
        kinds: dict[Any, bool] = {Expression: False, Expression | None: False, Step: True, Step | None: True}
        return {f.name: kinds[hints[f.name]] for f in fields(cls) if f.init and hints[f.name] in kinds}  # type: ignore[arg-type]

    def settles(self, compressor: Compressor, way: str = "up") -> bool:
        """Whether this algorithm sets parameters of the compressor of a direction itself, so that it checks them itself too."""
        return self.sets_compressor and (way == "up" or way in self.links)

    def names(self) -> set[str]:
        """The quantities that the formulas of this algorithm name."""
        values = [getattr(self, key) for key in self.formulas()]
        return {name for value in values if value is not None for formula in formulas_in(value) for name in names_in(formula)}

    def knows(self) -> Mapping[str, float]:
        """Quantities beyond the setting's that formulas may name: of the uplink's compressor those of δ and ω that one does.

        Raises:
            ValueError: the setting has no such quantity, and the algorithm's theory cannot do without.
        """
        stated = {name: getattr(self.up.compressor, name)(self.setting.dim) for name in self.names() & _OF_COMPRESSORS.keys()}
        return {name: value for name, value in stated.items() if value is not None}

    def check(self) -> None:
        """Raise ValueError where the setting and the algorithm do not go together."""

    @cached_property
    def mean(self) -> Callable[[Sequence[Compressed]], Compressed]:
        """(1/n) Σ of compressed vectors, added in worker order; sparse where they are."""
        return Averager(self.setting.dim).mean

    @property
    def up(self) -> Link:
        return self.setting.up

    @property
    def down(self) -> Link:
        return self.setting.down

    def uplink(self, node: Any, k: int) -> Link:
        """How messages up are read in round k; what it depends on, both ends know."""
        return self.up

    def downlink(self, node: Any, k: int) -> Link:
        """How the message down is read in round k."""
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

    def asks_for(self, node: Any) -> Vector | None:
        """The point whose full gradient every worker asks for in the coming round, where that is known.

        It only saves time: the gradients of small problems are then computed by one call.
        """
        return None

    @abstractmethod
    def worker_sends(self, node: Any, worker: Any, f: Objective, t: Round) -> Message:
        """A worker's message of round t.k. It must not change `node`."""

    def crew_sends(self, node: Any, crew: Crew, k: int) -> list[Message]:
        """The messages of all workers hosted here, of round k: by `worker_sends`, where a method does not do it sooner together."""
        if crew.looks_ahead:
            crew.look_ahead(self.asks_for(node))
        fs = crew.objectives
        return [attempt(self.worker_sends, node, worker, fs[i], crew.round(i, k)) for i, worker in crew.workers.items()]

    @abstractmethod
    def master_answers(self, node: Any, master: Any, ups: Sequence[Compressed], t: Round) -> Message:
        """The master's message, from what the workers' messages decode to, in worker order. It must not change `node`."""

    @abstractmethod
    def all_hear(self, node: Any, down: Compressed, t: Round) -> None:
        """What every node, the master included, makes of the master's message."""

    def worker_logs(self, worker: Any) -> Sequence[float]:
        """One number for each of `logs`, at logged rounds: /workers has them for each worker, /trace what `trace_logs` says."""
        return ()

    def trace_logs(self, means: Mapping[str, float], node: Any) -> Mapping[str, float]:
        """The trace's columns, from the means of `worker_logs` over workers and from what every node knows."""
        return means

    def improvement(self, g: Vector) -> float:
        """The share of ‖g‖²/2L by which f falls in a round that compresses the gradient g (d,), by a descent lemma of CAT's (in
        the mean, where what is sent is random); NaN: no lemma speaks of it."""
        return nan

    def worker_vector(self, worker: Any) -> Vector | None:
        """A vector (d,) whose mean over workers `mean_logs` wants at logged rounds."""
        return None

    def mean_logs(self, mean: Vector, node: Any) -> Mapping[str, float]:
        """Columns of the trace from the mean of `worker_vector` over workers, at rank 0."""
        return {}

    def iterate(self, node: Any) -> Vector:
        """The point (d,) to evaluate. Where it is the very array that gradients are asked at, they are not computed twice."""
        return node.x


def exact_downlink(algorithm: Algorithm) -> None:
    """For a method whose nodes add up what they hear: what is lost on the way down would never be made good.

    Raises:
        ValueError: the downlink compresses, or rounds.
    """
    if algorithm.down.compressor.omega(algorithm.setting.dim) != 0.0 or algorithm.down.codec.float != 64:
        name = type(algorithm).name  # type: ignore[attr-defined]
        raise ValueError(
            f"{name} adds up what comes down, so that must be exact: leave [down] out, or use the identity and float = 64"
        )


algorithms: Registry[Algorithm] = Registry("algorithm", Algorithm)
