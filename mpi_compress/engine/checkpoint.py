"""A run's whole state in a file beside its result: it goes on after whatever stopped it, on any ranks, to the same bytes.

The file is a header, what every node and the master know, and each worker's memory by its number; never inside the HDF5 file,
which a kill can tear. It is written, synced and then renamed, so it is always whole. It holds dataclasses of arrays and numbers,
and nothing else is built from it.
"""

import io
import os
import pickle
import struct
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError
from mpi_compress.engine.observer import Observer
from mpi_compress.exchange import Exchange
from mpi_compress.job.stop import Verdict
from mpi_compress.job.tables import Every
from mpi_compress.problem.objective import Objective
from mpi_compress.results.writer import Mark, Recorder, sync_folder

FORMAT = f"mpi-compress checkpoint/2 of version {metadata.version('mpi-compress')}"
_PREFIX = struct.Struct("<QI")  # bytes of a frame, and their CRC-32
_ASK_SECONDS = 0.2  # about how often the ranks ask each other whether to save or to end


@dataclass(frozen=True)
class Header:
    """What a checkpoint belongs to."""

    format: str
    run_id: str
    k: int  # rounds played
    mark: Mark  # how far the result's rows went
    received: int  # bytes that came from other ranks as uplink


def path_of(result: Path) -> Path:
    """The checkpoint that goes with a result."""
    return result.with_name(result.name + ".ckpt")


def _being_written(file: Path) -> Path:
    return file.with_name(file.name + ".new")


def remove_checkpoint(file: Path) -> None:
    """Remove a checkpoint, and what a program that was killed had written of the next one."""
    file.unlink(missing_ok=True)
    _being_written(file).unlink(missing_ok=True)


def header_of(file: Path, run_id: str) -> Header | None:
    """The header of a run's checkpoint; None if there is none, or none that is whole and this run's."""
    try:
        with file.open("rb") as stored:
            first, *_ = (_load(frame) if i == 0 else None for i, frame in enumerate(_frames(stored)))
    except (OSError, EOFError, ValueError, pickle.UnpicklingError):
        return None
    return first if isinstance(first, Header) and (first.format, first.run_id) == (FORMAT, run_id) else None


class Keeper:
    """Saves a run every so often and when it is asked to end, and gives back what was saved.

    Every rank has one, and all do the same in the same round.

    Args:
        file: the checkpoint, written by rank 0.
        header: of the checkpoint that the run goes on from, if it does.
        recorder: of the result, at rank 0.
        wish: why this process should end now, "" if it should not.
    """

    def __init__(
        self,
        file: Path,
        run_id: str,
        header: Header | None,
        every: Every,
        exchange: Exchange,
        objectives: Mapping[int, Objective],
        observer: Observer,
        recorder: Recorder | None,
        wish: Callable[[], str],
    ):
        self.file, self.run_id, self.header, self.every = file, run_id, header, every
        self.exchange, self.objectives, self.observer = exchange, objectives, observer
        self.recorder, self.wish = recorder, wish
        self.reason = ""  # why the run ended before it was done
        self._saved_in = self._asked_in = self._ask_in = header.k if header else 0  # rounds
        self._saved_at = self._asked_at = time.monotonic()

    def restore(self, k: int, node: Any, master: Any, workers: dict[int, Any]) -> tuple[int, Any, Any, dict[int, Any]]:
        """Round and states to begin with: those that were saved, or the given ones."""
        if self.header is None:
            return k, node, master, workers
        stored = self.file.open("rb") if self.exchange.is_root else None
        frames = _frames(stored) if stored else iter(())
        next(frames, None)
        common = self.exchange.consult("", lambda _: next(frames))
        node, master, counts = _load(common)
        self.observer.go_on(counts)
        self.observer.clock.sends = 0.0
        self.exchange.bytes_received_up = self.header.received
        for i, frame in zip(workers, self.exchange.deal(frames), strict=True):
            f = self.objectives[i]
            workers[i], f.samples, f.seconds, f.borrowed, sends = _load(frame)
            self.observer.clock.sends += sends
        if stored:
            stored.close()
        return self.header.k, node, master if self.exchange.has_master else None, workers

    def look(self, k: int, node: Any, master: Any, workers: Mapping[int, Any]) -> Verdict:
        """Save if it is time to, or if the run should end; the verdict is the same on every rank."""
        if k < self._ask_in:
            return Verdict.GO_ON
        save, self.reason, self._ask_in = self.exchange.consult(self.wish(), partial(self._decide, k))
        if save:
            self._save(k, node, master, workers)
        return Verdict.STOPPED if self.reason else Verdict.GO_ON

    def _decide(self, k: int, wishes: list[str]) -> tuple[bool, str, int]:
        """Whether to save, why to end, and in which round to ask again; at rank 0."""
        now = time.monotonic()
        reason = next((wish for wish in wishes if wish), "")
        save = bool(reason) or self.every.is_over(k - self._saved_in, now - self._saved_at)
        if save:
            self._saved_in, self._saved_at = k, now
        played, elapsed = k - self._asked_in, max(now - self._asked_at, 1e-6)
        pace = min(2 * played, int(played * _ASK_SECONDS / elapsed))
        self._asked_in, self._asked_at = k, now
        ask_in = k + max(1, pace)
        return save, reason, min(ask_in, self._saved_in + self.every.every) if isinstance(self.every.every, int) else ask_in

    def _save(self, k: int, node: Any, master: Any, workers: Mapping[int, Any]) -> None:
        """Workers' states come one by one, so rank 0 never holds more than one of other ranks.

        Raises:
            UserError: at rank 0, the file cannot be written; the one before it stays.
        """
        if not self.exchange.is_root:
            self.exchange.collect(self._worker_frames(workers), None, np.uint8)
            return
        assert self.recorder is not None
        new = _being_written(self.file)
        try:
            mark = self.recorder.mark()
            with new.open("wb") as out:
                write = _Writer(out)
                write.add(_dump(Header(FORMAT, self.run_id, k, mark, self.exchange.bytes_received_up)))
                write.add(_dump((node, master, self.observer.counts())))
                self.exchange.collect(self._worker_frames(workers), write, np.uint8)
                out.flush()
                os.fsync(out.fileno())
            os.replace(new, self.file)
            sync_folder(self.file.parent)
        except OSError as error:
            new.unlink(missing_ok=True)
            raise UserError(f"{self.file}: the checkpoint cannot be written: {error.strerror or error}") from None

    def _worker_frames(self, workers: Mapping[int, Any]) -> Iterator[NDArray[np.uint8]]:
        """A worker's state, what its objective counted, and its share of this rank's seconds."""
        for i, worker in workers.items():
            f = self.objectives[i]
            yield _dump((worker, f.samples, f.seconds, f.borrowed, self.observer.clock.sends / len(workers)))


class _Writer:
    """Appends frames to a file."""

    def __init__(self, out: BinaryIO):
        self._out = out

    def add(self, frame: NDArray[np.uint8]) -> None:
        self._out.write(_PREFIX.pack(frame.size, zlib.crc32(frame.data)))
        self._out.write(frame.data)


def _frames(stored: BinaryIO) -> Iterator[NDArray[np.uint8]]:
    """The frames of a checkpoint.

    Raises:
        EOFError: it was cut.
        ValueError: it was changed.
    """
    while prefix := stored.read(_PREFIX.size):
        if len(prefix) < _PREFIX.size:
            raise EOFError
        size, crc = _PREFIX.unpack(prefix)
        if size > os.fstat(stored.fileno()).st_size:
            raise EOFError
        frame = np.fromfile(stored, dtype=np.uint8, count=size)
        if frame.size < size:
            raise EOFError
        if zlib.crc32(frame.data) != crc:
            raise ValueError("a frame is damaged")
        yield frame


def _dump(state: Any) -> NDArray[np.uint8]:
    return np.frombuffer(pickle.dumps(state, protocol=4), dtype=np.uint8)


def _load(frame: NDArray[np.uint8]) -> Any:
    return _Plain(io.BytesIO(frame.data)).load()


def unsavable(state: Any, *others: Any) -> str:
    """Why a state could not be saved and given back as it is, "" if it can; `others` are saved apart from it."""
    try:
        _load(_dump(state))
    except (pickle.PickleError, AttributeError, TypeError) as error:
        return f"its state cannot be saved in a checkpoint: {error}; dataclasses of arrays, numbers, lists and dicts can"
    arrays, elsewhere = list(_arrays(state)), list(_arrays(others))
    for i, one in enumerate(arrays):
        if any(one is not other and np.may_share_memory(one, other) for other in arrays[i + 1 :]):
            return "its state has arrays that share memory, which a checkpoint would part: keep one of them"
        if any(np.may_share_memory(one, other) for other in elsewhere):
            return "its state shares memory with another, which a checkpoint would part: keep a copy"
    return ""


def _arrays(state: Any) -> Iterator[NDArray[Any]]:
    """The arrays in a state."""
    if isinstance(state, np.ndarray):
        yield state
    elif is_dataclass(state) and not isinstance(state, type):
        yield from _arrays(list(vars(state).values()) if hasattr(state, "__dict__") else [])
    elif isinstance(state, Mapping):
        yield from _arrays(list(state.values()))
    elif isinstance(state, list | tuple | set):
        for each in state:
            yield from _arrays(each)


class _Plain(pickle.Unpickler):
    """Builds arrays, numbers and dataclasses of modules that are loaded already, and refuses everything else."""

    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] == "numpy" and name in ("_reconstruct", "ndarray", "dtype", "scalar"):
            return super().find_class(module, name)
        found = getattr(sys.modules.get(module), name, None)
        if not (isinstance(found, type) and is_dataclass(found)):
            raise pickle.UnpicklingError(f"{module}.{name} does not belong in a checkpoint")
        return found
