"""A checkpoint: a run's whole state in a file beside its result, from which a stopped run goes on, on any ranks, to the same bytes.

It holds a header, the states of node and master, and each worker's state in worker order, as arrays and JSON. It is never
part of the HDF5 file, which a kill can damage. It is written, sealed, synced and then renamed, so it is always whole. Code whose
states have other fields, or whose results have other columns, begins the run again.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any

from mpi_compress.core import seals
from mpi_compress.core.errors import UserError, system_text
from mpi_compress.results.locks import whole
from mpi_compress.results.reader import NUMBERS
from mpi_compress.results.writer import Mark
from mpi_compress.saving.frames import Frame, dump, frames_in, write_frame
from mpi_compress.saving.saved_states import UNKNOWN, Damaged, Expected, load

_FORMAT = "arrays and JSON"
_LARGEST = 2**62


@dataclass
class States:
    """The states of a run before round k."""

    k: int
    node: Any
    master: Any  # None on ranks without the master
    workers: Any  # of the workers hosted here, as rows
    up: list[Any] = field(default_factory=list)  # what their compressors remember
    down: Any = None  # what the master's compressor remembers
    queued: Any = None  # what every rank knows of the workers' tasks, where they do not begin together
    tables: Any = None  # of the master: sums of what it has taken, where its rule of arrival has tables


@dataclass(frozen=True)
class Header:
    """The first frame: the run, the round, and the schema of its columns."""

    schema: str
    run_id: str
    k: int  # rounds run
    mark: Mark  # how far the result's rows went
    received: int  # bytes that came from other ranks as uplink
    drew: bool = False  # True if a random stream was opened before


@dataclass(frozen=True)
class Common:
    """The frame of what every node knows, with the run's counts."""

    node: Any
    counters: Any
    queued: Any


@dataclass(frozen=True)
class OfMaster:
    """The frame of the master: its state, what its compressor remembers, and its tables."""

    master: Any
    compressor: Any
    tables: Any = None


@dataclass(frozen=True)
class OfWorker:
    """The frame of a worker: its state, its compressor's, its objective's counts, and its share of its rank's seconds."""

    worker: Any
    compressor: Any
    samples: int = 0
    seconds: float = 0.0
    borrowed: float = 0.0
    sends: float = 0.0


def schema_of(columns: Iterable[str]) -> str:
    """A hash of this format, this version and the columns of a trace; the states themselves are compared as they are read."""
    return hashlib.sha256("\n".join([_FORMAT, metadata.version("mpi-compress"), str(NUMBERS), *columns]).encode()).hexdigest()[:16]


def remove_checkpoint(file: Path, unfinished: bool = False) -> None:
    """Remove a checkpoint, and an unfinished one that a killed program left; `unfinished`: this alone."""
    for each in (file.with_name(f"{file.name}.new"), *([] if unfinished else [file])):
        each.unlink(missing_ok=True)


def read_header(file: Path) -> Header | None:
    """The header of a checkpoint; None unless the file is there, and begins with one."""
    try:
        with file.open("rb") as stored:
            return _header(next(frames_in(stored)))
    except (OSError, EOFError, ValueError, StopIteration):
        return None


def _header(frame: Frame) -> Header:
    """The header in a frame; Damaged if a number in it cannot be."""
    header: Header = load(frame, Header("", "", 0, Mark(0, {}), 0), Expected(True, 0))
    sums = header.mark.sums
    if not all(0 <= number < _LARGEST for number in (header.k, header.mark.rows, header.received, *sums.values())):
        raise Damaged("a number of the header is none")
    if not all(type(name) is str and "/" in name for name in sums):
        raise Damaged("a column of the header has no name")
    return header


@dataclass(frozen=True)
class Checkpoint:
    """Where a run is saved, and what a file there says if the run can go on from it."""

    file: Path
    run_id: str
    schema: str
    expected: Expected
    header: Header | None = None  # of the file to go on from; None: the run begins
    shorter: Path | None = None  # that file, where it is the last state of a shorter run

    def found(self, last: float, first: States, counters: Any, n: int) -> Header | None:
        """The header of the file if it is of this run and this schema, and if all states in it can be read.

        Args:
            last: the run's last round; inf if it has none.
            first: states like those that the run begins with; the workers' is a list of one worker's.
            n: workers.
        """
        each = OfWorker(first.workers[0], first.up[0])
        like = [UNKNOWN, Common(first.node, counters, first.queued), OfMaster(first.master, first.down, first.tables), *[each] * n]
        try:
            header = read_header(self.file) if seals.holds(self.file, self.run_id) else None
            if header is None or (header.schema, header.run_id) != (self.schema, self.run_id) or header.k > last:
                return None
            with self.file.open("rb") as stored:
                for frame, state in zip(frames_in(stored), like, strict=True):
                    if state is not UNKNOWN:
                        load(frame, state, self.expected)
        except (OSError, EOFError, ValueError):
            return None
        return header

    def read(self, frame: Frame, first: Any) -> Any:
        """A saved state; UserError if it does not go with the first one, though rank 0 could read it."""
        try:
            return load(frame, first, self.expected)
        except Damaged as damage:
            raise UserError(f"{self.file}: does not go with this run ({damage}); --fresh begins again") from None

    def write(self, k: int, mark: Callable[[], Mark], received: int, drew: bool, states: tuple[Common, OfMaster],
              workers: Iterable[Frame]) -> None:  # fmt: skip
        """Save a run before round k; UserError if the file cannot be written, and the one before it stays. `mark` brings the
        result's rows to the disk, `workers` are a frame of each."""
        try:
            header = Header(self.schema, self.run_id, k, mark(), received, drew)
            with whole(self.file, self.run_id) as out:
                for frame in chain(map(dump, (header, *states)), workers):
                    write_frame(frame, out)
        except OSError as error:
            raise UserError(f"{self.file}: the checkpoint cannot be written: {system_text(error)}") from None
