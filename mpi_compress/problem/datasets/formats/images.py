"""Formats of sets of images: IDX files, and the binary version of CIFAR-10."""

import math
import struct
from pathlib import Path

import numpy as np

from mpi_compress.messages.kinds import Bytes
from mpi_compress.problem.datasets.formats.base import Format, Reading, UserError, blocks_of, content, formats

_RECORD = 1 + 3 * 32 * 32  # bytes of an image of CIFAR-10 and its label


@formats.register("idx")
class Idx(Format):
    """Grey images in an IDX file, as MNIST and Fashion-MNIST are published: pixels from 0 to 1; a file beside it has the labels."""

    in_shares = False
    names = r"images[-.]idx3-ubyte(\.gz|\.xz|\.bz2)?$"

    def files(self, path: Path) -> tuple[Path, ...]:
        return path, labels_of(path)

    def read(self, path: Path, dim: int | None, part: int, parts: int) -> Reading:
        images, labels = _array(path, 3), _array(labels_of(path), 1)
        if len(images) != len(labels):
            raise UserError(f"{path}: has {len(images)} images, and {labels_of(path).name} has {len(labels)} labels")
        pixels, (_, height, width) = images.reshape(len(images), -1), images.shape
        if dim is not None and pixels.shape[1] > dim:
            raise UserError(f"{path}: images have {pixels.shape[1]} pixels, more than d = {dim}")
        return Reading(blocks_of(pixels, labels, 255.0), {"height": height, "width": width, "channels": 1}, pixels.shape[1])


def labels_of(path: Path) -> Path:
    """The labels' file beside the images' file; UserError if there is none."""
    labels = path.with_name(path.name.replace("images-idx3", "labels-idx1").replace("images.idx3", "labels.idx1"))
    if labels == path or not labels.is_file():
        raise UserError(f"{path}: the labels of these images should be in {labels.name} beside it, and there is no such file")
    return labels


def _array(path: Path, axes: int) -> Bytes:
    """The array of bytes in an IDX file: two zeros, the type 8, the number of axes, their lengths, the bytes."""
    data = content(path)
    if data[:4] != bytes([0, 0, 8, axes]) or len(data) < 4 + 4 * axes:
        raise UserError(f"{path}: is no IDX file of bytes with {axes} {'axis' if axes == 1 else 'axes'}")
    shape = struct.unpack_from(f">{axes}I", data, 4)
    if len(data) != 4 + 4 * axes + math.prod(shape):
        raise UserError(f"{path}: is cut short or too long: {len(data)} bytes, {4 + 4 * axes + math.prod(shape)} are required")
    return np.frombuffer(data, dtype=np.uint8, offset=4 + 4 * axes).reshape(shape)


@formats.register("cifar-10")
class Cifar10(Format):
    """Colour images in the binary version of CIFAR-10 (Krizhevsky 2009): a byte of label, then 32 × 32 of red, green and blue each.

    data_batch_1.bin stands for all data_batch_….bin beside it. A row holds its pixels from 0 to 1, the three colours of a pixel
    together.
    """

    in_shares = False
    names = r"(data_batch_\d+|test_batch)\.bin(\.gz|\.xz|\.bz2)?$"

    def files(self, path: Path) -> tuple[Path, ...]:
        if not path.name.startswith("data_batch_1."):
            return (path,)
        return tuple(sorted(path.parent.glob(f"data_batch_*.{path.name.partition('.')[2]}")))

    def read(self, path: Path, dim: int | None, part: int, parts: int) -> Reading:
        records = np.concatenate([_records(file) for file in self.files(path)])
        colours = records[:, 1:].reshape(-1, 3, 32 * 32).transpose(0, 2, 1).reshape(len(records), -1)
        return Reading(blocks_of(colours, records[:, 0], 255.0), {"height": 32, "width": 32, "channels": 3}, colours.shape[1])


def _records(path: Path) -> Bytes:
    data = content(path)
    if not data or len(data) % _RECORD:
        raise UserError(f"{path}: has {len(data)} bytes, no whole number of records of {_RECORD}: is cut short, or no CIFAR-10")
    records = np.frombuffer(data, dtype=np.uint8).reshape(-1, _RECORD)
    wrong = np.flatnonzero(records[:, 0] > 9)
    if wrong.size:
        raise UserError(f"{path}: record {wrong[0] + 1} has the label {records[wrong[0], 0]}; labels are 0 to 9")
    return records
