"""A file that is written is locked: one process writes a result, and others can tell; or it is written whole or not at all."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from mpi_compress.core import seals
from mpi_compress.core.errors import UserError

_TRIES_TO_LOCK = 5  # whoever looks whether a file is being written holds its lock for a moment


class BeingWritten(UserError):
    """Another process is writing this result."""


def is_being_written(part: Path) -> bool:
    """True if a process holds this file's lock."""
    for flags in (os.O_RDWR, os.O_RDONLY):  # over NFS only what is open for writing can be locked
        try:
            os.close(locked(part, flags))
        except BlockingIOError:
            return True
        except OSError:
            continue
        break
    return False


def sync(path: Path) -> None:
    """Bring a file, or the names of a folder's files, to the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextmanager
def whole(file: Path, key: str = "") -> Iterator[BinaryIO]:
    """Write a file whole or not at all, sealed by a key, and bring it to the disk."""
    new = file.with_name(f"{file.name}.new")
    try:
        new.unlink(missing_ok=True)  # it may be a link
        with new.open("xb") as out:
            yield out
            out.flush()
            seals.seal(new, key, out.fileno())
            os.fsync(out.fileno())
        os.replace(new, file)
        sync(file.parent)
    except OSError:
        new.unlink(missing_ok=True)
        raise


def lock(part: Path) -> int:
    """Open a file and lock it until the process ends; BeingWritten if another process holds the lock."""
    for attempt in range(_TRIES_TO_LOCK):
        try:
            opened = locked(part, os.O_RDWR | os.O_CREAT)
        except BlockingIOError:
            time.sleep(0.05 * attempt)
            continue
        if part.exists() and os.path.samestat(os.fstat(opened), part.stat()):
            return opened
        os.close(opened)  # it has just been completed, and renamed
    raise BeingWritten(f"{part}: the run is locked by another process; wait for it, or end it") from None


def locked(part: Path, flags: int) -> int:
    opened = os.open(part, flags | os.O_NOFOLLOW, 0o666)  # somebody's link there may lead anywhere
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(opened)
        raise
    except OSError:  # a file system without locks
        pass
    return opened
