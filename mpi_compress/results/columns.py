"""The columns of results, one row of `columns.toml` each: what writes, reads, draws and lists columns reads this table.

A further column of the trace is a row there, and the line that computes it; for a counted one, that is a field of
`engine.counting.Counts` with the line that counts. Columns that a user's own algorithm adds need no row: they are floats, and
their name is their label.
"""

import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError

OF_CLOCK = "model", "waited", "queue"
"""What the columns of a model's clock are `since`."""

Arrays = Mapping[str, NDArray]
"""Arrays by their names, such as columns."""


class Columned(Protocol):
    """Rows by column, with what is known of their run."""

    @property
    def attrs(self) -> Mapping[str, Any]: ...
    def column(self, name: str) -> NDArray: ...


class Result(Columned, Protocol):
    """A result that was read, as `reader.Run`, for what the reader itself needs."""

    @property
    def trace(self) -> Arrays: ...
    @property
    def workers(self) -> Arrays: ...
    @property
    def theory(self) -> Arrays: ...


@dataclass(frozen=True)
class Column:
    """A column of results."""

    name: str
    label: str  # its name in figures and pages
    since: Literal[
        "counter", "convention", "model", "waited", "queue", "evaluation", "point", "algorithm", "clock", "theory", "result",
        "curves", "bounds", "setting",
    ]  # fmt: skip
    """Where it comes from. The file holds: counter, counts of messages; convention, those of [log] count; model, of a model's
    clock, with waited, where workers begin together, and queue, where they do not; evaluation, the round, f and ∇f at the row's
    point; point, numbers of that point alone; algorithm; clock; theory, what
    [log] theory adds. The file does not hold: result, which `derive` computes from other columns; curves over T and
    bounds at each row, which `results.bounds` computes from /theory; setting, one number for the whole run."""
    dtype: Literal["int64", "float64"] = "float64"
    unit: str = ""
    table: Literal["trace", "workers", "timing", "theory", ""] = "trace"  # the group of the file that holds it; "": none
    workers: bool = False  # True if /workers has it too, one number a worker
    falls: bool = False  # to zero: its axis is logarithmic unless a figure says otherwise
    grows: bool = False  # in every run, as what is spent does: a budget; True of counts and clocks
    rises: bool = False  # to a level, as an accuracy does; what neither grows nor rises comes down to one
    short: str = ""  # its name beside a panel's curves; "": `name`
    derive: Callable[[Columned], NDArray] | None = None
    of: tuple[Any, ...] = ()  # what `derive` takes: columns, and numbers
    common: bool = False  # True: it is one curve for all runs on a problem, which figures draw once, in grey

    @property
    def whole_label(self) -> str:
        """Its label, and that it is the sum over all workers where bits of links may be taken for those of one."""
        return self.label + ", over all workers" * ("link bits" in self.label and "bits/n" not in self.label)

    @property
    def in_sentence(self) -> str:
        """Its label amid other words: "uplink bits on the wire"."""
        return self.label.replace(", ", " ")

    @property
    def counted(self) -> bool:
        """True if it grows, and is known in every round, also where no point is evaluated."""
        return self.grows and (self.since in ("counter", "convention", *OF_CLOCK, "result") or self.name == "seconds")


Derivation = Callable[..., NDArray]
"""Takes a result and the names of its columns, or attributes, from which it follows."""


def _each_message(run: Columned, bits: str) -> NDArray:
    each = np.diff(run.column(bits)) / np.diff(run.column("round"))
    return np.concatenate([[np.nan], each / (run.attrs["n_workers"] * run.attrs["dim"])])


def _density(run: Columned, name: str, bits: int) -> NDArray:
    rounds = run.column("round")
    sent = run.column(name) / (bits * np.maximum(rounds, 1) * run.attrs["n_workers"] * run.attrs["dim"])
    return np.where(rounds > 0, sent, np.nan)


def _sum(run: Columned, one: str, other: str) -> NDArray:
    return run.column(one) + run.column(other)


def _square(run: Columned, name: str) -> NDArray:
    with np.errstate(over="ignore"):  # a run may diverge
        return np.square(run.column(name))


def _floor(run: Columned, bits: str, directions: int) -> NDArray:
    """(f(x0) − f*) 4^(−bits/(n d directions)): with R bits a coordinate and direction in a round no method of gradient type has
    ‖x − x*‖ fall by more than 2^−R for all functions (Lin, Kostina, Hassibi, arXiv 2002.02508), and f − f* falls as its square."""
    each = run.column(bits) / (directions * run.attrs["n_workers"] * run.attrs["dim"])
    return run.column("suboptimality")[0] * np.exp2(-2.0 * each)


def _constant(run: Columned, name: str) -> NDArray:
    return np.full(len(run.column("round")), float(run.attrs.get(name, np.nan)))


def _relative(run: Columned, name: str) -> NDArray:
    return run.column(name) / (run.column(name)[0] or 1.0)


def _ratio(run: Columned, above: str, below: str) -> NDArray:
    return np.full(len(run.column("round")), run.attrs[above] / run.attrs[below] if run.attrs[below] > 0 else np.inf)


def _each_worker(run: Columned, name: str) -> NDArray:
    return run.column(name) / run.attrs["n_workers"]


_DERIVATIONS: Mapping[str, Derivation] = {
    f.__name__[1:]: f for f in (_each_message, _density, _sum, _square, _floor, _constant, _relative, _ratio, _each_worker)
}


def _read(since: Any, derive: Sequence[Any] = (), grows: bool | None = None, **row: Any) -> Column:
    name, *of = derive or ("",)
    grows = since in ("counter", "convention", *OF_CLOCK, "clock") if grows is None else grows
    derivation = (lambda run: _DERIVATIONS[name](run, *of)) if derive else None
    return Column(**row, since=since, grows=grows, derive=derivation, of=tuple(of))


COLUMNS = tuple(_read(**row) for row in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["column"])
"""Where two tables have a column of one name, the first is the one that figures draw."""

LEFT_OUT = "left out"
"""The attribute f_star_source of a result whose f* can be computed and was not, since that takes long and nothing asked for it."""

NOT_ATTAINED = "not attained: mu = 0, and x separates "
INFIMUM = NOT_ATTAINED + "the samples, so f falls towards 0 as x grows"
INFIMUM_IN_PART = NOT_ATTAINED + "some of the samples, so f falls on as x grows"
"""The same attribute where f* is known and there is no x*; both begin alike."""

TAKEN = frozenset(c.name for c in COLUMNS if c.table == "trace" and c.since != "algorithm")
"""Columns of a trace that no algorithm may add."""

_OF_TABLES = ("label", "seed", "job")
"""Columns of configuration in a table of all results."""

_BY_NAME = {c.name: c for c in reversed(COLUMNS)}
_IN_FILES = {f"{c.table}/{c.name}": str(c.dtype) for c in COLUMNS if c.table}
_IN_FILES |= {f"workers/{c.name}": str(c.dtype) for c in COLUMNS if c.workers}


def known(name: str) -> bool:
    """True if results can have a column of this name, whatever the algorithm."""
    return name in _BY_NAME


def refuse_column(name: str, others: Collection[str]) -> None:
    """UserError if a further column of the trace cannot have this name; `others` are further columns too."""
    if not isinstance(name, str) or not name.isidentifier():
        raise UserError(f"log.metrics: {name!r} is no name of a column, such as 'accuracy': letters, digits and _")
    if known(name) or name in _OF_TABLES or name in others:
        raise UserError(f"log.metrics: '{name}' is the name of another column; give it another")


def column_of(name: str) -> Column:
    """The column of this name, or that of a user's algorithm."""
    return _BY_NAME.get(name) or Column(name, name, "algorithm", workers=True)


class RowsSoFar:
    """Rows of a run that is under way, whose columns are derived as those of its result will be."""

    def __init__(self, rows: Sequence[Mapping[str, float]], attrs: Mapping[str, Any]):
        self._rows, self.attrs = rows, attrs

    def column(self, name: str) -> NDArray:
        """A column of /trace or /timing, or one that is derived from them; UserError if the run has none of that name."""
        if name in self._rows[-1]:
            return np.array([row[name] for row in self._rows], dtype=float)
        if (derive := column_of(name).derive) is None:
            raise UserError(f"this run logs no column '{name}'; it logs {', '.join(self._rows[-1])}")
        return derive(self)


def dtype_of(name: str) -> str:
    """What a file holds the numbers of a column as, "trace/round"; floats where no row of `COLUMNS` says otherwise."""
    return _IN_FILES.get(name, "float64")


def named(*since: str) -> list[str]:
    """The names of the columns that come from there."""
    return [c.name for c in COLUMNS if c.since in since]


def schema() -> str:
    """The columns that a file of rows may hold, one a line: a checkpoint goes on with the rows of the same schema only."""
    return "\n".join(f"{c.table}/{c.name} {c.dtype}{' and workers' * c.workers}" for c in COLUMNS if c.table)


def listing() -> Iterator[str]:
    """A line for each column: its name, what it is, its unit, and where it is found."""
    for c in COLUMNS:
        unit = f" [{c.unit}]" if c.unit else ""
        unit += ", by the papers' formula or of the bytes sent: `list costs`" * c.label.endswith("link cost")
        place = "/" + c.table + ", /workers" * c.workers if c.table else "one number a run" if c.since == "setting" else "derived"
        yield f"  {c.name:22s} {c.label}{unit}; {place}"
