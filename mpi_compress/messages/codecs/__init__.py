"""Codecs: compressed vectors → bytes and back, exactly."""

# ruff: noqa: F401
from mpi_compress.messages.codecs.base import Codec, codecs

codecs.found_in(__name__)
