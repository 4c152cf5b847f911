"""Codecs: compressed vectors → bytes and back, exactly."""

from mpi_compress.core.registry import import_all
from mpi_compress.messages.codecs.base import Codec, codecs

import_all(__name__, codecs)

__all__ = ["Codec", "codecs"]
