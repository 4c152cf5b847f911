"""Kinds of compressed vectors: what a compressor makes of a vector, and what a receiver decodes."""

from mpi_compress.messages.kinds.accompanied import Accompanied
from mpi_compress.messages.kinds.base import Bytes, Compressed, Flags, Indices, Known, Sparse, Vector, index_bits, no_coordinates
from mpi_compress.messages.kinds.block_signs import BlockSigns
from mpi_compress.messages.kinds.blocks import Blocks
from mpi_compress.messages.kinds.dense import Dense
from mpi_compress.messages.kinds.dithered import Dithered
from mpi_compress.messages.kinds.drawn import Drawn, uniform_indices
from mpi_compress.messages.kinds.hybrid import Hybrid
from mpi_compress.messages.kinds.lattice import Lattice, lattice_bits
from mpi_compress.messages.kinds.levels import Levels
from mpi_compress.messages.kinds.pair import Pair
from mpi_compress.messages.kinds.permuted import Permuted, permuted_indices
from mpi_compress.messages.kinds.powers import Powers
from mpi_compress.messages.kinds.signs import SignSparse
from mpi_compress.messages.kinds.sketch import Sketch
from mpi_compress.messages.kinds.sparse_rows import SparseRows
from mpi_compress.messages.kinds.ternary import Ternary
from mpi_compress.messages.kinds.with_scalar import WithScalar
from mpi_compress.messages.kinds.with_size import WithSize

__all__ = [
    "Accompanied", "BlockSigns", "Blocks", "Bytes", "Compressed", "Dense", "Dithered", "Drawn", "Flags", "Hybrid", "Indices",
    "Known", "Lattice", "Levels", "Pair", "Permuted", "Powers", "SignSparse", "Sketch", "Sparse", "SparseRows", "Ternary", "Vector",
    "WithScalar", "WithSize", "index_bits", "lattice_bits", "no_coordinates", "permuted_indices", "uniform_indices",
]  # fmt: skip
