"""Cached data files that runs read from: opened, mapped, and compared with what they were at first."""

import ctypes
import os
import signal
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import h5py
from numpy.typing import NDArray

from mpi_compress.core.ending import EXIT_FAILED, end_all_ranks
from mpi_compress.core.errors import UserError
from mpi_compress.problem.datasets.cache import is_kept
from mpi_compress.problem.datasets.convert import mapped

MAPPED_FROM = 2**25  # bytes of an array: so large a one is not copied to memory
Stamp = tuple[int, ...]
_sound: set[tuple[Path, Stamp]] = set()  # files whose seal this process has seen to hold
_mapped: WeakValueDictionary[tuple[Path, Stamp, str], NDArray] = WeakValueDictionary()


def stamp_of(file: Path) -> Stamp:
    """What differs once a file is another one, or was written to; () if it is gone."""
    try:
        stat = file.stat()
    except OSError:
        return ()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def is_sound(file: Path) -> bool:
    """True if a data file is there as it was made; this process looks once at a file that does not change."""
    seen = (file, stamp_of(file))
    if seen not in _sound and is_kept(file):
        _sound.add(seen)
    return seen in _sound


def opened(file: Path, stamp: Stamp) -> h5py.File:
    """A file to be read; UserError if it is another than that of the stamp, and not what another process has made alike."""
    if stamp_of(file) != stamp and not is_sound(file):
        what = "was changed by another program" if file.exists() else "is gone"
        raise UserError(f"{file}: this file of cached data {what} since the run began; the same command makes it again")
    return h5py.File(file, "r", locking=False)


def arrays(h5: h5py.File, stamp: Stamp) -> dict[str, Any]:
    """The arrays of a file, of which slices are read; large ones are in the file's pages, which are dropped where memory is short
    and read again from the disk. They are mapped once, as long as a slice is held."""
    found, file = dict[str, Any](h5), Path(h5.filename)
    for name, array in h5.items():
        if array.nbytes >= MAPPED_FROM and (at := array.id.get_offset()) is not None:
            _report_lost_pages()
            key = (file, stamp, name)
            found[name] = _mapped.get(key)
            if found[name] is None:
                found[name] = _mapped[key] = mapped(file, (at, array.shape, array.dtype.str), own=True)
    return found


def refuse_changed() -> None:
    """UserError if a file whose rows are mapped is not what it was at first."""
    for file, stamp, _ in [*_mapped]:
        opened(file, stamp).close()


@cache
def _report_lost_pages() -> Any:
    """Let a line say which file was cut short while rows were read from its pages. It is the system's handler, for Python would
    call its own after the instruction, which is tried for ever."""

    def end(_: int) -> None:
        files = ", ".join(sorted({str(file) for file, _, _ in _mapped}))
        text = f"{files}: cached data were cut short while they were read; the same command makes them again"
        os._exit(end_all_ranks(EXIT_FAILED, text))

    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(end)
    ctypes.CDLL(None).signal(int(signal.SIGBUS), handler)
    return handler
