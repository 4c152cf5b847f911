"""The tables of a job file, each checked when it is built; [data] and the parts have modules of their own."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import Annotated, Any, Literal

from mpi_compress.core.expressions import Expression, seconds
from mpi_compress.core.fields import AtLeastOne, NotNegative, Positive, within
from mpi_compress.core.registry import Part
from mpi_compress.job.stops import StopRule
from mpi_compress.messages.codecs import Codec
from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.conventions import conventions_of
from mpi_compress.results.columns import column_of
from mpi_compress.results.targets import Target, goal

Tables = Mapping[str, Any]
"""A table of a job as TOML has it, of others by name; or values by dotted key."""
Named = str | Tables
"""What names a part: its name alone, or a table of that and its parameters."""


def _require(right: object, text: str) -> None:
    if not right:
        raise ValueError(text)


def some_of(key: str, given: int | float | None, n: int) -> int | None:
    """So many of n workers, or below 1 this share of them, at least one; None: all. ValueError if that cannot be."""
    if given is None:
        return None
    right = 1 <= given <= n if isinstance(given, int) else 0 < given <= 1
    _require(right, f"{key} = {given} should be from 1 to the {n} workers, or a share such as 0.1")
    r = given if isinstance(given, int) else max(1, round(given * n))
    return None if r == n else r


@dataclass(frozen=True)
class Stop(Part):
    """A job's [stop]: whichever comes first."""

    rounds: Annotated[int, within("[0, inf)")] | None = None
    horizon: AtLeastOne | None = None  # the rounds that formulas name, where the run ends before; None: `rounds`
    # a run that ends with f above this times max(f(x0), 1), and not recovering, is diverged
    diverged: Annotated[float, within("[1, inf]")] = 1e3
    targets: tuple[Target, ...] = field(default=(), init=False)  # `column = value`
    own: tuple[StopRule, ...] = field(default=(), init=False)  # those that a plugin registers

    @property
    def planned(self) -> int | None:
        """The rounds that formulas name."""
        return self.horizon or self.rounds

    @property
    def columns(self) -> set[str]:
        """The columns of its targets."""
        return {target.column for target in self.targets}

    @cached_property
    def budgets(self) -> list[Target]:
        """What is known in every round, and judged there; at rank 0 alone."""
        return [target for target in self.targets if column_of(target.column).counted]

    @cached_property
    def levels(self) -> list[Target]:
        """What is judged in logged rounds."""
        return [target for target in self.targets if target not in self.budgets]


class Ending(IntEnum):
    """After a round, a run goes on, or it has ended in one of three ways."""

    GO_ON = 0
    COMPLETE = 1
    DIVERGED = 2
    STOPPED = 3  # before it was done, its state saved


OF_A_RUN = (
    "seed", "data", "objective", "workers", "algorithm", "up", "down", "cost", "time", "start", "stop", "log", "checkpoint",
    "slurm", "tune",
)  # fmt: skip
NOT_OF_A_RUN = ("title", "paper", "plugins", "run", "grid", "figure", "claim", "record", "protocol", "full")

Scale = Literal["linear", "log"]
Basis = Literal["paper", "other data", "ours"]  # a paper's statement, where the paper has it or on data of ours; or a line of ours


@dataclass(frozen=True)
class ObjectiveTable:
    """A job's [objective]."""

    loss: Named | None = None  # "logistic", if no model stands in its place
    model: Named | None = None
    penalty: Named | None = None
    mu: Expression | None = None  # (µ/2)‖x‖²; in a formula L is the smoothness of the data part
    lambda2: Expression | None = None  # λ2‖x‖², GSpar's form
    regularizer: Literal["worker", "master"] = "worker"  # in the f_i, or applied by every node on its own
    noise: NotNegative = 0.0  # σ of a normal noise that gradients of workers get, E‖noise‖² = σ², drawn by worker and round
    smoothness: Positive | Literal["estimate"] | None = None  # L, or the largest that trial rounds see; None: what is stated
    f_star: float | Literal["lowest seen", "skip", "solve"] | None = None  # None: solved, where it is asked for or soon done

    def __post_init__(self) -> None:
        f_star = self.f_star
        one = self.loss is None or self.model is None
        _require(one, "loss and model were given; a model brings its own loss, so give one of them")
        _require(not isinstance(f_star, float | int) or math.isfinite(f_star), f"f_star = {f_star} is no finite number")
        _require(self.mu is None or self.lambda2 is None, "mu and lambda2 = mu/2 are two names of one thing; give one")


@dataclass(frozen=True)
class WorkersTable:
    """A job's [workers]. `exchange`, `master` and `patience` say how they are hosted, which changes no number."""

    count: Annotated[int, within("[1, 1000000]")] = 1
    partition: Named = "contiguous"
    exchange: Literal["p2p", "allgather"] = "p2p"
    master: Literal["dedicated", "worker"] = "worker"  # rank 0 hosts workers too, or is the master alone
    participate: int | float | None = None  # drawn in each round: so many workers, or below 1 this share; None: all
    patience: int | float | str = "30 min"  # for a rank that does not answer in the rounds: seconds, or time; 0: for ever

    def __post_init__(self) -> None:
        some_of("participate", self.participate, self.count)
        try:
            right = 0 <= self.patience_seconds < math.inf
        except ValueError as error:
            raise ValueError(f"patience: {error}") from None
        _require(right, f'patience = {self.patience} should be a time such as "30 min", or 0 to wait for ever')

    @property
    def participants(self) -> int | None:
        """r, the number of workers that take part in each round: at least one; None: all."""
        return some_of("participate", self.participate, self.count)

    @property
    def patience_seconds(self) -> float:
        return seconds(self.patience)


@dataclass(frozen=True)
class StartTable:
    """A job's [start]: x0."""

    at: str | None = None  # "zero", "random", "optimum", or a result file whose last point it is; None: zero, or the model's own
    scale: float = 1.0  # of the standard normal coordinates of "random"
    offset: float = 0.0  # added to every coordinate

    def __post_init__(self) -> None:
        for key in ("scale", "offset"):
            _require(math.isfinite(getattr(self, key)), f"{key} = {getattr(self, key)} is no finite number")


@dataclass(frozen=True)
class LogTable:
    """A job's [log]."""

    every: AtLeastOne | str = 1  # rounds, or a time of the model's clock such as "1 s"
    evaluate: int | None = None  # samples of each worker at which f and ∇f are taken, evenly spread over its shard; None: all
    theory: bool = False  # V of the method's theorem, and CAT's improvements and bounds, at every logged round
    metrics: list[Named] = field(default_factory=list)  # each a further column of the trace
    count: list[str] = field(default_factory=list)  # conventions by which bits up are counted, each a further column

    def __post_init__(self) -> None:
        rows = self.evaluate
        _require(rows is None or rows >= 1, f"evaluate = {rows} must be at least 1 sample a worker; leave it out for all samples")
        _require(rows is None or not self.theory, "theory = true needs f and ∇f of all samples: leave evaluate out")
        conventions_of(self.count)
        right = isinstance(self.every, int) or self.ns > 0
        _require(right, f'every = {self.every} must be at least one round, or a time such as "1 s"')

    @property
    def rounds(self) -> int:
        """The rounds from one row to the next, where it is no time; else 1."""
        return self.every if isinstance(self.every, int) else 1

    @property
    def ns(self) -> int:
        """The nanoseconds from one row to the next; 0 where `every` is rounds."""
        return 0 if isinstance(self.every, int) else round(1e9 * seconds(self.every))


@dataclass(frozen=True)
class Every:
    """A job's [checkpoint]."""

    every: int | str = "5 min"  # rounds, or time
    keep: bool = True  # the last state of a complete run, where it is small, for a longer run to go on from

    def __post_init__(self) -> None:
        right = (self.every if isinstance(self.every, int) else seconds(self.every)) > 0
        _require(right, f'every = {self.every} must be at least one round, or a time such as "5 min"')

    def is_over(self, rounds: int, elapsed: float) -> bool:
        """True if it is time to save, so many rounds and seconds after the last time."""
        return rounds >= self.every if isinstance(self.every, int) else elapsed >= seconds(self.every)


@dataclass(frozen=True)
class AxesTable:
    """The keys that [figure] and [[figure.panel]] share."""

    x: str | None = None
    y: str | None = None
    xscale: Scale | None = None  # None: linear but over budgets T
    yscale: Scale | None = None  # None: log for what falls to 0, such as suboptimality
    bounds: list[str] | None = None  # columns drawn dashed over the curves
    xlabel: str | None = None  # the paper's name of an axis; None: the column's
    ylabel: str | None = None
    xlim: list[float] | None = None  # the ends of an axis, the lower one first; None: all that there is
    ylim: list[float] | None = None
    at: dict[str, float] | None = None  # { loss = 0.4 }: what it took to come down to it, one point a run

    def __post_init__(self) -> None:
        for key in ("x", "y"):
            name = getattr(self, key)
            _require(name is None or name.strip(), f"{key} = {name!r} should be the name of a column, such as 'loss'")
        one = self.at is None or len(self.at) == 1
        _require(one, f"at = {self.at} should be one column and its value, such as {{ loss = 0.4 }}")
        for key in ("xlim", "ylim"):
            ends = getattr(self, key)
            right = ends is None or (len(ends) == 2 and -math.inf < ends[0] < ends[1] < math.inf)
            _require(right, f"{key} = {ends} should be the ends of an axis, the lower one first, such as [1e-4, 1]")


@dataclass(frozen=True)
class PanelTable(AxesTable):
    """A job's [[figure.panel]]; keys left out are as in [figure], but for names of axes that have another column here."""

    title: str = ""
    runs: list[str] = field(default_factory=lambda: ["*"])  # labels, or patterns of them such as "*, c2 = 0.25"


@dataclass(frozen=True)
class FigureTable(AxesTable):
    """A job's [figure]."""

    x: str = "wire_bits_up"
    y: str = "loss"
    bounds: list[str] = field(default_factory=list)
    rows: Literal["all", "last"] = "all"  # "last": one point a run, such as what it took to reach [stop]
    title: str | None = None
    columns: AtLeastOne = 3  # of panels
    methods: list[str] = field(default_factory=list)  # labels, in the order of their hues; []: all of the job
    to: dict[str, float] | None = None  # { squared_grad_norm = 1e-4 }: the report says which method needs the least to get there
    by: str = "wire_bits_up"  # the column in which `to` is paid
    notes: list[str] = field(default_factory=list)  # columns whose last entries each panel shows
    panel: list[PanelTable] = field(default_factory=list)  # [[figure.panel]]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.to is not None:
            goal(self.to)

    @property
    def ys(self) -> list[str]:
        """The columns of y."""
        return [name.strip() for name in self.y.split(",")]

    def changed(self, **asked: Any) -> "FigureTable":
        """The same with other x, y or bounds, in all panels."""
        of_axis = "label", "lim", "scale"
        unset: dict[str, Any] = {f"{which}{what}": None for which in ("x", "y") if which in asked for what in of_axis}
        unset |= {"bounds": []} if "y" in asked else {}
        of_panels: dict[str, Any] = dict.fromkeys((*asked, *unset))
        return replace(self, **{**unset, **asked}, panel=[replace(p, **of_panels) for p in self.panel])


@dataclass(frozen=True)
class Claim:
    """What a paper says, as a check on the results."""

    id: str
    says: str
    value: str
    holds: str
    basis: Basis = "ours"
    words: str = ""  # the paper's own words
    sentence: str = ""  # claims of one sentence count once; "": the words, or what the claim says before its grid
    paper: float | str | None = None  # the paper's own number
    alone: bool = False  # True if only runs can test it whose workers each had a rank and a core alone
    why: str = ""  # the reason found, printed where it does not hold
    note: str = ""  # always printed, such as a misprint in the paper
    read: Literal["full text", "abstract"] = "full text"  # of the paper, where its words were found
    unit: str = ""  # of the value, such as "packets' cost"
    reference: str = ""  # how far a number that the value is compared with is off: where it meets no `holds`, nothing is judged


@dataclass(frozen=True)
class LinkTable:
    """A job's [up] or [down]."""

    compressor: Compressor
    codec: Codec
    budget: Literal["cat"] | None = None  # of [up]: "cat": T of top-k, or a contraction's size, is tuned for each message
