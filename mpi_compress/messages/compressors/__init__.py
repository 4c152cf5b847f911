"""Compressors: a vector → fewer numbers, the mathematics without the bits."""

from mpi_compress.core.registry import import_all
from mpi_compress.messages.compressors.base import Compressor, compressors

register = compressors.register
import_all(__name__)

__all__ = ["Compressor", "compressors", "register"]
