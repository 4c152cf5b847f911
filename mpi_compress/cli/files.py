"""Files that commands write where -o says."""

from pathlib import Path

from mpi_compress.core.errors import UserError


def text_file(file: Path, text: str, option: str = "-o") -> None:
    """Write a text and its folder; UserError if that cannot be."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{option} {file}: cannot be written: {error.strerror}") from None
