"""Compressors: a vector → fewer numbers, the mathematics without the bits."""

# ruff: noqa: F401
from mpi_compress.messages.compressors.base import Compressor, compressors

compressors.found_in(__name__)
