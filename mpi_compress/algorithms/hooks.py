"""What a method may say beside its verbs: what is logged of it, what a lemma says of its next round, and what its links are.

Each has a default, so a method states only what differs.
"""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any, ClassVar, Literal

from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.kinds import Vector
from mpi_compress.messages.link import ChoosingLink, Link

PartialMean = Literal["", "over all", "over participants"]


class Logged:
    """Columns that a method adds to the trace."""

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

    def worker_vector(self, worker: Any) -> Vector | None:
        """A vector (d,) whose mean over workers `mean_logs` wants at logged rounds."""
        return None

    def mean_logs(self, mean: Vector, node: Any) -> Mapping[str, float]:
        """Columns of the trace from the mean of `worker_vector` over workers, at rank 0."""
        return {}


class Linked:
    """The links of a method's messages, and how many workers a round needs. A run's `up` and `down` are the defaults."""

    up: Any
    down: Any
    compressor: ClassVar[str] = "identity"  # of the uplink, where a job names none
    links: ClassVar[Mapping[str, Any]] = {}  # "up", "down": the table of a direction, where a job names none
    sets_compressor: ClassVar[bool] = False  # True: it sets the parameters of its `compressor` itself, in every direction
    plans_by_cost: ClassVar[bool] = False  # True: what it sends depends on the cost model
    partial_mean: ClassVar[PartialMean] = ""  # of what r of n workers sent: its divisor; "": needs all

    def settles(self, compressor: Compressor, way: str = "up") -> bool:
        """True if this algorithm itself sets, and so checks, parameters of a direction's compressor."""
        return self.sets_compressor and (way == "up" or way in self.links)

    def more_memory(self, dim: int, n: int) -> tuple[float, float]:
        """Numbers that a worker, and the master of n workers, keep beside a few vectors (dim,)."""
        return 0.0, 0.0

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


class Foretold:
    """What CAT's descent lemmas say of a method's next round; by default nothing."""

    up: Any
    setting: ClassVar[Any]

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
        return None if isinstance(self.up, ChoosingLink) else self.up.compressor.count(self.setting.dim)
