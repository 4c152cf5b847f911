"""Compressors: a vector → fewer numbers, the mathematics without the bits. One file, one compressor."""

from mpi_compress.compressors.base import Compressor, compressors
from mpi_compress.registry import import_all

register = compressors.register
import_all(__name__)

__all__ = ["Compressor", "compressors", "register"]
