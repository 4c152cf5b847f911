"""Data sets: LIBSVM files and generators, parsed once into a cached HDF5 file that each rank reads its own rows of."""

# ruff: noqa: F401
from mpi_compress.problem.datasets.generators import Generator, generators

generators.found_in(__name__)
