"""Formats of files of samples, one file each; a job names one, or the file's name says which."""

import re
from pathlib import Path

from mpi_compress.core.registry import import_all
from mpi_compress.problem.datasets.formats.base import HELD_OUT, Format, Reading, formats

register = formats.register
import_all(__name__)


def format_of(path: Path) -> Format:
    """The format that a file's name shows, or else LIBSVM text."""
    shown = (each for each in formats.values() if each.names and re.search(each.names, path.name))
    return next(shown, formats.shipped("libsvm"))()


__all__ = ["HELD_OUT", "Format", "Reading", "format_of", "formats", "register"]
