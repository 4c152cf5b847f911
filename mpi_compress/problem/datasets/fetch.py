"""Sets of the LIBSVM collection, joined where a paper joins them and checked against their published shape; sets for networks."""

import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mpi_compress.core.errors import UserError, nearest
from mpi_compress.core.progress import Amount
from mpi_compress.problem.datasets import libsvm
from mpi_compress.problem.datasets.cache import cache_folder, hash_of, replace
from mpi_compress.problem.datasets.download import download
from mpi_compress.problem.datasets.known import KNOWN, PUBLISHED, find_published, how_to_get

COLLECTION = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
Report = Callable[[str], None]  # takes lines about the progress


def get(name: str, url: str | None, quiet: bool, report: Report) -> Path:
    """The file of a set in the user's cache folder, fetched if it is not there.

    Args:
        url: the collection's address; None: $MPI_COMPRESS_DATA_URL, or where the set is published.

    Raises:
        UserError: no such set, a server that cannot give it, or content that differs from what was published or fetched before.
    """
    fetched = [each for each in (*KNOWN, *PUBLISHED) if how_to_get(each)]
    if name in (*KNOWN, *PUBLISHED) and name not in fetched:
        others = "".join(f"; {each}, which is fetched, is another set" for each in fetched if each.startswith(name))
        raise UserError(f"data get: {name} is not fetched: put its file into ./data or the folder $MPI_COMPRESS_DATA{others}")
    if name not in fetched:
        raise UserError(f"data get: {nearest(name, fetched, 'set')}")
    url, folder = url or os.environ.get("MPI_COMPRESS_DATA_URL"), cache_folder() / "sets"
    found = find_published(name, [folder]) if name in PUBLISHED else _kept(name, folder)
    if found is not None:
        report(f"{name}: there already, {found}")
        return found
    return (_get_published if name in PUBLISHED else _get_known)(name, url, folder, quiet, report)


def _kept(name: str, folder: Path) -> Path | None:
    """The file of a set of the collection, if it is as it was fetched."""
    target, sums = _places(name, folder)
    return target if target.exists() and sums.exists() and sums.read_text()[:64] == hash_of(target) else None


def _places(name: str, folder: Path) -> tuple[Path, Path]:
    """Where a set of the collection is kept, and its SHA-256."""
    suffix = Path(KNOWN[name].files[0]).suffix
    return folder / (name + (suffix if suffix in libsvm.SUFFIXES else "")), folder / f"{name}.sha256"


def _get_known(name: str, url: str | None, folder: Path, quiet: bool, report: Report) -> Path:
    (target, sums), files = _places(name, folder), KNOWN[name].files
    before = sums.read_text()[:64].strip() if sums.exists() else ""
    base = (url or COLLECTION).rstrip("/") + "/"
    fetched = [_downloaded(file, base, folder, quiet) for file in files]
    whole = fetched[0]
    if len(fetched) > 1:
        whole = folder / "incoming" / target.name
        libsvm.join(fetched, whole)
    try:
        report(f"{name}: checking N, d and nonzeros")
        digest = _verified(name, whole, base)
        if before not in ("", digest):
            raise UserError(f"{base}{files[0]}: is another file than before, SHA-256 {digest}; if that is right, remove {sums}")
    except UserError:
        _remove(*fetched, whole)
        raise
    os.replace(whole, target)
    sums.write_text(f"{digest}  {target.name}\n")
    _remove(*fetched)
    return target


def _remove(*files: Path) -> None:
    for file in files:
        file.unlink(missing_ok=True)


def _get_published(name: str, url: str | None, folder: Path, quiet: bool, report: Report) -> Path:
    """Fetch a set that is published as an archive, or as compressed files in one folder; returns the file to read."""
    known = PUBLISHED[name]
    base, _, archive = known.source.rpartition("/")
    base = (url or base).rstrip("/") + "/"
    names = (archive,) if archive else tuple(f"{file}.gz" for file in known.files)
    for one, digest in zip(names, known.digests, strict=True):
        file = _downloaded(one, base, folder, quiet)
        algorithm, _, wanted = digest.partition(":")
        if hash_of(file, algorithm) != wanted:
            _remove(file)
            raise UserError(f"{base}{one}: is not what was published, whose {algorithm} is {wanted}")
        _unpack(file, [m for p in PUBLISHED.values() if p.source == known.source for m in p.files] if archive else [one], folder)
        _remove(file)
    unpacked = find_published(name, [folder])
    assert unpacked is not None
    return unpacked


def _downloaded(name: str, base: str, folder: Path, quiet: bool) -> Path:
    file = folder / "incoming" / name
    if not file.exists():
        with Amount(name, quiet) as progress:
            download(base + name, file, progress)
    return file


def _verified(name: str, file: Path, base: str) -> str:
    """SHA-256 of a file whose N, d and nonzeros are as published; UserError if they are not, or it is no LIBSVM text."""
    try:
        counts = libsvm.counts(file)
    except UserError as error:
        why = str(error).removeprefix(str(file)).lstrip(": ")
        raise UserError(f"{base}: what came for {name} is no LIBSVM text: {why}") from None
    if mismatch := KNOWN[name].mismatch(*counts):
        raise UserError(f"{base}: what came for {name} is not what was published: {mismatch}")
    return hash_of(file)


def _unpack(file: Path, members: list[str], folder: Path) -> None:
    """Write members of a .zip or .tar.gz below a folder, or any other file as the one member; UserError if one is not there."""

    def write(member: str, source: Any) -> None:
        with source:
            replace(folder / member, lambda part: part.write_bytes(source.read()))

    try:
        if file.suffix == ".zip":
            with zipfile.ZipFile(file) as archive:
                for member in members:
                    write(member, archive.open(member))
        elif file.name.endswith(".tar.gz"):
            with tarfile.open(file) as tar:
                for member in members:
                    write(member, tar.extractfile(member))
        else:
            write(members[0], file.open("rb"))
    except (zipfile.BadZipFile, tarfile.TarError, KeyError, OSError) as error:
        raise UserError(f"{file}: cannot be unpacked: {error}") from None
