"""What a method may say beside its verbs: its log, what a lemma says of its next round, and what its links are.

Each has a default, so a method states only what differs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, ClassVar, Literal

from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.kinds import Vector
from mpi_compress.messages.link import ChoosingLink, Link

PartialMean = Literal["", "over all", "over participants"]


@dataclass(frozen=True)
class Log:
    """Columns that a method adds to the trace, at logged rounds: from numbers of each worker, or from a vector of each."""

    columns: Sequence[str] = ()  # of /workers
    of_worker: Callable[[Any], Sequence[float]] = lambda worker: ()  # one number for each column, from a worker's memory
    of_means: Callable[[Mapping[str, float], Any], Mapping[str, float]] = lambda means, node: means  # of /trace, of means and node
    vector: Callable[[Any], Vector | None] = lambda worker: None  # (d,) of a worker
    of_mean: Callable[[Vector, Any], Mapping[str, float]] = lambda mean, node: {}  # of /trace, from its mean, at rank 0


class Linked:
    """The links of a method's messages, and how many workers a round needs. A run's `up` and `down` are the defaults."""

    up: Any
    down: Any
    compressor: ClassVar[str] = "identity"  # of the uplink, where a job names none
    links: ClassVar[Mapping[str, Any]] = {}  # "up", "down": the table of a direction, where a job names none
    sets_compressor: ClassVar[bool] = False  # True: it sets the parameters of its `compressor` itself, in every direction
    plans_by_cost: ClassVar[bool] = False  # True: what it sends depends on the cost model
    needs_each: ClassVar[bool] = False  # True: its master uses the workers' messages one by one, not their `mean` alone
    partial_mean: ClassVar[PartialMean] = ""  # of what r of n workers sent: its divisor; "": needs all

    def settles(self, compressor: Compressor, way: str = "up") -> bool:
        """True if this algorithm itself sets, and so checks, parameters of a direction's compressor."""
        return self.sets_compressor and (way == "up" or way in self.links)

    def more_memory(self, dim: int, n: int) -> tuple[float, float]:
        """Numbers that a worker, and the master of n workers, keep beside a few vectors (dim,)."""
        return 0.0, 0.0

    def needs_all(self, node: Any, k: int) -> bool:
        """True if all workers take part in round k, whatever [workers] participate says."""
        return False

    def uplink(self, node: Any, k: int) -> Link:
        """The link that workers' messages are read with in round k; it depends on what both ends know alone."""
        return self.up

    def downlink(self, node: Any, k: int) -> Link:
        """The link that the master's message is read with in round k."""
        return self.down


class Foretold:
    """What CAT's descent lemmas say of a method's next round; by default nothing."""

    up: Any
    setting: Any

    curve: ClassVar[str] = ""  # the symbol of `improvement`: "alpha", "beta" or "omega"

    def improvement(self, g: Vector) -> float:
        """The share of ‖g‖²/2L by which f falls in a round that compresses the gradient g (d,), in the mean over random choices
        (CAT's descent lemmas); NaN: no lemma covers the step."""
        return nan

    @property
    def fixed_budget(self) -> int | None:
        """The number T of coordinates in every message; None if it varies, or is not known."""
        return None if isinstance(self.up, ChoosingLink) else self.up.compressor.count(self.setting.dim)


class Proved:
    """What a theorem says of a method: V, and the factor ρ by which V falls in a round; by default nothing. See `theorem`."""

    lyapunov: Any = None  # V: a function of the node, the means of workers' terms, the master and an `AtRecord`; a number
    rate: Any = None  # ρ: a number, a formula of the method's quantities, or a function of the round that V went through
    theorem_formulas: ClassVar[Sequence[str]] = ()  # further formulas that name quantities of V
    theorem_needs: ClassVar[Sequence[Any]] = ()  # of V, beside what the method needs itself

    def lyapunov_terms(self, node: Any, worker: Any, f: Any) -> Sequence[float | Vector]:
        """What V needs of a worker, numbers and vectors (d,): `lyapunov` gets their means. `f` is its `Shard`."""
        return ()
