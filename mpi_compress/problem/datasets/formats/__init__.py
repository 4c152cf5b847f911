"""Formats of files of samples, one file each; a job names one, or the file's name says which."""

# ruff: noqa: F401
import re
from pathlib import Path

from mpi_compress.core.errors import UserError
from mpi_compress.problem.datasets.formats.base import HELD_OUT, Format, Reading, formats

formats.found_in(__name__)


def format_of(path: Path) -> Format:
    """The format that a file's name shows, or else LIBSVM text."""
    return next((each for each in formats.values() if each.names and _shows(each, path.name)), formats["libsvm"])()


def _shows(how: type[Format], name: str) -> bool:
    try:
        return re.search(how.names, name) is not None
    except re.error as error:
        wanted = f"it should be a regular expression, such as {how.names.replace('*.', '')!r} + '$'"
        raise UserError(f"the format '{how.name}': names = {how.names!r} was given; {wanted} ({error})") from None
