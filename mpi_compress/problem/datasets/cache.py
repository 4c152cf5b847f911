"""Where parsed sets, optima and downloads are kept, and how a file gets there: whole or not at all."""

import hashlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path

import platformdirs

from mpi_compress.core.errors import UserError


def cache_folder() -> Path:
    """Where parsed sets, optima and downloads are kept: $MPI_COMPRESS_CACHE, or the user's cache folder."""
    given = os.environ.get("MPI_COMPRESS_CACHE")
    return Path(given) if given else platformdirs.user_cache_path("mpi_compress")


def replace(file: Path, fill: Callable[[Path], object]) -> None:
    """Write `file` whole or not at all: `fill(part)` writes beside it, then the part takes its name; UserError if it cannot.

    Several threads, processes and hosts may do so at once: each has a part of its own, and the last one to finish stays.
    """
    file = file.resolve() if file.is_symlink() else file
    if file.exists() and not file.is_file():
        raise UserError(f"{file}: is no plain file, and is not replaced by one")
    part = file.with_name(f"{file.name}.{secrets.token_hex(6)}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fill(part)
        os.replace(part, file)
    except OSError as error:
        raise UserError(f"{file.parent}: cannot be written to: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)


def sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def safe(name: str) -> str:
    """A name as it may stand in a file name."""
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in name)
