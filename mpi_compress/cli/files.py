"""Files that commands write where -o says."""

import sys
from pathlib import Path

from mpi_compress.core.errors import UserError


def ask_for_folder(file: Path, option: str = "-o") -> None:
    """On a terminal ask whether to make the folder of a file, if there is none; UserError if not. Elsewhere it is made."""
    folder = file.parent
    if folder.exists() or not (sys.stdin is not None and sys.stdin.isatty()):
        return
    if input(f"{folder}: there is no such folder; make it? [Y/n] ").strip().lower() not in ("", "y", "yes"):
        raise UserError(f"{option} {file}: there is no such folder, {folder}")


def text_file(file: Path, text: str, option: str = "-o") -> None:
    """Write a text and its folder; UserError if that cannot be."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{option} {file}: cannot be written: {error.strerror}") from None
