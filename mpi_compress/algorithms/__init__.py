"""Algorithms: one paper, one file. Workers send, the master answers, everyone hears."""

from mpi_compress.algorithms.base import Algorithm, Setting, algorithms
from mpi_compress.core.registry import import_all

register = algorithms.register
import_all(__name__)

__all__ = ["Algorithm", "Setting", "algorithms", "register"]
