"""Data sets: LIBSVM files and generators, parsed once into a cached HDF5 file that each rank reads its own rows of."""

# ruff: noqa: F401
from mpi_compress.problem.datasets.generators import Generator, generators
from mpi_compress.problem.datasets.known import KNOWN
from mpi_compress.problem.datasets.store import DataSet, open_data

generators.found_in(__name__)
