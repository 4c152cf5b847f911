"""Kinds of compressed vectors: what a compressor makes of a vector, and what a receiver decodes."""

from mpi_compress.messages.kinds.base import Bytes, Compressed, Flags, Indices, Known, Sparse, Vector, index_bits, no_coordinates
from mpi_compress.messages.kinds.dense import Dense, Lattice, Levels, Ternary, WithScalar, lattice_bits
from mpi_compress.messages.kinds.sparse import Drawn, Hybrid, SignSparse, SparseRows, uniform_indices

__all__ = [
    "Bytes", "Compressed", "Dense", "Drawn", "Flags", "Hybrid", "Indices", "Known", "Lattice", "Levels", "SignSparse", "Sparse",
    "SparseRows", "Ternary", "Vector", "WithScalar", "index_bits", "lattice_bits", "no_coordinates", "uniform_indices",
]  # fmt: skip
