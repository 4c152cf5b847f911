"""Reads results, one HDF5 file a run, as `writer` writes them."""

import json
import re
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import seals, tables
from mpi_compress.core.errors import UserError, nearest, system_text
from mpi_compress.core.expressions import seconds
from mpi_compress.core.terminal import printable
from mpi_compress.messages.kinds import Vector
from mpi_compress.results import bounds, checksums, hdf5
from mpi_compress.results.columns import LEFT_OUT, NOT_ATTAINED, Arrays, column_of, named
from mpi_compress.results.files import refuse_archive, refuse_no_file
from mpi_compress.results.locks import is_being_written
from mpi_compress.results.probing import complaint_of, is_doubtful
from mpi_compress.results.settings import settings_of
from mpi_compress.results.targets import Target, rises

FORMAT = "mpi-compress/1"
NUMBERS = 2  # version of how sums are rounded; before 2, those over dense rows were as the processor has it, and not written down
_TRIES = 5
LABEL = "label"  # the attribute of a file that holds the label of its run
ANY_SEED = "any_seed"  # of a result whose run drew no random number: the id that it has in common with other seeds
COPY_OF = "copy_of"  # of a copy: the id of the run that was executed with another seed
DOUBTS = "doubts"  # the attribute of a result: where users' parts kept something from call to call, what they state wrongly
_NEEDED = (LABEL, "status")
_OTHERS = {".toml": "a job; `plan` and `table` take it", ".ckpt": "a checkpoint, from which `run` goes on"}
TABLES = ("trace", "workers", "timing", "theory")
GROUPS = (*TABLES, "split", "final")  # of a file
_SHOWN = ("round", "loss", "suboptimality", "grad_norm", "wire_bits_up", "wire_bits_down", "cost_up")
TIGHTEST = 1100  # no filter of HDF5 packs bytes more tightly


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A result read back. `trace`, `workers` and `timing` map a column's name to its array. It prints as one line, and as a table
    in notebooks."""

    file: Path
    attrs: dict[str, Any]
    trace: Arrays
    workers: Arrays
    timing: Arrays
    x: Vector | None
    theory: Arrays = field(default_factory=dict)  # where the job asked for it
    split: Arrays = field(default_factory=dict)  # rows (n,); labels (K,) and counts (n, K) of them
    x_star: Vector | None = None  # where the run knew it
    has_checksums: bool = False  # and they hold; results of earlier versions have none

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name} {value}" for name, value in self._last().items() if name in ("round", "loss"))
        return printable(f"Run({self.label!r}, {self.status}, {numbers or 'no records'}, {self.file})")

    def _repr_html_(self) -> str:
        return Runs([self])._repr_html_()

    def _last(self) -> dict[str, str]:
        """The numbers of its last record, as they are shown."""
        if not self.rows:
            return {}
        last = {name: self.trace[name][-1] for name in _SHOWN if name in self.trace}
        shown = {name: f"{number:,d}" if number.dtype.kind == "i" else f"{number:.6g}" for name, number in last.items()}
        return {**shown, "seconds": f"{self.timing['seconds'][-1]:.3g}"}

    @property
    def label(self) -> str:
        return self.attrs[LABEL]

    @property
    def tuned(self) -> Mapping[str, Any] | None:
        """What [tune] found: `parameter`, the `value` that won, `merit`, and `tried`, pairs of a value and its merit. Where trials
        came down to a level of [stop], `rounds` has what each value took to it, None for one that did not."""
        return json.loads(self.attrs.get("tuned", "null"))

    @property
    def inputs(self) -> list[str]:
        """A hash of each file of its data, and of the user's own code in each module; [] of an earlier version's result."""
        return [*json.loads(self.attrs.get("inputs", "{}")).values()]

    @property
    def rising(self) -> list[str]:
        """The metrics that rise, as an accuracy does; earlier versions did not say it of their own."""
        return json.loads(self.attrs.get("rising", '["accuracy", "hit_rate"]'))

    @property
    def status(self) -> str:
        return self.attrs["status"]

    @property
    def ended_by(self) -> str:
        """Why it ended, in a few words: the reason in its file, or which value of [stop] it reached; "" if that does not say."""
        if (reason := str(self.attrs.get("reason", "")).removeprefix("stopped ")) or self.status != "complete" or not self.rows:
            return reason
        stop = self.written.get("stop", {})
        targets = [Target.of(key, seconds(level), self.rising) for key, level in stop.items() if self.has(key) and key != "seconds"]
        met = [str(target) for target in targets if target.is_met(self)]
        if stop.get("rounds") == self.trace["round"][-1]:
            met.append(f"{stop['rounds']:,} rounds")
        limit = stop.get("seconds", "")
        return met[0] if met else limit if isinstance(limit, str) else f"{limit:g} s"

    @property
    def cores(self) -> int:
        """The cores of the host of the run; 0 where its file does not say. Earlier versions said it in words alone."""
        said = re.search(r"(\d+) cores\)$", str(self.attrs.get("host", "")))
        return int(self.attrs["cores"] if "cores" in self.attrs else said[1] if said else 0)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.trace.get("round", ()))

    @property
    def written(self) -> dict[str, Any]:
        """The tables of the run as its job wrote them."""
        return tomllib.loads(self.attrs.get("job", ""))

    @property
    def seed(self) -> int:
        """The seed of the run, 0 where its job states none."""
        return int(self.written.get("seed", 0))

    @property
    def evaluated(self) -> dict[str, float]:
        """The numbers that formulas of the algorithm came to, such as its step."""
        return json.loads(self.attrs.get("settled", "{}"))

    def column(self, name: str) -> NDArray:
        """A column of `columns.COLUMNS` or of the algorithm: of /trace or /timing, or derived from them or from /theory.

        bits_up and bits_down are means over the rounds since the row before. A number that an algorithm's formula came to, such as
        step, or a setting by its dotted key, such as up.compressor.k, is the same in every row.

        Raises:
            UserError: there is none of that name.
        """
        if (found := self._found(name)) is not None:
            return found
        if name in named("curves", "bounds"):
            raise UserError(f"{self.file}: '{name}' is theory, which this run was not asked for: [log] theory = true")
        if name in named("convention"):
            raise UserError(f"{self.file}: '{name}' is a way of counting, which this run was not asked for: [log] count names them")
        source = str(self.attrs.get("f_star_source", ""))
        if name in ("distance", "relative_distance") and source.startswith((LEFT_OUT, NOT_ATTAINED)):
            solve = '[objective] f_star = "solve", or a figure or claim that names it, computes x* before the rounds'
            none = f"and there is none: f* = {self.attrs['f_star']:.6g} is {source}"
            why = f"which nothing asked for: {solve}" if source == LEFT_OUT else none
            raise UserError(f"{self.file}: '{name}' needs x*, {why}")
        there = [*self.trace, *self.timing, *named("result"), "L", "L_max", "mu", "kappa", *self.evaluated, *bounds.columns(self)]
        keys = [key for key in settings_of(self.written) if key.endswith(f".{name}")]
        raise UserError(f"{self.file}: {nearest(name, keys or there, 'column')}")

    def _found(self, name: str) -> NDArray | None:
        if name in self.trace or name in self.timing:
            return self.trace.get(name, self.timing.get(name))
        if (derive := column_of(name).derive) is not None:
            return derive(self)
        evaluated, settings = self.evaluated, settings_of(self.written) if "." in name else {}
        if isinstance(number := evaluated.get(name.removeprefix("algorithm."), settings.get(name)), int | float):
            return np.full(self.rows, number)
        if re.fullmatch(r"[\d.]+%", str(number)):
            return np.full(self.rows, float(str(number)[:-1]) / 100)
        return bounds.columns(self).get(name)

    def has(self, name: str) -> bool:
        """True if there is a column of that name."""
        try:
            return self._found(name) is not None
        except UserError:  # of another column, from which it would follow
            return False

    def to(self, column: str, level: float, rising: bool | None = None) -> "ResultRow | None":
        """The first row at which a column has come down to a level, or risen to it; None if there is none.
        `run.to("loss", 0.4)["wire_bits_up"]`

        Args:
            rising: true: the first row at or above it; left out: as the column says, such as an accuracy, or what is spent.

        Raises:
            UserError: there is no such column.
        """
        number = Target(column, level, rises(column, self.rising) if rising is None else rising).row_of(self)
        return None if number is None else ResultRow(self, number)

    def to_csv(self) -> Iterator[str]:
        """/trace and the algorithm's seconds as lines of CSV, of which the first names the columns; numbers lose no digit."""
        if "round" not in self.trace:
            raise UserError(f"{self.file}: there are no records yet")
        columns = {name: self.trace[name] for name in ("round", *self.trace)} | {"seconds": self.timing["seconds"]}
        yield tables.comma_separated([*columns], [])
        for row in zip(*(values.tolist() for values in columns.values()), strict=True):
            yield ",".join(map(repr, row)) + "\n"

    def to_pandas(self) -> Any:
        """/trace as a DataFrame, where pandas is installed."""
        try:
            import pandas
        except ImportError:
            raise UserError("to_pandas needs pandas: pip install 'mpi-compress[pandas]'") from None
        return pandas.DataFrame(self.trace)


class Runs(list[Run]):
    """Results; they print as one line each, and as a table in notebooks."""

    def __repr__(self) -> str:
        return "\n".join(map(repr, self)) or "no results"

    def _repr_html_(self) -> str:
        heads = (*_SHOWN, "seconds")
        numbers = ([run._last().get(name, "–") for name in heads] for run in self)
        rows = [[run.label, run.status, *shown, str(run.file)] for run, shown in zip(self, numbers, strict=True)]
        return tables.html(("label", "status", *heads, "file"), rows)


def rising(runs: Iterable[Run]) -> set[str]:
    """The metrics that rise in any of these results."""
    return {metric for run in runs for metric in run.rising}


class ResultRow(dict[str, Any]):
    """One row of a result by column: `label`, the columns of the trace, `seconds`; and derived ones, as row["wire_bits"]."""

    def __init__(self, run: Run, number: int):
        columns = {**run.trace, "seconds": run.timing["seconds"]}
        super().__init__({"label": run.label, **{name: values[number].item() for name, values in columns.items()}})
        self._run, self._number = run, number

    def __missing__(self, name: str) -> Any:
        try:
            return self._run.column(name)[self._number].item()
        except UserError as error:
            raise KeyError(str(error)) from None


def attributes(file: Path) -> dict[str, Any]:
    """A result's attributes alone, unchecked; {} if they cannot be read, which `read` then reports."""
    with suppress(Exception):  # HDF5 raises errors of many types
        if file.is_file() and seals.holds(file) is not False:  # a damaged file can crash HDF5
            with h5py.File(file, "r", locking=False) as h5:
                return dict(h5.attrs)
    return {}


def read(file: str | Path) -> Run:
    """A result, or the .part of one that is being written. UserError: no such file, one that is no result of this format, or one
    whose checksums do not hold."""
    path = Path(file)
    refuse_archive(path)
    refuse_no_file(path)
    if path.suffix == ".part" and is_being_written(path):
        for _ in range(_TRIES):  # its writer may be in the middle of a flush
            try:
                return read_here(path)
            except UserError:
                time.sleep(0.1)
    elif is_doubtful(path) and (complaint := complaint_of(path)):
        raise UserError(complaint)
    return read_here(path)


def read_once(file: Path) -> Run:
    """`read`, unless this process has just read the file as it is now."""
    stat = file.stat() if file.is_file() else None
    return _read(file, stat and (stat.st_ino, stat.st_size, stat.st_mtime_ns))


@lru_cache(maxsize=4)
def _read(file: Path, _stamp: tuple[int, ...] | None) -> Run:
    return read(file)


def result_of_run(file: Path) -> Run:
    """`read` the result of a job's run; the error says what would do."""
    try:
        return read(file)
    except UserError as error:
        raise type(error)(f"{error}; `run --fresh` reruns it") from None


def read_here(path: Path) -> Run:
    """`read` without asking another process first."""
    try:
        with h5py.File(path, "r", locking=False) as h5:
            given = h5.attrs.get("format")
            if given != FORMAT:
                raise UserError(f"{path}: is no result of format {FORMAT}" + (f" but of {given}" if given else ""))
            most = TIGHTEST * path.stat().st_size
            groups = {name: hdf5.arrays(hdf5.within(h5, name), most) for name in GROUPS}
            final, attrs = groups.pop("final"), dict(h5.attrs)
            sums = [attrs.pop(name) for name in checksums.SLOTS if name in attrs]
            run = Run(path, attrs, x=final.get("x"), x_star=final.get("x_star"), has_checksums=bool(sums), **groups)
            found = _up_to_a_flush(run, sums) if path.suffix == ".part" else _as_written(_whole(run), sums[0] if sums else None)
            texts = {key: printable(text) for key, text in attrs.items() if isinstance(text, str) and key != "job"}
            return replace(found, attrs=attrs | texts)
    except FileNotFoundError:
        part = f", and `mpi-compress list {path}` shows a part" * (not path.suffix)
        raise UserError(f"{path}: there is no such file; `mpi-compress results ls` lists results{part}") from None
    except PermissionError as error:
        raise UserError(f"{path}: cannot be read: {system_text(error)}") from None
    except UserError:
        raise
    except hdf5.Refused as error:
        raise UserError(f"{path}: is damaged: {error}") from None
    except Exception as error:  # a damaged file makes HDF5 raise errors of many types
        if path.suffix in _OTHERS:
            raise UserError(f"{path}: is no result but {_OTHERS[path.suffix]}") from None
        raise UserError(f"{path}: cannot be read as HDF5: {' '.join(str(error).split()) or type(error).__name__}") from None


def _up_to_a_flush(run: Run, sums: list[str]) -> Run:
    """An unfinished result up to the last flush whose checksums hold; some columns are longer where a flush is caught halfway."""
    if not sums:  # of an earlier version
        lengths = {f"{group}/{name}": len(column) for group in TABLES for name, column in getattr(run, group).items()}
        return _whole(_cut(run, dict.fromkeys(lengths, min(lengths.values(), default=0))))
    rows, complaints = dict[str, dict[str, int]](), list[UserError]()
    for text in sums:
        with suppress(ValueError, LookupError, TypeError, AttributeError):
            rows[text] = checksums.rows_in(text)
    for text in sorted(rows, key=lambda text: rows[text].get("trace/round", 0), reverse=True):
        try:
            return _as_written(_whole(_cut(run, rows[text])), text)
        except UserError as error:
            complaints.append(error)
    raise complaints[0] if complaints else UserError(f"{run.file}: is damaged: its checksums cannot be read")


def _cut(run: Run, rows: Mapping[str, int]) -> Run:
    """The same run with so many rows of each column, by "group/name"; without those of none."""
    tables: dict[str, Any] = {
        group: {name: column[:n] for name, column in getattr(run, group).items() if (n := rows.get(f"{group}/{name}", 0))}
        for group in TABLES
    }
    return replace(run, **tables)


def _as_written(run: Run, sums: str | None) -> Run:
    """The same run, if its checksums hold, or if it has none and no broken seal; a UserError names what is damaged."""
    if sums is None:
        if run.file.is_file() and seals.holds(run.file) is False:
            raise UserError(f"{run.file}: is damaged: its checksums are missing")
        return run
    datasets = {f"{group}/{name}": array for group in (*TABLES, "split") for name, array in getattr(run, group).items()}
    datasets |= {f"final/{name}": array for name in ("x", "x_star") if (array := getattr(run, name)) is not None}
    try:
        damage = checksums.damage(run.attrs, datasets, sums)
    except (ValueError, LookupError, TypeError, AttributeError):
        damage = "its checksums cannot be read"
    if damage:
        raise UserError(f"{run.file}: is damaged: {damage}")
    return run


def _whole(run: Run) -> Run:
    """The same run, if it has what every result has; a UserError if something is missing, or damaged."""
    for name in _NEEDED:
        if not isinstance(run.attrs.get(name), str):
            raise UserError(f"{run.file}: is damaged: its attribute {name} is {'no text' if name in run.attrs else 'missing'}")
    for name, parse in (("settled", json.loads), ("tuned", json.loads), ("job", tomllib.loads)):
        try:
            parse(run.attrs.get(name, "" if name == "job" else "{}"))
        except (TypeError, ValueError):
            raise UserError(f"{run.file}: is damaged: its attribute {name} cannot be read") from None
    rows = {len(column) for table in (run.trace, run.timing, run.workers) for column in table.values()}
    if len(rows) > 1:
        raise UserError(f"{run.file}: is damaged: some columns have {min(rows)} records, and some {max(rows)}")
    if rows and not ("round" in run.trace and "seconds" in run.timing):
        raise UserError(f"{run.file}: is damaged: it has no column {'seconds' if 'round' in run.trace else 'round'}")
    return run
