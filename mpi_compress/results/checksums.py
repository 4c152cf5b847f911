"""Checksums of a finished result: of every dataset and every attribute, in an attribute, and of the whole file, behind its end.

HDF5 ignores what stands behind the end of a file. The last checksum is looked at first, since a damaged structure can crash HDF5.
"""

import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

ATTRIBUTE = "checksums"
_MAGIC = b"mpi-compress crc32 "
_END = len(_MAGIC) + 8  # bytes: with the checksum in hexadecimal digits
_AT_ONCE = 1 << 20  # bytes


class Typed(Protocol):
    """An array's type and shape."""

    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...


def of_file(
    columns: Mapping[str, Typed], sums: Mapping[str, int], arrays: Mapping[str, NDArray[Any]], attributes: Mapping[str, Any]
) -> str:
    """The checksums of a result as JSON text.

    Args:
        columns: by "group/name".
        sums: a CRC-32 of the bytes of each column, as they were when they were written.
        arrays: the other datasets.
    """
    texts = {name: _text(columns[name].dtype, columns[name].shape, crc) for name, crc in sums.items()}
    texts |= {name: _of_array(array) for name, array in arrays.items()}
    return json.dumps({"datasets": texts, "attributes": of_attributes(attributes)})


def of_attributes(attributes: Mapping[str, Any]) -> dict[str, str]:
    """The checksum of each attribute."""
    return {name: _of_attribute(value) for name, value in attributes.items()}


def damage(attributes: Mapping[str, Any], datasets: Mapping[str, NDArray[Any]], checksums: str) -> str:
    """What of a result is not as it was written, "" if all of it is.

    Args:
        datasets: the arrays by "group/name"; those that a user added have no checksum, and count as whole.
        checksums: the text of `of_file`.

    Raises:
        ValueError, LookupError, TypeError, AttributeError: the text is damaged.
    """
    stored = json.loads(checksums)
    for name, expected in stored["datasets"].items():
        if name not in datasets:
            return f"its dataset /{name} is missing"
        if _of_array(datasets[name]) != expected:
            return f"its dataset /{name} is not as it was written"
    for name, expected in stored["attributes"].items():
        if name not in attributes:
            return f"its attribute {name} is missing"
        if _of_attribute(attributes[name]) != expected:
            return f"its attribute {name} is not as it was written"
    return ""


def seal(opened: int, file: Path) -> None:
    """Append the checksum of a whole file, which is open under a number for writing."""
    with file.open("rb") as stored:
        crc = _crc(_blocks(stored, file.stat().st_size))
    os.pwrite(opened, _MAGIC + b"%08x" % crc, file.stat().st_size)


def seal_is_broken(file: Path) -> bool:
    """True if a file has the checksum of the whole, and it does not hold. A program that writes to the file removes it."""
    size = file.stat().st_size - _END
    if size <= 0:
        return False
    with file.open("rb") as stored:
        stored.seek(size)
        magic, crc = stored.read(len(_MAGIC)), stored.read()
        stored.seek(0)
        return magic == _MAGIC and crc != b"%08x" % _crc(_blocks(stored, size))


def _blocks(stored: BinaryIO, size: int) -> Iterator[bytes]:
    for start in range(0, size, _AT_ONCE):
        yield stored.read(min(_AT_ONCE, size - start))


def _crc(blocks: Iterator[bytes]) -> int:
    crc = 0
    for block in blocks:
        crc = zlib.crc32(block, crc)
    return crc


def _text(dtype: np.dtype[Any], shape: tuple[int, ...], crc: int) -> str:
    """Type and shape belong to the checksum: they say how the bytes are read."""
    return f"{dtype.str} {'x'.join(map(str, shape))} {crc:08x}"


def _of_array(array: NDArray[Any]) -> str:
    return _text(array.dtype, array.shape, zlib.crc32(np.ascontiguousarray(array).data))


def _of_attribute(value: Any) -> str:
    if isinstance(value, str):
        return _text(np.dtype("U"), (len(value),), zlib.crc32(value.encode("utf-8", "surrogateescape")))
    array = np.asarray(value)
    return _text(array.dtype, array.shape, zlib.crc32(array.tobytes()))
