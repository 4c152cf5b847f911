"""Results in an archive of `mpi-compress archive`, which are read where they are: `records.zip/results/records/a1a/*.h5`."""

import hashlib
import io
import struct
import zipfile
import zlib
from fnmatch import fnmatchcase
from pathlib import Path

from mpi_compress.core.errors import UserError, system_text

SUMS = "SHA256SUMS"
LARGEST = 2**32  # bytes of all members together
NO_ZIP = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, KeyError, ValueError, RuntimeError)


def inside(path: str | Path) -> tuple[Path, str] | None:
    """The archive that a path leads into, and the rest of the path, "" for the archive itself; None if it leads into none."""
    whole = Path(path)
    places = (place for place in (whole, *whole.parents) if place.suffix == ".zip" and place.is_file())
    return next(((place, "" if place == whole else whole.relative_to(place).as_posix()) for place in places), None)


def members(path: str | Path) -> list[Path]:
    """The results in an archive, in one of its folders, or that match a pattern, as paths; [] if the path leads into none."""
    if (found := inside(path)) is None:
        return []
    file, rest = found
    try:
        with zipfile.ZipFile(file) as packed:
            names = [name for name in packed.namelist() if name.endswith(".h5")]
    except (OSError, *NO_ZIP) as error:
        raise UserError(f"{file}: is no archive of `mpi-compress archive`: {system_text(error)}") from None
    chosen = [name for name in names if rest in ("", name) or name.startswith(f"{rest}/") or fnmatchcase(name, rest)]
    if not chosen:
        raise UserError(f"{path}: there is no such result in {file}")
    return [file / name for name in chosen]


def content(path: Path) -> io.BytesIO | None:
    """A member's bytes, which have the checksum that the archive says; None for a path that leads into none. UserError if not."""
    if (found := inside(path)) is None or not found[1]:
        return None
    try:
        with zipfile.ZipFile(found[0]) as packed:
            if packed.getinfo(found[1]).file_size > LARGEST:
                raise ValueError(f"it has more than {LARGEST:,} bytes")
            data, sums = packed.read(found[1]), packed.read(SUMS).decode().splitlines()
        if f"{hashlib.sha256(data).hexdigest()}  {found[1]}" not in sums:
            raise ValueError(f"it has another checksum than {SUMS} says")
    except (OSError, *NO_ZIP) as error:
        raise UserError(f"{path}: is damaged: {system_text(error)}") from None
    return io.BytesIO(data)
