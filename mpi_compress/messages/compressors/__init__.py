"""Compressors: a vector → fewer numbers, the mathematics without the bits."""

from mpi_compress.core.registry import import_all
from mpi_compress.messages.compressors.base import Compressor, compressors

import_all(__name__, compressors)

__all__ = ["Compressor", "compressors"]
