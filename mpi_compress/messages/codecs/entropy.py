from functools import partial
from typing import Any

import numpy as np

from mpi_compress.kernels import adaptive as kernels
from mpi_compress.messages.codecs.base import Bytes, Known, codecs
from mpi_compress.messages.codecs.indexed import IndexCodec
from mpi_compress.messages.fields import Reader, coded, write_integers
from mpi_compress.messages.kinds import Compressed, Indices


@codecs.register("entropy")
class Entropy(IndexCodec):
    """Index sets, levels, signs and powers by an adaptive range coder, close to their entropy or, where they are uneven, below it.

    The initial chances are those of a uniformly random set, for integers even ones. They adapt to the gaps, or integers, before.
    """

    layout = "entropy"

    def encode(self, compressed: Any) -> Bytes:
        if self.layout in compressed.layouts:
            return np.concatenate([compressed.head(self.float_format), write_integers(compressed.integers)])
        return super().encode(compressed)

    def read(self, r: Reader, dim: int, kind: Any, known: Known) -> Compressed:
        if self.layout in kind.layouts:
            most, made = kind.read_head(r, dim, known)
            return made(r.integers(dim, most))
        return super().read(r, dim, kind, known)

    def write_set(self, indices: Indices, dim: int, ahead: int = 0) -> Bytes:
        if indices.size in (0, dim):
            return np.empty(ahead, dtype=np.uint8)
        return coded(partial(kernels.write_set, indices, dim), 4 * indices.size, ahead)

    def read_set(self, r: Reader, dim: int, indices: Indices) -> None:
        if indices.size == dim:
            indices[:] = np.arange(dim)
        elif indices.size:
            r.goes_to(kernels.read_set(r.readable, r.at, dim, indices))
