"""LIBSVM text, plain or compressed, in blocks of whole lines: a kernel parses the usual lines, and Python the others.

A plain file is cut into blocks of fixed size, of which any rank can parse any; a compressed one is a stream for one rank. A block
holds the lines that begin in it, so neither blocks nor ranks change what is read. Threads parse a rank's blocks.
"""

import bz2
import codecs
import gzip
import itertools
import lzma
import math
import os
import re
import shutil
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import scipy  # which loads sparse where it is first used
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError
from mpi_compress.kernels import text as kernels
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.datasets.lines import LARGEST_INDEX, RETURN, ParsedLine, parsed_line

SUFFIXES = ("", ".xz", ".bz2", ".gz")
BLOCK_BYTES = 16 * 2**20
MOST_THREADS = 4  # each has a block in memory, up to 100 MB
_END = re.compile(rb"[\s#]")  # what ends a number
_OPENERS: dict[str, Any] = {".xz": lzma.open, ".bz2": bz2.open, ".gz": gzip.open}
UNREADABLE = (EOFError, lzma.LZMAError, zlib.error, OSError)
_PACKED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ": ".xz"}
_NOT_TEXT = {
    **dict.fromkeys((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), "is UTF-16; `iconv -f UTF-16 -t UTF-8 FILE` writes it as text"),
    **{start: f"is compressed; give it a name that ends in {suffix}" for start, suffix in _PACKED.items()},
    b"PK\x03\x04": "is an archive; unzip it",
}  # by how such files begin


def stem(name: str) -> str:
    """A file's name without the suffix of its compression."""
    return name.removesuffix(Path(name).suffix) if Path(name).suffix in SUFFIXES else name


def join(parts: list[Path], whole: Path) -> None:
    """Concatenate files, compressed alike or not at all, to a new file, with a line end between in case one lacks it."""
    for part in parts:
        if whole.exists():
            with open_text(whole, "ab", part.suffix) as out:
                out.write(b"\n")
        with part.open("rb") as file, whole.open("ab") as out:
            shutil.copyfileobj(file, out, 2**20)


def counts(path: Path) -> tuple[int, int, int]:
    """N, the largest index and the nonzeros of a file; UserError as `read_blocks`."""
    n = largest = nonzeros = 0
    for _, samples, labels in read_blocks(path):
        n, largest = n + labels.size, max(largest, samples.shape[1] if samples.nnz else 0)
        nonzeros += int(np.count_nonzero(samples.data))
    return n, largest, nonzeros


class Block(NamedTuple):
    """Some lines of a file."""

    number: int
    text: bytes


def read_blocks(path: Path, dim: int | None = None, part: int = 0, parts: int = 1) -> Iterator[tuple[int, Any, Vector]]:
    """Parsed blocks: their number, their samples (SciPy CSR), and labels (rows,) as they stand in the file.

    Args:
        dim: d, where it is known: no index may be above it.
        part, parts: read the part-th of `parts` shares of a plain file's blocks; of a compressed file, part 0 reads all.

    Raises:
        UserError: the file or a line of it cannot be read; the error names the line and what is wrong with it.
    """
    try:
        yield from _in_threads(_blocks(path, part, parts), partial(_parsed, path=path, dim=dim), _threads(path, parts))
    except UNREADABLE as error:
        what = "is damaged or cut short" if path.suffix in _OPENERS else "cannot be read"
        raise UserError(f"{path}: {what}: {error}") from None


def open_text(path: Path, mode: str = "rb", suffix: str | None = None) -> BinaryIO:
    """The text of a plain, .gz, .bz2 or .xz file as bytes; `suffix` overrides the path's own."""
    return _OPENERS.get(path.suffix if suffix is None else suffix, open)(path, mode)


def write(out: BinaryIO, samples: Any, labels: Vector) -> None:
    """Write rows as text; every number is read back to the last bit."""
    matrix = scipy.sparse.csr_matrix(samples)
    ends, indices, values = matrix.indptr.tolist(), (matrix.indices + 1).tolist(), matrix.data.tolist()
    for i, label in enumerate(labels.tolist()):
        row = range(ends[i], ends[i + 1])
        text = " ".join([f"{label:+.0f}" if label.is_integer() else repr(label), *(f"{indices[p]}:{values[p]!r}" for p in row)])
        out.write(text.encode() + b"\n")


def _blocks(path: Path, part: int, parts: int) -> Iterator[Block]:
    """The blocks of a share: those of a plain file by their place, those of a compressed one as it is decompressed."""
    first, last = 0, sys.maxsize * (part == 0)
    if path.suffix not in _OPENERS:
        count = -(-path.stat().st_size // BLOCK_BYTES)
        first, last = part * count // parts, (part + 1) * count // parts
    with open_text(path) as file:
        if first:
            file.seek(first * BLOCK_BYTES - 1)
            file.readline()  # the rest of a line that begins before
        for number in range(first, last):
            text = file.read(max(0, (number + 1) * BLOCK_BYTES - file.tell()))
            text += file.readline() if text and not text.endswith(b"\n") else b""
            if not text and file.tell() < (number + 1) * BLOCK_BYTES:
                return
            yield Block(number, text if number else _begun(path, text))


def _begun(path: Path, text: bytes) -> bytes:
    """The first block's text without a byte order mark; UserError if it begins as no text does."""
    for start, what in _NOT_TEXT.items():
        if text.startswith(start):
            raise UserError(f"{path}: {what}")
    return text.removeprefix(codecs.BOM_UTF8)


def _threads(path: Path, parts: int) -> int:
    """How many threads parse: one for each core that this rank has, no more than there are blocks."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    blocks = 2 if path.suffix in _OPENERS else path.stat().st_size // BLOCK_BYTES  # a stream is read while a block of it is parsed
    return max(1, min(cores // parts, blocks, MOST_THREADS))


def _in_threads(blocks: Iterator[Block], parse: Callable[[Block], Any], threads: int) -> Iterator[Any]:
    """`parse` of all blocks, in their order; some are parsed ahead."""
    if threads == 1:
        yield from map(parse, blocks)
        return
    ahead: deque[Future[Any]] = deque()
    pool = ThreadPoolExecutor(threads)
    try:
        for block in blocks:
            ahead.append(pool.submit(parse, block))
            if len(ahead) > threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


class _Parsed(NamedTuple):
    """Room for the rows of a block: of each row its label and where its entries end, of each entry its index − 1 and its value."""

    labels: Vector
    ends: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: Vector

    def put(self, line: ParsedLine, counts: NDArray[np.int64]) -> None:
        """Append a line."""
        row, start = counts[kernels.ROWS], counts[kernels.ENTRIES]
        stop = start + len(line.indices)
        self.labels[row], self.ends[row] = line.label, stop
        self.indices[start:stop], self.values[start:stop] = np.subtract(line.indices, 1), line.values
        counts[kernels.ROWS], counts[kernels.ENTRIES] = row + 1, stop

    def set(self, entry: int, value: float) -> bool:
        """Put a number that the kernel has left, and return whether it is finite; −1 − row is for that row's label."""
        if entry < 0:
            self.labels[-1 - entry] = value
        else:
            self.values[entry] = value
        return math.isfinite(value)


def _parsed(block: Block, path: Path, dim: int | None) -> tuple[int, Any, Vector]:
    text = block.text if block.text.endswith(b"\n") else block.text + b"\n"
    if RETURN.search(text):
        raise _first_complaint(block, path, dim)
    m, n = text.count(b"\n"), text.count(b":")
    rows = _Parsed(np.empty(m), np.empty(m, np.int64), np.empty(n, np.int32), np.empty(n))
    left, counts, at = np.empty((m + n, 2), np.int64), np.zeros(3, np.int64), 0
    while (at := kernels.parse(np.frombuffer(text, np.uint8), at, dim or LARGEST_INDEX, counts, *rows, left)) < len(text):
        line = text[at : text.index(b"\n", at)]
        try:
            rows.put(parsed_line(line, dim), counts)
        except ValueError:
            raise _first_complaint(block, path, dim) from None
        at += len(line) + 1
    m, n, open_ = counts.tolist()
    for entry, place in left[:open_].tolist():
        if not rows.set(entry, float(text[place : _END.search(text, place).start()])):  # type: ignore[union-attr]
            raise _first_complaint(block, path, dim)
    indices = rows.indices[:n]
    indptr = np.concatenate([np.zeros(1, np.int64), rows.ends[:m]])
    shape = (m, int(indices.max(initial=0)) + 1)
    return block.number, scipy.sparse.csr_matrix((rows.values[:n], indices, indptr), shape=shape), rows.labels[:m]


def warm_up() -> None:
    """Compile what parses, or load it from the disk cache."""
    _parsed(Block(0, b"1 1:1\n"), Path(), None)


def _first_complaint(block: Block, path: Path, dim: int | None) -> UserError:
    """The error of a block's first wrong line; there is one."""
    before = sum(each.text.count(b"\n") for each in itertools.islice(_blocks(path, 0, 1), block.number))
    for at, line in enumerate(block.text.split(b"\n"), before + 1):
        try:
            parsed_line(line, dim)
        except ValueError as error:
            return UserError(f"{path}:{at}: {error}")
    raise AssertionError
