"""Data sets: LIBSVM files and generators, parsed once into a cached HDF5 file that each rank reads its own rows of."""

from mpi_compress.datasets.generators import Generator, generators
from mpi_compress.datasets.known import KNOWN
from mpi_compress.datasets.store import DataSet, open_data
from mpi_compress.registry import import_all

register = generators.register
import_all(__name__)

__all__ = ["KNOWN", "DataSet", "Generator", "cache_folder", "generators", "open_data", "register"]
