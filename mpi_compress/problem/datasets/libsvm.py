"""LIBSVM text, plain or compressed, in blocks of whole lines: scikit-learn parses them, and errors are explained here.

A plain file is cut into blocks of fixed size, of which any rank can parse any; a compressed one is a stream for one rank. A block
holds the lines that begin in it, so neither blocks nor ranks change what is read.
"""

import bz2
import gzip
import io
import lzma
import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy  # which loads sparse where it is first used

from mpi_compress.core.errors import UserError
from mpi_compress.messages.kinds import Vector

SUFFIXES = ("", ".xz", ".bz2", ".gz")
LARGEST_INDEX = 2**31 - 1
BLOCK_BYTES = 16 * 2**20
_OPENERS: dict[str, Any] = {".xz": lzma.open, ".bz2": bz2.open, ".gz": gzip.open}
_UNREADABLE = (EOFError, lzma.LZMAError, zlib.error, OSError)


@dataclass(frozen=True)
class Block:
    """Some lines of a file."""

    number: int
    text: bytes
    lines_before: Callable[[], int]  # how many lines of the file come before; to count them takes time


def read_blocks(path: Path, dim: int | None = None, part: int = 0, parts: int = 1) -> Iterator[tuple[int, Any, Vector]]:
    """Parsed blocks: their number, their samples (SciPy CSR), and labels (rows,) as they stand in the file.

    Args:
        dim: d, where it is known: no index may be above it.
        part, parts: read the part-th of `parts` shares of a plain file's blocks; of a compressed file, part 0 reads all.

    Raises:
        UserError: the file or a line of it cannot be read; the error names the line and what is wrong with it.
    """
    if path.is_dir():
        raise UserError(f"{path}: is a folder; a file of LIBSVM text is wanted")
    try:
        for block in _blocks(path, part, parts):
            yield (block.number, *_parsed(block, path, dim))
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except _UNREADABLE as error:
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
    if path.suffix in _OPENERS:
        return _stream(path) if part == 0 else iter(())
    count = -(-path.stat().st_size // BLOCK_BYTES)
    return (_cut(path, b) for b in range(part * count // parts, (part + 1) * count // parts))


def _stream(path: Path) -> Iterator[Block]:
    lines, number = 0, 0
    with open_text(path) as file:
        while text := file.read(BLOCK_BYTES):
            text += file.readline()
            yield Block(number, text, partial(int, lines))
            lines += text.count(b"\n")
            number += 1


def _cut(path: Path, number: int) -> Block:
    start = number * BLOCK_BYTES
    with path.open("rb") as file:
        if start > 0:
            file.seek(start - 1)
            file.readline()  # the rest of a line that begins before
            start = file.tell()
        text = file.read(max(0, (number + 1) * BLOCK_BYTES - start))
        text += file.readline() if text and not text.endswith(b"\n") else b""
    return Block(number, text, partial(_count_lines, path, start))


def _count_lines(path: Path, end: int) -> int:
    lines = 0
    with path.open("rb") as file:
        while end > 0 and (text := file.read(min(end, BLOCK_BYTES))):
            lines += text.count(b"\n")
            end -= len(text)
    return lines


def _parsed(block: Block, path: Path, dim: int | None) -> tuple[Any, Vector]:
    from sklearn.datasets import load_svmlight_file

    try:
        samples, labels = load_svmlight_file(io.BytesIO(block.text), zero_based=False)
        fits = samples.nnz == 0 or int(samples.indices.max()) < (dim or LARGEST_INDEX)
        problem = None if fits and np.isfinite(samples.data).all() and np.isfinite(labels).all() else "wrong values"
    except (ValueError, OverflowError) as error:
        problem = str(error)
    if problem is None and b"_" not in block.text:  # which Python takes within a number
        return samples, labels
    for at, line in enumerate(block.text.split(b"\n"), 1):
        complaint = complaint_about(line, dim)
        if complaint:
            raise UserError(f"{path}:{block.lines_before() + at}: {complaint}")
    if problem is None:
        return samples, labels
    raise UserError(f"{path}: is no LIBSVM text, near line {block.lines_before() + 1}: {problem}")


def complaint_about(line: bytes, dim: int | None) -> str | None:
    """The first mistake in a line `label index:value … # comment`; None if there is none."""
    fields = line.split(b"#")[0].split()
    if not fields:
        return None
    label, *features = fields
    try:
        if not math.isfinite(float(_plain(label))):
            return f"label {_shown(label)} is not a finite number"
    except ValueError:
        return f"{_shown(label)} was given for a label; it should be a number, as in `label index:value …`"
    last = 0
    for feature in features[1:] if features and features[0].startswith(b"qid:") else features:
        index, _, value = feature.partition(b":")
        try:
            i, v = int(_plain(index)), float(_plain(value))
        except ValueError:
            return f"{_shown(feature)} is no index:value"
        if i < 1:
            return f"index {i}; indices start at 1"
        if i <= last:
            return f"index {i} {'twice' if i == last else f'after {last}'}; indices must increase along a line"
        if i > (dim or LARGEST_INDEX):
            return f"index {i} is above " + (f"d = {dim}" if dim else f"{LARGEST_INDEX}, the largest that is possible")
        if not math.isfinite(v):
            return f"value {_shown(value)} of index {i} is not a finite number"
        last = i
    return None


def _plain(text: bytes) -> bytes:
    if b"_" in text:
        raise ValueError
    return text


def _shown(text: bytes) -> str:
    shown = text[:40].decode("utf-8", "backslashreplace")
    return repr(shown + ("…" if len(text) > 40 else ""))
