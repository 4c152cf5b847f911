"""Codecs: what is compressed → bytes and back, exactly. One file, one codec."""

from mpi_compress.codecs.base import Codec, codecs
from mpi_compress.registry import import_all

register = codecs.register
import_all(__name__)

__all__ = ["Codec", "codecs", "register"]
