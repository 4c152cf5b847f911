"""Kinds of compressed vectors: what a compressor makes of a vector, and what a receiver decodes."""

from mpi_compress.messages.kinds.base import Bytes, Compressed, Flags, Indices, Known, Sparse, Vector, index_bits, no_coordinates
from mpi_compress.messages.kinds.composed import Accompanied, Blocks, Chained, Pair, Several, WithScalar, WithSize
from mpi_compress.messages.kinds.coordinates import (
    Cyclic,
    Drawn,
    Hybrid,
    Permuted,
    SignSparse,
    SparseRows,
    cyclic_indices,
    permuted_indices,
    uniform_indices,
)  # fmt: skip
from mpi_compress.messages.kinds.grids import BlockSigns, Dense, Dithered, Grid, Lattice, Levels, Powers, Ternary, lattice_bits
from mpi_compress.messages.kinds.samples import Samples
from mpi_compress.messages.kinds.sketch import Projections, Sketch
from mpi_compress.messages.kinds.symmetric import Eigenpairs, side_of, square, triangle

__all__ = [
    "Accompanied", "BlockSigns", "Blocks", "Bytes", "Chained", "Compressed", "Cyclic", "Dense", "Dithered", "Drawn",
    "Eigenpairs", "Flags", "Grid", "Hybrid", "Indices", "Known", "Lattice", "Levels", "Pair", "Permuted", "Powers",
    "Projections", "Samples", "Several", "SignSparse", "Sketch", "Sparse", "SparseRows", "Ternary", "Vector", "WithScalar",
    "WithSize", "cyclic_indices", "index_bits", "lattice_bits", "no_coordinates", "permuted_indices", "side_of", "square",
    "triangle", "uniform_indices",
]  # fmt: skip
