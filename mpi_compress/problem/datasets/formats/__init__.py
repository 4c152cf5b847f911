"""Formats of files of samples, one file each; a job names one, or the file's name says which."""

from pathlib import Path

from mpi_compress.core.registry import import_all
from mpi_compress.problem.datasets.formats.base import HELD_OUT, Format, Reading, formats
from mpi_compress.problem.datasets.formats.cifar import Cifar10, is_cifar
from mpi_compress.problem.datasets.formats.idx import Idx, is_idx
from mpi_compress.problem.datasets.formats.libsvm_text import LibsvmText

register = formats.register
import_all(__name__)


def format_of(path: Path) -> Format:
    """The format that a file's name shows: IDX images, CIFAR-10's batches, or else LIBSVM text."""
    if is_idx(path):
        return Idx()
    return Cifar10() if is_cifar(path) else LibsvmText()


__all__ = ["HELD_OUT", "Format", "Reading", "format_of", "formats", "register"]
