"""Where parsed sets, optima and downloads are kept, and how a file gets there: whole or not at all."""

import contextlib
import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import platformdirs

from mpi_compress.core import seals
from mpi_compress.core.errors import UserError, system_text
from mpi_compress.core.progress import print_line


def cache_folder() -> Path:
    """Where parsed sets, optima and downloads are kept: $MPI_COMPRESS_CACHE, or the user's cache folder."""
    given = os.environ.get("MPI_COMPRESS_CACHE")
    return Path(given) if given else platformdirs.user_cache_path("mpi_compress")


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Make a folder in which the block writes; UserError if it cannot be written to, or the disk is full."""
    try:
        make_folder(folder)
        yield
    except OSError as error:
        other = "; set MPI_COMPRESS_CACHE to a folder that can" if cache_folder() in folder.parents else ""
        raise UserError(f"{folder}: cannot be written to: {system_text(error)}{other}") from None


def replace(file: Path, fill: Callable[[Path], object]) -> None:
    """Write `file` whole or not at all: `fill(part)` writes beside it, then the part takes its name; UserError if it cannot.
    Several threads, processes and hosts may do so at once: each has a part of its own, and the last one to finish stays. A file in
    the cache can be read and written by those who can read and write its folder, so that users can share a cache."""
    file = file.resolve() if file.is_symlink() else file
    if file.exists() and not file.is_file():
        raise UserError(f"{file}: is no plain file, and is not replaced by one")
    part = file.with_name(f"{file.name}.{secrets.token_hex(6)}.part")
    try:
        with writing(file.parent):
            fill(part)
            if cache_folder() in file.parents:
                part.chmod(file.parent.stat().st_mode & 0o666)
            os.replace(part, file)
    finally:
        part.unlink(missing_ok=True)


def keep(file: Path, fill: Callable[[Path], object]) -> None:
    """`replace` a file of the cache, sealed by its name, which says what it was made from; a line tells of a damaged one."""
    if file.exists() and not is_kept(file):
        print_line(f"{file}: invalid cache file; rebuilding it")

    def sealed(part: Path) -> None:
        fill(part)
        seals.seal(part, file.name)

    replace(file, sealed)


def is_kept(file: Path) -> bool:
    """True if a file is there as `keep` has written it."""
    try:
        return bool(seals.holds(file, file.name))
    except OSError:
        return False


def kept(file: Path, find: Callable[[], Any]) -> Any:
    """What a file keeps as JSON; found and written to it, where it is not there or damaged."""
    with contextlib.suppress(OSError):
        if (text := seals.content(file, file.name)) is not None:
            return json.loads(text)
    found = find()
    with contextlib.suppress(UserError):  # it is found again
        keep(file, lambda part: part.write_text(json.dumps(found)))
    return found


def make_folder(folder: Path) -> None:
    """Make a folder if it is not there; one in the cache gets the permissions of the cache's own folder."""
    if folder.is_dir():
        return
    cache = cache_folder()
    if cache not in folder.parents:
        folder.mkdir(parents=True, exist_ok=True)
        return
    make_folder(folder.parent)
    with contextlib.suppress(FileExistsError):  # somebody else was faster
        folder.mkdir()
        folder.chmod(stat.S_IMODE(cache.stat().st_mode))


def hash_of(file: Path, algorithm: str = "sha256") -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, algorithm).hexdigest()


def digest(file: Path) -> str:
    """SHA-256 of a file's bytes, kept in the cache by the file's path, size and time of change."""
    try:
        stat = file.stat()
        stamp = f"{file.resolve()} {stat.st_size} {stat.st_mtime_ns}".encode(errors="surrogateescape")
        note = cache_folder() / "digests" / f"{hashlib.sha256(stamp).hexdigest()[:24]}-digest"
        return kept(note, lambda: hash_of(file))
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None


def safe(name: str) -> str:
    """A name as it may stand in a file name of any system."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", name)
