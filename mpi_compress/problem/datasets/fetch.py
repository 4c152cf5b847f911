"""Sets of the LIBSVM collection, joined where a paper joins them and checked against their published shape; sets for networks. A
file comes over HTTP with progress, resumed where an earlier attempt broke off, complete or absent."""

import http.client
import os
import shutil
import tarfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from mpi_compress.core.errors import UserError, nearest
from mpi_compress.core.progress import Amount
from mpi_compress.problem.datasets import libsvm
from mpi_compress.problem.datasets.cache import cache_folder, hash_of, make_folder, replace
from mpi_compress.problem.datasets.known import KNOWN, PUBLISHED, how_to_get
from mpi_compress.problem.datasets.table import find_in

COLLECTION = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
Report = Callable[[str], None]  # takes lines about the progress
Progress = Callable[[int, int | None], None]  # bytes there, bytes in all
ATTEMPTS = 4  # in a row that bring nothing new
_CHUNK = 2**18
_TIMEOUT = 30.0
_WAIT = 1.0
_PAST_THE_END = 416  # what a server says of a range beyond the file


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
    found = whole.replace(folder / f"{name}{suffix}")
    _remove(*fetched)
    return found


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
    unpacked = find_in(name, [folder])
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


def download(url: str, file: Path, progress: Progress) -> None:
    """Fetch `url` to `file`; the bytes of an interrupted attempt stay beside it as .part, and the next one goes on from there.

    Raises:
        UserError: there is no such file at the server, it cannot be reached, breaks off again and again, or the disk is full.
    """
    part = file.with_name(file.name + ".part")
    make_folder(file.parent)
    failures, most = 0, _size(part)
    while True:
        try:
            _attempt(url, part, progress)
            break
        except urllib.error.HTTPError as error:
            problem: Any = f"the server says {error.code} {error.reason}"
            error.close()
            if error.code == _PAST_THE_END:
                part.unlink(missing_ok=True)  # the file has become shorter: begin again
            elif error.code < 500:
                raise UserError(f"{url}: {problem}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            problem = getattr(error, "reason", error)
        failures = 0 if _size(part) > most else failures + 1
        most = max(most, _size(part))
        if failures >= ATTEMPTS:
            there = f"; {_size(part)} bytes are there, and the same command goes on from there" if _size(part) else ""
            raise UserError(f"{url}: {problem}{there}")
        time.sleep(_WAIT * failures)
    part.replace(file)


def _attempt(url: str, part: Path, progress: Progress) -> None:
    have = _size(part)
    headers = {"User-Agent": "mpi-compress", "Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT) as reply:
        have = have if reply.status == http.client.PARTIAL_CONTENT else 0
        total = have + int(length) if (length := reply.headers.get("Content-Length")) else None
        with part.open("ab" if have else "wb") as out:
            while block := reply.read(_CHUNK):
                have += out.write(block)
                progress(have, total)
    if total is not None and have != total:
        raise ConnectionError(f"the connection ended at {have} of {total} bytes")


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
