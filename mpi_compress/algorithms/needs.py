"""What a method says beside its verbs, in data that have defaults: a method states only what differs.

What it needs of the problem, the links and the setting is checked before anything runs. Its log, what a lemma or a theorem says of
it, and what its links are, it need not say.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, ClassVar, Literal

from mpi_compress.core.errors import NotMet
from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.compressors.base import coordinates_sent, has_state
from mpi_compress.messages.kinds import Vector
from mpi_compress.messages.link import ChoosingLink, Link
from mpi_compress.results.columns import TAKEN


@dataclass(frozen=True)
class Need:
    """One thing that a method needs.

    Attributes:
        is_met: of a method that is bound to its setting.
        sentence: why another one is refused, and what would do; {name} is the method's.
        of: the numbers of the problem that decide it, some of which are known only once its data are read.
    """

    is_met: Callable[[Any], bool]
    sentence: str
    of: Sequence[str] = ()


def _is_exact(link: Any) -> bool:
    return link.compressor.omega(link.dim) == 0.0


def _is_smooth_part_within(method: Any) -> bool:
    apart = method.setting.penalty_apart
    return not method.setting.mu_apart and not (apart is not None and apart.smooth)


WHOLE_GRADIENTS = Need(_is_smooth_part_within, '{name} needs the whole of ∇f_i: set regularizer = "worker"', of=("mu",))
EXACT_DOWN = Need(
    lambda m: _is_exact(m.down) and (m.keeps_rest or m.down.codec.float == 64),
    "{name} adds up what comes down, so that must be exact: leave [down] out, or use the identity{floats}",
)
ADDS_UP = WHOLE_GRADIENTS, EXACT_DOWN  # of methods whose workers send differences
UNBIASED_UP = Need(
    lambda m: m.up.compressor.unbiased(m.setting.dim), "{name} needs an unbiased compressor, such as random-k or qsgd"
)
HOMOGENEOUS_UP = Need(
    lambda m: m.up.compressor.name in ("top-k", "identity", "block-sign"),
    "{name} needs a compressor with C(tv) = t C(v): top-k, block-sign or the identity",
)
UNBIASED_DOWN = Need(
    lambda m: m.down.compressor.unbiased(m.setting.dim), "{name} needs an unbiased compressor down, such as perm-k or random-k"
)
STATELESS_DOWN = Need(
    lambda m: not has_state(m.down.compressor), "{name} has a message for each worker, and '{down}' remembers one sequence"
)
STRONGLY_CONVEX = Need(lambda m: m.setting.numbers["mu"] > 0, "{name} needs mu > 0", of=("mu",))
SMOOTH = Need(lambda m: "L_max" in m.setting.numbers, "{name} needs a loss that is smooth", of=("L",))
OPTIMUM = Need(lambda m: m.setting.x_star is not None, "{name} needs x*, which is not known here", of=("x*",))
LINEAR = Need(
    lambda m: m.setting.whole is not None,
    "{name} sends the samples of a linear model: name a loss of a margin, such as logistic, and no model",
)
ONE_STEP_SIZE = Need(lambda m: isinstance(m.step, float), "{name} takes one step size for all rounds")
HEARS_MEAN = Need(
    lambda m: m.by.everyone_remembers, 'the workers of {name} use the mean that they hear: leave by out of [down], or say "mean"'
)
LAST_ITERATE = Need(
    lambda m: getattr(m, "average", "last") == "last",
    'x is the master\'s own with {name}, so results are of the point that all nodes know: leave average out, or say "last"',
)


def exact_up(sentence: str) -> Need:
    """The uplink's compressor loses nothing."""
    return Need(lambda m: _is_exact(m.up), sentence)


def check_needs(method: Any) -> None:
    """NotMet with the sentence of the first need that the setting does not meet; ValueError for a share that is none."""
    for need in method.needs:
        check_need(need, method)
    batch, N = method.batch, method.setting.numbers["N"]
    if batch is not None and not 1 <= batch <= N:
        raise NotMet(f"batch = {batch} must be from 1 to the N = {N:.0f} samples; leave it out for full gradients")
    for key in method.shares:
        if not 0 < float(getattr(method, key)) <= 1:
            raise ValueError(f"{key} = {getattr(method, key)} must be above 0 and at most 1")


def check_need(need: Need, method: Any) -> None:
    """NotMet with a need's sentence if the setting does not meet it."""
    if not need.is_met(method):
        floats = "" if method.keeps_rest else " and float = 64"
        raise NotMet(need.sentence.format(name=method.name, down=method.down.compressor.name, floats=floats), need.of)


PartialMean = Literal["", "over all", "over participants"]


@dataclass(frozen=True)
class Log:
    """Columns that a method adds to the trace, at logged rounds: from numbers of each worker, or from a vector of each."""

    columns: Sequence[str] = ()  # of /workers
    of_worker: Callable[[Any], Sequence[float]] = lambda worker: ()  # one number for each column, from a worker's memory
    of_means: Callable[[Mapping[str, float], Any], Mapping[str, float]] = lambda means, node: means  # of /trace, of means and node
    vector: Callable[[Any], Vector | None] = lambda worker: None  # (d,) of a worker
    of_mean: Callable[[Vector, Any], Mapping[str, float]] = lambda mean, node: {}  # of /trace, from its mean, at rank 0

    def __post_init__(self) -> None:
        if isinstance(self.columns, str) or not all(isinstance(column, str) and column.isidentifier() for column in self.columns):
            raise ValueError(f'logs = {self.columns!r} should be names of columns, such as ("height",)')
        if taken := sorted(TAKEN.intersection(self.columns)):
            raise ValueError(f"logs: '{taken[0]}' is a column that every run has; give it another name")


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
        return None if isinstance(self.up, ChoosingLink) else coordinates_sent(self.up.compressor, self.setting.dim)


class Proved:
    """What a theorem says of a method: V, and the factor ρ by which V falls in a round; by default nothing. See `theorem`."""

    lyapunov: Any = None  # V: a function of the node, the means of workers' terms, the master and an `AtRecord`; a number
    rate: Any = None  # ρ: a number, a formula of the method's quantities, or a function of the round that V went through
    theorem_formulas: ClassVar[Sequence[str]] = ()  # further formulas that name quantities of V
    theorem_needs: ClassVar[Sequence[Any]] = ()  # of V, beside what the method needs itself

    def lyapunov_terms(self, node: Any, worker: Any, f: Any) -> Sequence[float | Vector]:
        """What V needs of a worker, numbers and vectors (d,): `lyapunov` gets their means. `f` is its `Shard`."""
        return ()
