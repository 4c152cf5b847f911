"""A result: one run = one HDF5 file, written by one process; `.part` until it is complete, readable at any time."""

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from mpi_compress import theory
from mpi_compress.compressed import Vector
from mpi_compress.errors import UserError, nearest
from mpi_compress.observer import Row

FORMAT = "mpi-compress/1"
_INTEGERS = ("round", "wire_bits_up", "wire_bits_down", "elements_up")
_BUFFERED_ROWS = 1000
_FLUSH_SECONDS = 2.0
_TRIES = 5


class Recorder:
    """Writes a result row by row; rows reach the disk every two seconds, and the file its name when it is `finished`."""

    def __init__(self, file: Path, attributes: Mapping[str, Any]):
        self.file = file
        self.part = file.with_name(file.name + ".part")
        self._rows: list[Row] = []
        self._flushed = time.monotonic()
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._h5 = h5py.File(self.part, "w", locking=False)
        except OSError as error:
            raise UserError(f"{file.parent}: results cannot be written there: {error.strerror or error}") from None
        self._h5.attrs["format"] = FORMAT
        self._h5.attrs["status"] = "running"
        self._h5.attrs.update(attributes)
        self._h5.flush()

    def append(self, row: Row) -> None:
        self._rows.append(row)
        if len(self._rows) >= _BUFFERED_ROWS or time.monotonic() - self._flushed >= _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        if self._rows:
            for group in ("trace", "workers", "timing", "theory"):
                tables = [getattr(row, group) for row in self._rows]
                for column in tables[0]:
                    self._extend(group, column, [table[column] for table in tables])
        self._rows.clear()
        self._h5.flush()
        self._flushed = time.monotonic()

    def finish(self, status: str, reason: str, x: Vector, attributes: Mapping[str, Any]) -> Path:
        """Complete the file, and give it its name. A run that failed or was stopped keeps `.part`."""
        self.flush()
        self._h5["final/x"] = x
        self._h5.attrs.update(attributes)
        self._close(status, reason)
        with self.part.open("rb") as whole:
            os.fsync(whole.fileno())
        os.replace(self.part, self.file)
        return self.file

    def abandon(self, status: str, reason: str) -> None:
        """Keep what there is, as `.part`."""
        self.flush()
        self._close(status, reason)

    def _close(self, status: str, reason: str) -> None:
        self._h5.attrs["status"] = status
        self._h5.attrs["reason"] = reason
        self._h5.close()

    def _extend(self, group: str, column: str, values: list[Any]) -> None:
        dtype = np.int64 if column in _INTEGERS else np.float64
        block = np.array(values, dtype=dtype)
        name = f"{group}/{column}"
        if name not in self._h5:
            shape = (0, *block.shape[1:])
            chunks = (max(1, 8192 // max(1, block[0].size)), *block.shape[1:])
            self._h5.create_dataset(name, shape, dtype, maxshape=(None, *shape[1:]), chunks=chunks)
        dataset = self._h5[name]
        dataset.resize(len(dataset) + len(block), axis=0)
        dataset[-len(block) :] = block


@dataclass(frozen=True)
class Run:
    """A result read back. `trace`, `workers` and `timing` map a column's name to its array."""

    file: Path
    attrs: dict[str, Any]
    trace: dict[str, NDArray]
    workers: dict[str, NDArray]
    timing: dict[str, NDArray]
    x: Vector | None = field(repr=False)
    theory: dict[str, NDArray] = field(default_factory=dict, repr=False)  # where the job asked for it

    @property
    def label(self) -> str:
        return str(self.attrs["label"])

    @property
    def status(self) -> str:
        return str(self.attrs["status"])

    def column(self, name: str) -> NDArray:
        """A column of /trace or /timing, or one that follows from them or from /theory.

        wire_bits, paper_bits: both directions together; bits_up, bits_down: on the wire, for each message and coordinate, the mean
        over the rounds since the row before; relative_distance: ‖x − x*‖ / ‖x0 − x*‖; kappa: L/µ; and, the same in every row, the
        numbers that the algorithm's formulas came to, such as step.

        Raises:
            UserError: there is none of that name.
        """
        for table in (self.trace, self.timing):
            if name in table:
                return table[name]
        if name in _DERIVED:
            return _DERIVED[name](self)
        settled = json.loads(self.attrs.get("settled", "{}"))
        if name in settled:
            return np.full(len(self.trace["round"]), settled[name])
        curves = theory.columns(self)
        if name in curves:
            return curves[name]
        if name in theory.COLUMNS:
            raise UserError(f"{self.file}: '{name}' is theory, which this run was not asked for: [log] theory = true")
        raise UserError(f"{self.file}: {nearest(name, [*self.trace, *self.timing, *_DERIVED, *settled, *curves], 'column')}")

    def to_pandas(self) -> Any:
        """/trace as a DataFrame, where pandas is installed."""
        try:
            import pandas
        except ImportError:
            raise UserError("to_pandas needs pandas: pip install pandas") from None
        return pandas.DataFrame(self.trace)


def _each_message(run: Run, way: str) -> NDArray:
    each = np.diff(run.trace[f"wire_bits_{way}"]) / np.diff(run.trace["round"])
    return np.concatenate([[np.nan], each / (run.attrs["n_workers"] * run.attrs["dim"])])


_DERIVED: dict[str, Callable[[Run], NDArray]] = {
    "wire_bits": lambda run: run.trace["wire_bits_up"] + run.trace["wire_bits_down"],
    "paper_bits": lambda run: run.trace["paper_bits_up"] + run.trace["paper_bits_down"],
    "bits_up": lambda run: _each_message(run, "up"),
    "bits_down": lambda run: _each_message(run, "down"),
    "relative_distance": lambda run: run.column("distance") / (run.column("distance")[0] or 1.0),
    "kappa": lambda run: np.full(len(run.trace["round"]), run.attrs["L"] / run.attrs["mu"] if run.attrs["mu"] > 0 else np.inf),
}


def read(file: str | Path) -> Run:
    """A result, or the .part of one that is being written.

    Raises:
        UserError: no such file, or one that is no result of this format.
    """
    path = Path(file)
    for _ in range(_TRIES if path.suffix == ".part" else 0):  # its writer may be in the middle of a flush
        try:
            return _read(path)
        except (UserError, KeyError):
            time.sleep(0.1)
    return _read(path)


def _read(path: Path) -> Run:
    try:
        with h5py.File(path, "r", locking=False) as h5:
            found = h5.attrs.get("format")
            if found != FORMAT:
                raise UserError(f"{path}: is no result of format {FORMAT}" + (f" but of {found}" if found else ""))
            tables = [{name: h5[g][name][:] for name in h5[g]} if g in h5 else {} for g in ("trace", "workers", "timing", "theory")]
            x = h5["final/x"][:] if "final/x" in h5 else None
            return Run(path, dict(h5.attrs), tables[0], tables[1], tables[2], x, tables[3])
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise UserError(f"{path}: is a folder; a result file is wanted") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read as HDF5: {error}") from None
