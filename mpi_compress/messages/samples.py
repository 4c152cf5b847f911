"""Samples as messages: the kind, and its link."""

import lzma
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.messages.fields import Reader, count_bytes, one_byte
from mpi_compress.messages.formats import FORMATS
from mpi_compress.messages.kinds import Bytes, Compressed, Indices, Vector
from mpi_compress.messages.link import Link

_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 0, "pb": 0}]
_KEPT = 7 / 8  # share of columns with an entry from which on all are kept: rows of like bytes pack better
_DENSE = 1 / 16  # share of nonzeros from which on places are written as bits
_TABLE, _SINGLE, _DOUBLE = 0, 1, 2  # how numbers are written: as places in a table of the distinct ones, or as floats
_MOST = 2**16  # distinct numbers in a table
_LONGEST = 2**40


@dataclass(frozen=True, eq=False)
class Samples(Compressed):
    """Rows of a data set with their labels, which are no vector and cannot be added.  Paper bits: those of the message itself."""

    floats = ("values", "labels")
    dim: int
    lengths: NDArray[np.int64]  # (N,) nonzeros of each sample
    indices: Indices  # (nonzeros,) increasing in each sample
    values: Vector  # (nonzeros,)
    labels: Vector  # (N,)
    nbytes: int = 0  # of the message that they were read from

    @property
    def elements(self) -> int:
        return self.values.size

    def add_to(self, out: Vector, scale: float = 1.0) -> NoReturn:
        raise ValueError("samples are no vector, and cannot be added")

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return 8.0 * self.nbytes


class SamplesLink(Link):
    """A link whose messages are samples with their labels, exactly. They are packed by rows or by columns, whichever is shorter
    after LZMA, the method of xz. Where many columns have no entry, these are left out. Places are written as bits, or as lists
    where entries are few; numbers as places in a table of the distinct ones, or as floats of 32 bits if those hold them all, or of
    64."""

    def write(self, compressed: Compressed) -> Bytes:
        assert isinstance(compressed, Samples)
        rows = np.repeat(np.arange(compressed.labels.size), compressed.lengths)
        used = np.bincount(compressed.indices, minlength=compressed.dim) > 0
        used |= used.mean() > _KEPT
        columns = (np.cumsum(used) - 1)[compressed.indices]
        head = [count_bytes(rows.size), np.packbits(used), _numbers(compressed.labels)]
        sizes = compressed.labels.size, int(used.sum())
        by_rows = [*head, _places(rows, columns, *sizes), _numbers(compressed.values)]
        order = np.argsort(columns, kind="stable")
        by_columns = [*head, _places(columns[order], rows[order], *sizes[::-1]), _numbers(compressed.values[order])]
        bodies = [
            lzma.compress(np.concatenate(each).tobytes(), lzma.FORMAT_RAW, filters=_FILTERS) for each in (by_rows, by_columns)
        ]
        kind = int(len(bodies[1]) < len(bodies[0]))
        start = [one_byte(kind), count_bytes(compressed.labels.size), count_bytes(len(bodies[kind]))]
        return np.concatenate([*start, np.frombuffer(bodies[kind], np.uint8)])

    def read(self, data: Bytes, at: int = 0) -> tuple[Samples, int]:
        r, dim = Reader(data, at, FORMATS[64]), self.dim
        by_columns, N = r.byte(1, "order of samples"), r.count(_LONGEST)
        body = r.take(r.count(_LONGEST), "packed samples")
        try:
            packed = np.frombuffer(lzma.decompress(body.tobytes(), lzma.FORMAT_RAW, filters=_FILTERS), np.uint8)
        except lzma.LZMAError as error:
            raise CorruptMessage(f"packed samples: {error}") from None
        inner = Reader(packed, 0, FORMATS[64])
        nonzeros = inner.count(N * dim)
        used = np.flatnonzero(np.unpackbits(inner.take((dim + 7) // 8, "columns"), count=dim))
        labels = _read_numbers(inner, N)
        sizes = (used.size, N) if by_columns else (N, used.size)
        major, minor = _read_places(inner, *sizes, nonzeros)
        values = _read_numbers(inner, nonzeros)
        if inner.at != packed.size:
            raise CorruptMessage(f"{packed.size - inner.at} bytes are left over after packed samples")
        rows, columns = (minor, major) if by_columns else (major, minor)
        order = np.argsort(rows, kind="stable")
        indices = used[columns[order]].astype(np.uint32)
        return Samples(dim, np.bincount(rows, minlength=N), indices, values[order], labels, r.at - at), r.at

    def planned_wire_bits(self, T: Any) -> Any:
        return None

    def paper_bits(self, content: Compressed) -> float:
        return content.paper_bits(64)


def _least(count: int) -> str:
    return "<u1" if count <= 2**8 else "<u2" if count <= 2**16 else "<u4"


def _raw(values: Any, dtype: str) -> Bytes:
    return np.ascontiguousarray(values, dtype).view(np.uint8)


def _taken(r: Reader, count: int, dtype: str, what: str) -> NDArray[Any]:
    return r.take(count * int(dtype[-1]), what).copy().view(dtype)


def _places(major: NDArray[Any], minor: NDArray[Any], lines: int, across: int) -> Bytes:
    """Where the entries are, line by line."""
    if _as_bits(major.size, lines, across):
        held = np.zeros((lines, across), bool)
        held[major, minor] = True
        return np.packbits(held, axis=1).ravel()
    lengths = np.bincount(major, minlength=lines)
    return np.concatenate([_raw(lengths, _least(across + 1)), _raw(minor, _least(across))])


def _read_places(r: Reader, lines: int, across: int, nonzeros: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if _as_bits(nonzeros, lines, across):
        width = (across + 7) // 8
        held = np.unpackbits(r.take(lines * width, "places").reshape(lines, width), axis=1, count=across)
        major, minor = np.nonzero(held)
    else:
        lengths = _taken(r, lines, _least(across + 1), "lengths").astype(np.int64)
        if lengths.sum() != nonzeros:
            raise CorruptMessage(f"lines of {lengths.sum()} entries, where there are {nonzeros}")
        minor = _taken(r, nonzeros, _least(across), "places").astype(np.int64)
        major = np.repeat(np.arange(lines), lengths)
    if major.size != nonzeros or (nonzeros and int(minor.max()) >= across):
        raise CorruptMessage(f"{major.size} places of {nonzeros} entries in lines of {across}")
    return major, minor


def _as_bits(nonzeros: int, lines: int, across: int) -> bool:
    return nonzeros >= _DENSE * lines * across


def _numbers(values: Vector) -> Bytes:
    distinct, places = np.unique(values, return_inverse=True)
    if distinct.size <= min(_MOST, max(256, values.size // 4)):
        packed = np.packbits(places > 0) if distinct.size <= 2 else _raw(places, _least(distinct.size))
        return np.concatenate([one_byte(_TABLE), count_bytes(distinct.size), _raw(distinct, "<f8"), packed])
    with np.errstate(over="ignore"):
        single = bool((values.astype(np.float32) == values).all())
    return np.concatenate([one_byte(_SINGLE if single else _DOUBLE), _raw(values, "<f4" if single else "<f8")])


def _read_numbers(r: Reader, count: int) -> Vector:
    kind = r.byte(_DOUBLE, "kind of numbers")
    if kind != _TABLE:
        return _taken(r, count, "<f4" if kind == _SINGLE else "<f8", "numbers").astype(np.float64)
    distinct = _taken(r, size := r.count(_MOST), "<f8", "distinct numbers")
    if size > 2:
        places = _taken(r, count, _least(size), "numbers")
    else:
        places = np.unpackbits(r.take((count + 7) // 8, "numbers"), count=count)
    if count and int(places.max()) >= size:
        raise CorruptMessage(f"a number is none of the {size} distinct ones")
    return distinct[places]
