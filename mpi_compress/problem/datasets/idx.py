"""Images in IDX files, as MNIST and Fashion-MNIST are published: pixels from 0 to 1; a second file beside them has the labels."""

import gzip
import math
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError
from mpi_compress.messages.kinds import Vector

_NAME = re.compile(r"images[-.]idx3-ubyte(\.gz)?$")
_ROWS = 4096  # of a block


def is_idx(path: Path) -> bool:
    """True if a file's name is that of IDX images."""
    return _NAME.search(path.name) is not None


def labels_of(path: Path) -> Path:
    """The labels' file beside the images' file; UserError if there is none."""
    labels = path.with_name(path.name.replace("images-idx3", "labels-idx1").replace("images.idx3", "labels.idx1"))
    if not labels.is_file():
        raise UserError(f"{path}: the labels of these images should be in {labels.name} beside it, and there is no such file")
    return labels


def read_blocks(path: Path, dim: int | None = None, part: int = 0) -> Iterator[tuple[int, NDArray[np.float64], Vector]]:
    """Blocks: their number, their images (rows, pixels) and labels (rows,); all of them for part 0, none for others.

    Raises:
        UserError: the files cannot be read, are no IDX files, or do not go together.
    """
    if part > 0:
        return
    images, labels = _array(path, 3), _array(labels_of(path), 1)
    if len(images) != len(labels):
        raise UserError(f"{path}: has {len(images)} images, and {labels_of(path).name} has {len(labels)} labels")
    pixels = images.reshape(len(images), -1)
    if dim is not None and pixels.shape[1] > dim:
        raise UserError(f"{path}: images have {pixels.shape[1]} pixels, more than d = {dim}")
    for number, start in enumerate(range(0, len(images), _ROWS)):
        yield number, pixels[start : start + _ROWS] / 255.0, labels[start : start + _ROWS].astype(float)


def _array(path: Path, axes: int) -> NDArray[np.uint8]:
    """The array of bytes in an IDX file: two zeros, the type 8, the number of axes, their lengths, the bytes."""
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    if data[:4] != bytes([0, 0, 8, axes]) or len(data) < 4 + 4 * axes:
        raise UserError(f"{path}: is no IDX file of bytes with {axes} {'axis' if axes == 1 else 'axes'}")
    shape = struct.unpack_from(f">{axes}I", data, 4)
    if len(data) != 4 + 4 * axes + math.prod(shape):
        raise UserError(f"{path}: is cut short or too long: {len(data)} bytes, {4 + 4 * axes + math.prod(shape)} are wanted")
    return np.frombuffer(data, dtype=np.uint8, offset=4 + 4 * axes).reshape(shape)
