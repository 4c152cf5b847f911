"""Sets of the LIBSVM collection, joined where a paper joins them and checked against their published shape; sets for networks."""

import bz2
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tqdm import tqdm

from mpi_compress.core.errors import UserError, nearest
from mpi_compress.problem.datasets import libsvm
from mpi_compress.problem.datasets.cache import cache_folder, sha256
from mpi_compress.problem.datasets.download import download
from mpi_compress.problem.datasets.known import KNOWN, how_to_get
from mpi_compress.problem.datasets.published import PUBLISHED, find_published, is_digest_of, unpack

COLLECTION = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"


def collection() -> str:
    """Where sets are fetched from: $MPI_COMPRESS_DATA_URL, or the LIBSVM collection."""
    return os.environ.get("MPI_COMPRESS_DATA_URL", COLLECTION).rstrip("/") + "/"


def get(name: str, url: str | None, quiet: bool, report: Callable[[str], None]) -> Path:
    """The file of a set in the user's cache folder, fetched if it is not there.

    Args:
        url: the collection's address; None for the usual one.
        report: takes lines about the progress.

    Raises:
        UserError: no such set, a server that cannot give it, or content that differs from what was published or fetched before.
    """
    gettable = {k: v for k, v in KNOWN.items() if v.files}
    if name not in gettable and not how_to_get(name):
        raise UserError(f"data get: {nearest(name, {*gettable, *(k for k in PUBLISHED if how_to_get(k))}, 'set')}")
    if name in PUBLISHED:
        return _get_published(name, url or os.environ.get("MPI_COMPRESS_DATA_URL"), quiet, report)
    files, folder = gettable[name].files, cache_folder() / "sets"
    suffix = Path(files[0]).suffix
    target, sums = folder / (name + (suffix if suffix in libsvm.SUFFIXES else "")), folder / f"{name}.sha256"
    before = sums.read_text()[:64].strip() if sums.exists() else ""
    if before and target.exists() and before == sha256(target):
        report(f"{name}: there already, {target}")
        return target
    base = (url or collection()).rstrip("/") + "/"
    fetched = [_downloaded(file, base, folder / "incoming", quiet, report) for file in files]
    whole = fetched[0]
    if len(fetched) > 1:
        whole = folder / "incoming" / target.name
        _join(fetched, whole)
    try:
        report(f"{name}: checking N and d")
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


def _get_published(name: str, url: str | None, quiet: bool, report: Callable[[str], None]) -> Path:
    """The file to read of a set that is published as an archive, or as compressed files in one folder."""
    folder, known = cache_folder() / "sets", PUBLISHED[name]
    found = find_published(name, [folder])
    if found is not None:
        report(f"{name}: there already, {found}")
        return found
    base, _, archive = known.source.rpartition("/")
    base = (url or base).rstrip("/") + "/"
    names = (archive,) if archive else tuple(f"{file}.gz" for file in known.files)
    for one, digest in zip(names, known.digests, strict=True):
        file = _downloaded(one, base, folder / "incoming", quiet, report)
        if not is_digest_of(file, digest):
            _remove(file)
            raise UserError(f"{base}{one}: is not what was published, whose {digest.replace(':', ' is ')}")
        unpack(file, [m for p in PUBLISHED.values() if p.source == known.source for m in p.files] if archive else [one], folder)
        _remove(file)
    unpacked = find_published(name, [folder])
    assert unpacked is not None
    return unpacked


def _downloaded(name: str, base: str, folder: Path, quiet: bool, report: Callable[[str], None]) -> Path:
    file = folder / name
    if not file.exists():
        with _Transfer(name, quiet, report) as progress:
            download(base + name, file, progress)
    return file


def _remove(*files: Path) -> None:
    for file in files:
        file.unlink(missing_ok=True)


def _join(parts: list[Path], whole: Path) -> None:
    """Concatenate compressed files, which is a compressed file again, with a line end between in case the first lacks it."""
    with whole.open("wb") as out:
        for i, part in enumerate(parts):
            if i and part.suffix == ".bz2":
                out.write(bz2.compress(b"\n"))
            with part.open("rb") as file:
                shutil.copyfileobj(file, out, 2**20)


def _verified(name: str, file: Path, base: str) -> str:
    """SHA-256 of a file whose N and d are as published; UserError if they are not, or it is no LIBSVM text."""
    samples = largest = 0
    try:
        for _, a, labels in libsvm.read_blocks(file):
            samples += labels.size
            largest = max(largest, int(a.indices.max()) + 1 if a.nnz else 0)
    except UserError as error:
        raise UserError(
            f"{base}: what came for {name} is no LIBSVM text: {str(error).removeprefix(str(file)).lstrip(': ')}"
        ) from None
    mismatch = KNOWN[name].mismatch(samples, largest)
    if mismatch:
        raise UserError(f"{base}: what came for {name} is not what was published: {mismatch}")
    return sha256(file)


class _Transfer:
    """Shows the progress of a download: a bar on a terminal, otherwise a line a minute."""

    def __init__(self, label: str, quiet: bool, report: Callable[[str], None]):
        self._label, self._report = label, report
        self._bar = tqdm(desc=label, unit="B", unit_scale=True, disable=quiet, leave=False) if sys.stderr.isatty() else None
        self._reported = time.monotonic()

    def __enter__(self) -> "_Transfer":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, have: int, total: int | None) -> None:
        if self._bar is not None:
            self._bar.total = total
            self._bar.update(have - self._bar.n)
        elif time.monotonic() - self._reported > 60:
            self._reported = time.monotonic()
            self._report(f"{self._label}: {have / 1e6:.0f}{f' of {total / 1e6:.0f}' if total else ''} MB")
