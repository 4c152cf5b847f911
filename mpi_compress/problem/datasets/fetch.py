"""Sets of the LIBSVM collection, joined where a paper joins them and checked against their published shape; sets for networks."""

import os
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from mpi_compress.core.errors import UserError, nearest
from mpi_compress.core.progress import Amount
from mpi_compress.problem.datasets import libsvm
from mpi_compress.problem.datasets.cache import cache_folder, hash_of, replace
from mpi_compress.problem.datasets.download import download
from mpi_compress.problem.datasets.known import KNOWN, PUBLISHED, find_published, how_to_get
from mpi_compress.problem.datasets.table import find_in

COLLECTION = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
Report = Callable[[str], None]  # takes lines about the progress


def get(name: str, url: str | None, quiet: bool, report: Report) -> Path:
    """The file of a set in the user's cache folder, fetched if it is not there.

    Args:
        url: the collection's address; None: $MPI_COMPRESS_DATA_URL, or where the set is published.

    Raises:
        UserError: no such set, a server that cannot give it, or content that differs from what was published.
    """
    fetched = [each for each in (*KNOWN, *PUBLISHED) if how_to_get(each)]
    if name in (*KNOWN, *PUBLISHED) and name not in fetched:
        raise UserError(f"data get: {name} is not fetched: put its file into ./data or the folder $MPI_COMPRESS_DATA")
    if name not in fetched:
        raise UserError(f"data get: {nearest(name, fetched, 'set')}")
    url, folder = url or os.environ.get("MPI_COMPRESS_DATA_URL"), cache_folder() / "sets"
    found = find_in(name, [folder])
    if found is not None:
        report(f"{name}: there already, {found}")
        return found
    return (_get_published if name in PUBLISHED else _get_known)(name, url, folder, quiet, report)


def _get_known(name: str, url: str | None, folder: Path, quiet: bool, report: Report) -> Path:
    base = (url or f"{COLLECTION}/{KNOWN[name].folder}").rstrip("/") + "/"
    fetched = [_downloaded(file, base, folder, quiet) for file in KNOWN[name].files]
    whole = fetched[0]
    suffix = whole.suffix if whole.suffix in libsvm.SUFFIXES else ""
    if len(fetched) > 1:
        whole = folder / "incoming" / f"{name}{suffix}"
        replace(whole, lambda part: libsvm.join(fetched, part))
    try:
        report(f"{name}: checking N, d and nonzeros")
        _verify(name, whole, base)
    except UserError:
        _remove(*fetched, whole)
        raise
    os.replace(whole, folder / f"{name}{suffix}")
    _remove(*fetched)
    return folder / f"{name}{suffix}"


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
        if archive:
            _unpack(file, [m for p in PUBLISHED.values() if p.source == known.source for m in p.files], folder)
            _remove(file)
        else:
            os.replace(file, folder / one)
    unpacked = find_published(name, [folder])
    assert unpacked is not None
    return unpacked


def _downloaded(name: str, base: str, folder: Path, quiet: bool) -> Path:
    file = folder / "incoming" / name
    if not file.exists():
        with Amount(name, quiet) as progress:
            download(base + name, file, progress)
    return file


def _verify(name: str, file: Path, base: str) -> None:
    """UserError where N, d and nonzeros of a file are not as published, or it is no LIBSVM text."""
    try:
        counts = libsvm.counts(file)
    except UserError as error:
        why = str(error).removeprefix(str(file)).lstrip(": ")
        raise UserError(f"{base}: what came for {name} is no LIBSVM text: {why}") from None
    if mismatch := KNOWN[name].mismatch(*counts):
        raise UserError(f"{base}: what came for {name} is not what was published: {mismatch}")


def _unpack(file: Path, members: list[str], folder: Path) -> None:
    """Write members of a .zip or .tar.gz below a folder; UserError if one is not there."""
    is_zip = file.suffix == ".zip"
    try:
        with zipfile.ZipFile(file) if is_zip else tarfile.open(file) as archive:
            opened: Any = getattr(archive, "open" if is_zip else "extractfile")
            for member in members:
                replace(folder / member, partial(_copy, opened(member)))
    except (zipfile.BadZipFile, tarfile.TarError, KeyError, OSError) as error:
        raise UserError(f"{file}: cannot be unpacked: {error}") from None


def _copy(source: BinaryIO, to: Path) -> None:
    with source, to.open("wb") as out:
        shutil.copyfileobj(source, out)
