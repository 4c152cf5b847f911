"""Writes a result row by row, by one process under a lock; `.part` until it is complete, readable at any time."""

import errno
import os
import shutil
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import seals
from mpi_compress.core.errors import UserError, system_text
from mpi_compress.messages.kinds import Vector
from mpi_compress.results import checksums, hdf5
from mpi_compress.results.columns import Arrays, dtype_of
from mpi_compress.results.files import part_of
from mpi_compress.results.locks import lock, locked, sync
from mpi_compress.results.probing import crashes
from mpi_compress.results.reader import FORMAT

_BUFFERED_ROWS = 1000
_FLUSH_SECONDS = 2.0
_ELEMENTS_AT_ONCE = 1_000_000
_MARGIN = 500_000  # bytes of a file that are no rows
CHUNK = 1024  # elements: what a column of few rows takes on the disk


@dataclass(frozen=True)
class Row:
    """The point after some rounds, and what it took to reach it: a number for each column of `columns.COLUMNS` that the run has."""

    trace: dict[str, float]
    workers: dict[str, Any]  # one number a worker
    timing: dict[str, float]
    theory: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Mark:
    """The number of rows written, and a CRC-32 of each column so far, by "group/column"."""

    rows: int
    sums: Mapping[str, int]


class Recorder:
    """Writes a result row by row; rows reach the disk every two seconds, and the file its name when it is `finished`.

    While it is there, no other process can write the same result.

    Args:
        saved: returns the file whose rows are kept, an earlier `.part` or a shorter run's result, and up to where; None to begin
            again. It is called once no other process can write. The rows before the mark are copied to a new file.
        arrays: written once, by "group/name".

    Raises:
        UserError: the file cannot be written.
        BeingWritten: another process is writing it.
        LostRows: the rows that `saved` says are not there as they were.
    """

    _h5: Any

    def __init__(
        self, file: Path, attributes: Mapping[str, Any], saved: Callable[[], tuple[Path, Mark] | None] = lambda: None,
        arrays: Arrays = MappingProxyType({}),
    ):  # fmt: skip
        self.file, self.part = file, part_of(file)
        self._flushed, self._written, self._rows = time.monotonic(), 0, list[Row]()  # so many are written, these are not
        self._lock, self._h5 = -1, None  # there is none yet
        self._columns, self._sums = dict[str, h5py.Dataset](), dict[str, int]()  # each with a CRC-32
        self._arrays, self._attributes = dict[str, str](), dict[str, str]()  # checksums: of what is written once, by "group/name"
        self._slot = 1  # of `checksums.SLOTS`, the last one written
        new = self.part.with_name(self.part.name + ".new")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._lock = lock(self.part)
            new.unlink(missing_ok=True)
            if found := saved():
                self._go_on(*found, new)
            else:
                self._begin(self.part)
            self._reserve(sum(values.nbytes + 8 * CHUNK for values in arrays.values()))
            self._keep(arrays)
            self._say({"format": FORMAT, "status": "running", **attributes})
            self._h5.flush()
        except (OSError, LostRows) as error:
            self._let_go()
            with suppress(OSError):
                new.unlink()
            if isinstance(error, LostRows):
                raise
            raise UserError(f"{error.filename or file.parent}: results cannot be written there: {system_text(error)}") from None

    def append(self, row: Row) -> None:
        self._rows.append(row)
        if len(self._rows) >= _BUFFERED_ROWS or time.monotonic() - self._flushed >= _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the rows so far; a UserError if the disk is full."""
        try:
            if self._rows:
                groups = {group: [vars(row)[group] for row in self._rows] for group in vars(self._rows[0])}
                blocks = {f"{group}/{name}": [row[name] for row in rows] for group, rows in groups.items() for name in rows[0]}
                self._reserve(sum(8 * (np.size(block[0]) * len(block) + CHUNK) for block in blocks.values()))
                for name, block in blocks.items():
                    self._extend(name, block)
                self._say({})
            self._written += len(self._rows)
            self._rows.clear()
            self._h5.flush()
            os.truncate(self._lock, self._h5.id.get_filesize())  # gives back what was set aside
        except (OSError, RuntimeError) as error:
            raise UserError(f"{self.part}: records cannot be written: {system_text(error)}") from None
        self._flushed = time.monotonic()

    def mark(self) -> Mark:
        """Bring all rows so far to the disk, for a checkpoint."""
        found = self.so_far()
        sync(self.part)
        return found

    def so_far(self) -> Mark:
        """Up to where rows go by now."""
        self.flush()
        return Mark(self._written, dict(self._sums))

    def finish(self, status: str, reason: str, x: Vector, attributes: Mapping[str, Any]) -> Path:
        """Complete the file, and give it its name; UserError on a full disk. A run that failed or was stopped keeps `.part`."""
        self.flush()
        try:
            self._reserve(x.nbytes)
            self._keep({"final/x": x})
            self._say({**attributes, "status": status, "reason": reason})
            if self._slot:
                self._say({})
            self._h5.attrs.pop(checksums.SLOTS[1], None)
            self._close_sealed()
            sync(self.part)
            os.replace(self.part, self.file)
            sync(self.file.parent)
        except (OSError, RuntimeError) as error:
            raise UserError(f"{self.file}: the result cannot be written: {system_text(error)}") from None
        self._let_go()
        return self.file

    def abandon(self, status: str, reason: str) -> None:
        """Keep what there is, as `.part`; on a full disk, what was written before."""
        with suppress(UserError, OSError, RuntimeError):
            self.flush()
            self._say({"status": status, "reason": reason})
            self._close_sealed()
        self._let_go()

    def _close_sealed(self) -> None:
        self._h5.flush()
        size = self._h5.id.get_filesize()
        self._h5.close()
        os.truncate(self._lock, size)
        seals.seal(self.part, opened=self._lock)

    def _reserve(self, size: int) -> None:
        """Reserve `size` further bytes on the disk; raises OSError if it is full, which HDF5 does not survive."""
        if hasattr(os, "posix_fallocate"):
            end = self._h5.id.get_filesize() if self._h5 else 0  # the file itself may be longer, by what was reserved before
            os.posix_fallocate(self._lock, 0, end + size + _MARGIN)
        elif shutil.disk_usage(self.part.parent).free < size + _MARGIN:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _let_go(self) -> None:
        with suppress(OSError, RuntimeError):
            if self._h5:
                self._h5.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _extend(self, name: str, values: list[Any] | NDArray) -> None:
        block = np.array(values, dtype=dtype_of(name))
        if (dataset := self._columns.get(name)) is None:
            chunks = (max(1, CHUNK // max(1, block[0].size)), *block.shape[1:])
            self._columns[name] = self._h5.create_dataset(name, data=block, maxshape=(None, *block.shape[1:]), chunks=chunks)
        else:
            dataset.resize(len(dataset) + len(block), axis=0)
            dataset[-len(block) :] = block
        self._sums[name] = zlib.crc32(block.data, self._sums.get(name, 0))

    def _begin(self, file: Path) -> None:
        self._reserve(0)
        self._h5 = h5py.File(file, "w", locking=False, rdcc_nbytes=32 * CHUNK)  # else 1 MiB of each column stays in memory

    def _keep(self, arrays: Arrays) -> None:
        for name, values in arrays.items():
            self._h5.create_dataset(name, data=values)
        self._arrays |= checksums.of_each(arrays)

    def _say(self, attributes: Mapping[str, Any]) -> None:
        """Write attributes, and the checksums of all that is there by now."""
        self._h5.attrs.update(attributes)
        self._attributes.update(checksums.of_each(attributes))
        text = checksums.of_file(self._columns, self._sums, self._arrays, self._attributes)
        self._slot = 1 - self._slot
        self._h5.attrs.modify(checksums.SLOTS[self._slot], text)  # in its place, so that the file does not grow

    def _go_on(self, rows: Path, mark: Mark, new: Path) -> None:
        """Copy rows before a mark to a new file, which becomes `.part`: what a kill left of the old one is never written to."""
        old, self._lock = self._lock, locked(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        try:
            self._begin(new)
            for name, block in _rows_before(mark, rows):
                self._reserve(block.nbytes + 8 * CHUNK)
                self._extend(name, block)
            if damaged := [name for name, expected in mark.sums.items() if self._sums.get(name) != expected]:
                raise LostRows(f"{damaged[0]} is damaged")
            self._written = mark.rows
            self._h5.flush()
            os.replace(new, self.part)
        finally:
            os.close(old)


def _rows_before(mark: Mark, part: Path) -> Iterator[tuple[str, NDArray]]:
    """The rows before a mark in blocks, by "group/column"; LostRows if they cannot be read. A damaged file makes HDF5 raise errors
    of many types, so all count."""
    if crashes(part):
        raise LostRows("HDF5 fails to read it")
    try:
        with h5py.File(part, "r", locking=False) as h5:
            for name in mark.sums:
                dataset = hdf5.within(h5, name)
                if len(dataset) < mark.rows or dataset.nbytes > part.stat().st_size:
                    raise ValueError(f"{name} is cut")
                at_once = max(1, _ELEMENTS_AT_ONCE // max(1, int(np.prod(dataset.shape[1:]))))
                for start in range(0, mark.rows, at_once):
                    yield name, dataset[start : min(start + at_once, mark.rows)]
    except Exception as error:
        raise LostRows(system_text(error)) from error


class LostRows(Exception):
    """The rows that a checkpoint goes with are not there as they were."""
