"""The columns of results, one row of one table each: what writes, reads, draws and lists columns reads this table.

A further column of the trace is a row here, and the line that computes it; for a counted one, that is a field of
`engine.counting.Counts` with the line that counts. Columns that a user's own algorithm adds need no row: they are floats, and
their name is their label.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError


class Result(Protocol):
    """A result that was read, as `reader.Run`, for modules that the reader itself needs."""

    @property
    def file(self) -> Path: ...
    @property
    def attrs(self) -> Mapping[str, Any]: ...
    @property
    def label(self) -> str: ...
    @property
    def trace(self) -> Mapping[str, NDArray]: ...
    @property
    def workers(self) -> Mapping[str, NDArray]: ...
    @property
    def timing(self) -> Mapping[str, NDArray]: ...
    @property
    def rows(self) -> int: ...
    @property
    def written(self) -> dict[str, Any]: ...
    @property
    def theory(self) -> Mapping[str, NDArray]: ...
    def column(self, name: str) -> NDArray: ...


@dataclass(frozen=True)
class Column:
    """A column of results."""

    name: str
    dtype: Literal["int64", "float64"]
    unit: str
    label: str  # its name in figures and pages
    since: Literal[
        "counter", "convention", "model", "evaluation", "point", "algorithm", "clock", "theory", "result", "curves", "bounds",
        "setting",
    ]  # fmt: skip
    """Where it comes from. The file holds: counter, counts of messages; convention, those of [log] count; model, of a cost model's
    clock; evaluation, the round, f and ∇f at the row's point; point, numbers of that point alone; algorithm; clock; theory, the
    improvements of [log] theory. The file does not hold: result, which `derive` computes from other columns; curves over T and
    bounds at each row, which `results.bounds` computes from /theory; setting, one number for the whole run."""
    table: Literal["trace", "workers", "timing", "theory", ""] = "trace"  # the group of the file that holds it; "": none
    workers: bool = False  # True if /workers has it too, one number a worker
    falls: bool = False  # to zero: its axis is logarithmic unless a figure says otherwise
    short: str = ""  # its name beside a panel's curves; "": `name`
    derive: Callable[[Result], NDArray] | None = None
    common: bool = False  # True: it is one curve for all runs on a problem, which figures draw once, in grey


def _each_message(way: str) -> Callable[[Result], NDArray]:
    def derive(run: Result) -> NDArray:
        each = np.diff(run.trace[f"wire_bits_{way}"]) / np.diff(run.trace["round"])
        return np.concatenate([[np.nan], each / (run.attrs["n_workers"] * run.attrs["dim"])])

    return derive


def _density(name: str, bits: int) -> Callable[[Result], NDArray]:
    def derive(run: Result) -> NDArray:
        sent = run.column(name) / (bits * np.maximum(run.trace["round"], 1) * run.attrs["n_workers"] * run.attrs["dim"])
        return np.where(run.trace["round"] > 0, sent, np.nan)

    return derive


def _both(name: str) -> Callable[[Result], NDArray]:
    return lambda run: run.column(f"{name}_up") + run.column(f"{name}_down")


def _squared(name: str) -> Callable[[Result], NDArray]:
    def derive(run: Result) -> NDArray:
        with np.errstate(over="ignore"):  # a run may diverge
            return np.square(run.column(name))

    return derive


def _floor(bits: str, directions: int) -> Callable[[Result], NDArray]:
    """(f(x0) − f*) 4^(−bits/(n d directions)): with R bits a coordinate and direction in a round no method of gradient type has
    ‖x − x*‖ fall by more than 2^−R for all functions (Lin, Kostina, Hassibi, arXiv 2002.02508), and f − f* falls as its square."""

    def derive(run: Result) -> NDArray:
        each = run.column(bits) / (directions * run.attrs["n_workers"] * run.attrs["dim"])
        return run.column("suboptimality")[0] * np.exp2(-2.0 * each)

    return derive


def _constant(name: str) -> Callable[[Result], NDArray]:
    return lambda run: np.full(len(run.trace["round"]), float(run.attrs.get(name, np.nan)))


def _relative(run: Result) -> NDArray:
    distance = run.column("distance")
    return distance / (distance[0] or 1.0)


def _kappa(run: Result) -> NDArray:
    mu = run.attrs["mu"]
    return np.full(len(run.trace["round"]), run.attrs["L"] / mu if mu > 0 else np.inf)


def _each_worker(name: str) -> Callable[[Result], NDArray]:
    return lambda run: run.column(name) / run.attrs["n_workers"]


COLUMNS = (
    Column("round", "int64", "", "round", "evaluation"),
    Column("epoch", "float64", "", "passes over the data", "evaluation"),
    Column("loss", "float64", "", "loss f(x)", "evaluation"),
    Column("suboptimality", "float64", "", "suboptimality f(x) − f*", "evaluation", falls=True),
    Column("grad_norm", "float64", "", "gradient norm ‖∇f(x)‖", "evaluation", falls=True),
    Column("wire_bits_up", "int64", "bit", "bits sent up, on the wire", "counter", workers=True),
    Column("wire_bits_down", "int64", "bit", "bits sent down, on the wire", "counter"),
    Column("paper_bits_up", "float64", "bit", "bits sent up, by the papers' formula", "counter", workers=True),
    Column("paper_bits_down", "float64", "bit", "bits sent down, by the papers' formula", "counter"),
    Column("elements_up", "int64", "", "coordinates sent up", "counter"),
    Column("cost_up", "float64", "", "communication cost up", "counter"),
    Column("cost_down", "float64", "", "communication cost down", "counter"),
    Column("bits_cat", "float64", "bit", "bits sent up, each value with its index (CAT)", "convention"),
    Column("bits_values_32", "float64", "bit", "bits sent up, 32 a value (EF21, MARINA, DASHA)", "convention"),
    Column("bits_values_64", "float64", "bit", "bits sent up, 64 a value (3PC)", "convention"),
    Column("bits_values_indices", "float64", "bit", "bits sent up, 32 a value, and its index", "convention"),
    Column("bits_padded", "float64", "bit", "bits sent up, padded to the largest worker (HT's code)", "convention"),
    Column("bits_cheapest_indices", "float64", "bit", "bits sent up, 32 a value, and the cheapest index set", "convention"),
    Column("bits_gspar", "float64", "bit", "bits sent up, GSpar's string at its entropy", "convention"),
    Column("average_density", "float64", "", "average density (1/T) Σ k_t/d", "result", "", derive=_density("elements_up", 1)),
    Column("padded_density", "float64", "", "average density, padding counted", "result", "", derive=_density("bits_padded", 64)),
    Column("model_seconds", "float64", "s", "time by the model of the links", "model"),
    Column("model_fixed", "float64", "s", "of it computing and latency", "model"),
    Column("model_bits", "float64", "bit", "bits of the messages that were waited for", "model"),
    Column("squared_grad_norm", "float64", "", "‖∇f(x)‖²", "result", "", falls=True, derive=_squared("grad_norm")),
    Column("squared_error", "float64", "", "squared error, mean ‖e‖²", "result", "", falls=True, derive=_squared("error_norm")),
    Column("wire_bits", "int64", "bit", "bits sent up and down, on the wire", "result", "", derive=_both("wire_bits")),
    Column(
        "paper_bits", "float64", "bit", "bits sent up and down, by the papers' formula", "result", "", derive=_both("paper_bits")
    ),
    Column(
        "floor", "float64", "", "least f − f*, by bits up and down", "result", "", falls=True, derive=_floor("wire_bits", 2),
        common=True,
    ),
    Column(
        "floor_up", "float64", "", "least f − f*, bits up", "result", "", falls=True, derive=_floor("wire_bits_up", 1), common=True
    ),
    Column("wire_bits_up_n", "float64", "bit", "bits/n sent up, on the wire", "result", "", derive=_each_worker("wire_bits_up")),
    Column("bits_32_n", "float64", "bit", "bits/n sent up, 32 a value", "result", "", derive=_each_worker("bits_values_32")),
    Column("bits_64_n", "float64", "bit", "bits/n sent up, 64 a value", "result", "", derive=_each_worker("bits_values_64")),
    Column("bits_up", "float64", "", "bits a coordinate, message up", "result", "", derive=_each_message("up")),
    Column("bits_down", "float64", "", "bits a coordinate, message down", "result", "", derive=_each_message("down")),
    Column("distance", "float64", "", "distance ‖x − x*‖", "point", falls=True),
    Column("relative_distance", "float64", "", "distance ‖x − x*‖ / ‖x0 − x*‖", "result", "", falls=True, derive=_relative),
    Column("test_loss", "float64", "", "loss on the test set", "point"),
    Column("test_accuracy", "float64", "", "accuracy on the test set", "point"),
    Column("step", "float64", "", "step", "setting", ""),
    Column("rate", "float64", "", "c'", "setting", ""),
    Column("L", "float64", "", "L of f", "setting", "", derive=_constant("L")),
    Column("L_max", "float64", "", "largest L of the f_i", "setting", "", derive=_constant("L_max")),
    Column("mu", "float64", "", "µ of f", "setting", "", derive=_constant("mu")),
    Column("kappa", "float64", "", "condition number L/µ", "setting", "", derive=_kappa),
    Column("rho", "float64", "", "ρ of the theorem", "setting", ""),
    Column("bound", "float64", "", "theorem's bound", "algorithm"),
    Column("gap", "float64", "", "‖v − ∇f(y)‖ over its bound", "algorithm"),
    Column("lower_up", "float64", "", "Lemma 2.1, least", "algorithm", workers=True),
    Column("upper_up", "float64", "", "Lemma 2.1, most", "algorithm", workers=True),
    Column("lower_down", "float64", "", "Lemma 2.1, least", "algorithm"),
    Column("upper_down", "float64", "", "Lemma 2.1, most", "algorithm"),
    Column("budget", "float64", "", "budget T (mean over workers)", "algorithm", workers=True),
    Column("T", "int64", "", "budget T", "curves", ""),
    Column("payload", "float64", "bit", "payload P(T)", "curves", ""),
    Column("alpha_bar", "float64", "", "least α(T) over the run", "curves", ""),
    Column("beta_bar", "float64", "", "least β(T) over the run", "curves", ""),
    Column("omega_bar", "float64", "", "least ω(T) over the run", "curves", ""),
    Column("worst_case", "float64", "", "worst case T/d", "curves", ""),
    Column("speedup", "float64", "", "SpeedUp(T) = d ᾱ_T / T", "curves", ""),
    Column("predicted_cost", "float64", "", "predicted cost C(T) / ᾱ_T", "curves", ""),
    Column("predicted_payload", "float64", "bit", "predicted payload P(T) / ᾱ_T", "curves", ""),
    Column("cost_sent", "float64", "", "cost of a message sent", "curves", ""),
    Column("payload_sent", "float64", "bit", "payload of a message sent", "curves", ""),
    Column("table1", "float64", "", "bound on rounds, data-dependent", "bounds", ""),
    Column("table1_gd", "float64", "", "bound on rounds, no compression", "bounds", ""),
    Column("table1_worst_case", "float64", "", "bound on rounds, worst case", "bounds", ""),
    Column("growth", "float64", "", "ρ estimated, E‖g‖² / 2L(f − f*)", "bounds", ""),
    Column("seconds", "float64", "s", "time", "clock", "timing"),
    Column("compute", "float64", "s", "time in gradients", "clock", "timing"),
    Column("pack", "float64", "s", "time in compression and coding", "clock", "timing"),
    Column("exchange", "float64", "s", "time in exchange", "clock", "timing"),
    Column("update", "float64", "s", "time in updates", "clock", "timing"),
    Column("evaluate", "float64", "s", "time in evaluation, off the clock", "clock", "timing"),
    Column("variance", "float64", "", "var = Σ‖Q(g)‖² / Σ‖g‖²", "algorithm", short="var"),
    Column("spa", "float64", "", "share of coordinates sent", "algorithm", workers=True),
    Column("variance_spa", "float64", "", "var · spa", "algorithm", short="var·spa"),
    Column("squares_sent", "float64", "", "Σ‖Q(g)‖²", "algorithm", "workers"),
    Column("squares", "float64", "", "Σ‖g‖²", "algorithm", "workers"),
    Column("error_norm", "float64", "", "error norm √(mean ‖e‖²)", "algorithm", workers=True, falls=True),
    Column("total_error", "float64", "", "total error Σ mean ‖e‖²", "algorithm", workers=True),
    Column("density", "float64", "", "share of coordinates in the last message", "algorithm", workers=True),
    Column("corrected_norm", "float64", "", "corrected gradient's norm √(mean ‖p/γ‖²)", "algorithm", workers=True),
    Column("silent", "float64", "", "silent workers", "algorithm"),
    Column("updates", "float64", "", "updates, all workers", "algorithm", workers=True),
    Column("coordinate_writes", "float64", "", "coordinates written, all workers", "algorithm", workers=True),
    Column("retries", "float64", "", "writes that came second, all workers", "algorithm", workers=True),
    Column("alpha", "float64", "", "α(T) of ∇f(x)", "theory", "theory"),
    Column("beta", "float64", "", "β(T) of ∇f(x)", "theory", "theory"),
    Column("omega", "float64", "", "least ω(T) of the workers' ∇f_i(x)", "theory", "theory"),
    Column("improvement", "float64", "", "improvement of the next round", "theory", "theory"),
    Column("variance", "float64", "", "σ² = (1/n) Σ E‖g_i − ∇f(x)‖²", "theory", "theory"),
)
"""Where two tables have a column of one name, the first is the one that figures draw."""

LEVELS = ("loss", "suboptimality", "grad_norm", "squared_grad_norm", "relative_distance")
"""The columns that [stop] has a key for: a level at which a run is complete."""

LEFT_OUT = "left out"
"""The attribute f_star_source of a result whose f* can be computed and was not, since that takes long and nothing asked for it."""

INFIMUM = "not attained: mu = 0, and x separates the samples, so f falls towards 0 as x grows"
"""The same attribute where f* is known and there is no x*."""

TAKEN = frozenset(c.name for c in COLUMNS if c.table == "trace" and c.since != "algorithm")
"""Columns of a trace that no algorithm may add."""

_OF_TABLES = ("label", "seed", "job")
"""Columns of configuration in a table of all results."""

_BY_NAME = {c.name: c for c in reversed(COLUMNS)}
_IN_FILES = {f"{table}/{c.name}": c for c in COLUMNS for table in (c.table, "workers" if c.workers else c.table) if table}


def known(name: str) -> bool:
    """True if results can have a column of this name, whatever the algorithm."""
    return name in _BY_NAME


def refuse_column(name: str, others: Collection[str], where: str) -> None:
    """UserError, with its place, if a further column of the trace cannot have this name; `others` are further columns too."""
    if not isinstance(name, str) or not name.isidentifier():
        raise UserError(f"{where}: {name!r} is no name of a column, such as 'accuracy': letters, digits and _")
    if known(name) or name in _OF_TABLES or name in others:
        raise UserError(f"{where}: '{name}' is the name of another column; give it another")


def column_of(name: str) -> Column:
    """The column of this name, or that of a user's algorithm."""
    return _BY_NAME.get(name) or Column(name, "float64", "", name, "algorithm", workers=True)


def dtype_of(table: str, name: str) -> str:
    """What a file holds the column's numbers as, in this table; floats where no row of `COLUMNS` says otherwise."""
    found = _IN_FILES.get(f"{table}/{name}")
    return found.dtype if found else "float64"


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
        place = "/" + c.table + ", /workers" * c.workers if c.table else "one number a run" if c.since == "setting" else "derived"
        yield f"  {c.name:18s} {c.label}{unit}; {place}"
