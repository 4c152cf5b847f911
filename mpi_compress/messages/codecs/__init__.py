"""Codecs: compressed vectors → bytes and back, exactly."""

from mpi_compress.messages.codecs.base import Codec, codecs

codecs.found_in(__name__)

__all__ = ["Codec", "codecs"]
