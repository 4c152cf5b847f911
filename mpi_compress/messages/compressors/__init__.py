"""Compressors: a vector → fewer numbers, the mathematics without the bits."""

from mpi_compress.messages.compressors.base import Compressor, compressors

compressors.found_in(__name__)

__all__ = ["Compressor", "compressors"]
