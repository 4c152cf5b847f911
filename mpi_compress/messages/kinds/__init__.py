"""Kinds of compressed vectors: what a compressor makes of a vector, and what a receiver decodes."""

from mpi_compress.messages.kinds.base import Bytes, Compressed, Flags, Indices, Known, Sparse, Vector, index_bits, no_coordinates
from mpi_compress.messages.kinds.dense import Dense
from mpi_compress.messages.kinds.drawn import Drawn, uniform_indices
from mpi_compress.messages.kinds.hybrid import Hybrid
from mpi_compress.messages.kinds.lattice import Lattice, lattice_bits
from mpi_compress.messages.kinds.levels import Levels
from mpi_compress.messages.kinds.pair import Pair
from mpi_compress.messages.kinds.signs import SignSparse
from mpi_compress.messages.kinds.sparse_rows import SparseRows
from mpi_compress.messages.kinds.ternary import Ternary
from mpi_compress.messages.kinds.with_scalar import WithScalar

__all__ = [
    "Bytes", "Compressed", "Dense", "Drawn", "Flags", "Hybrid", "Indices", "Known", "Lattice", "Levels", "Pair", "SignSparse",
    "Sparse", "SparseRows", "Ternary", "Vector", "WithScalar", "index_bits", "lattice_bits", "no_coordinates", "uniform_indices",
]  # fmt: skip
