"""Seals: a CRC-32 of a whole file, and of the key of what it was made from, behind its end.

HDF5 ignores what stands there. Data, eigenvalues, optima, digests, checkpoints, notes and finished results are sealed.
"""

import os
import zlib
from pathlib import Path

_MAGIC = b"mpi-compress crc32 "
SIZE = len(_MAGIC) + 8  # bytes: with the checksum in hexadecimal digits
_AT_ONCE = 1 << 20  # bytes


def seal(file: Path, key: str = "", opened: int | None = None) -> None:
    """Append the seal to a file that has none. `key` says what the file was made from, and is not stored; `opened` is the number
    under which the file is open for writing, None if it is not."""
    size = file.stat().st_size
    mark = _MAGIC + b"%08x" % _crc(file, size, key)
    writable = os.open(file, os.O_WRONLY) if opened is None else opened
    try:
        os.pwrite(writable, mark, size)
    finally:
        if opened is None:
            os.close(writable)


def holds(file: Path, key: str = "") -> bool | None:
    """True if a file is as it was sealed, by this key; None if it has no seal. A program that writes to an HDF5 file removes it."""
    size = file.stat().st_size - SIZE
    if size < 0:
        return None
    with file.open("rb") as stored:
        stored.seek(size)
        mark = stored.read()
    return mark == _MAGIC + b"%08x" % _crc(file, size, key) if mark.startswith(_MAGIC) else None


def content(file: Path, key: str = "") -> bytes | None:
    """The bytes of a file before its seal; None if it has none, or it does not hold."""
    return file.read_bytes()[:-SIZE] if holds(file, key) else None


def _crc(file: Path, size: int, key: str) -> int:
    """The CRC-32 of a key and the first `size` bytes of a file."""
    crc = zlib.crc32(key.encode())
    with file.open("rb") as stored:
        for start in range(0, size, _AT_ONCE):
            crc = zlib.crc32(stored.read(min(_AT_ONCE, size - start)), crc)
    return crc
