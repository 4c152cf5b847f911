from functools import partial

import numpy as np

from mpi_compress.kernels import adaptive as kernels
from mpi_compress.messages.codecs.base import Bytes, Known, codecs
from mpi_compress.messages.codecs.fields import Reader, coded, float_bytes, read_exponent, write_integers
from mpi_compress.messages.codecs.indexed import IndexCodec
from mpi_compress.messages.kinds import Compressed, Dithered, Indices, Levels, Powers, Ternary
from mpi_compress.messages.kinds.grids import largest_power

_NOT_FINITE = -(2**15)  # the exponent of a vector that is not finite
_GRIDS = (Levels, Ternary, Dithered)


@codecs.register("entropy")
class Entropy(IndexCodec):
    """Index sets, levels, signs and powers by an adaptive range coder, close to their entropy or, where they are uneven, below it.

    The initial chances are those of a uniformly random set, for integers even ones. They adapt to the gaps, or integers, before.
    """

    kinds = (*IndexCodec.kinds, *_GRIDS, Powers)

    def encode(self, compressed: Compressed) -> Bytes:
        if isinstance(compressed, _GRIDS):
            return np.concatenate([float_bytes(compressed.steps, self.float_format), write_integers(compressed.integers)])
        if isinstance(compressed, Powers):
            least = np.array([compressed.least if compressed.finite else _NOT_FINITE], dtype="<i2").view(np.uint8)
            return np.concatenate([least, write_integers(compressed.integers)])
        return super().encode(compressed)

    def read(self, r: Reader, dim: int, kind: type[Compressed], known: Known) -> Compressed:
        if issubclass(kind, _GRIDS):
            bucket, most = kind.known_grid(dim, known)
            steps = r.floats(-(-dim // bucket))
            return kind.on_grid(r.integers(dim, most), steps, known)
        if kind is not Powers:
            return super().read(r, dim, kind, known)
        least, fraction = read_exponent(r, _NOT_FINITE), known["fraction"]
        if least == _NOT_FINITE:
            return Powers(r.integers(dim, 0), 0, fraction, finite=False)
        return Powers(r.integers(dim, largest_power(least, fraction)), least, fraction)

    def write_set(self, indices: Indices, dim: int, ahead: int = 0) -> Bytes:
        if indices.size in (0, dim):
            return np.empty(ahead, dtype=np.uint8)
        return coded(partial(kernels.write_set, indices, dim), 4 * indices.size, ahead)

    def read_set(self, r: Reader, dim: int, indices: Indices) -> None:
        if indices.size == dim:
            indices[:] = np.arange(dim)
        elif indices.size:
            r.goes_to(kernels.read_set(r.readable, r.at, dim, indices))
