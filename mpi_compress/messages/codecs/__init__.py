"""Codecs: compressed vectors → bytes and back, exactly."""

from mpi_compress.core.registry import import_all
from mpi_compress.messages.codecs.base import Codec, codecs

register = codecs.register
import_all(__name__)

__all__ = ["Codec", "codecs", "register"]
