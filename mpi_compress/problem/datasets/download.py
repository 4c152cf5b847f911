"""One file over HTTP: with progress, resumed where an earlier attempt broke off, complete or absent."""

import http.client
import json
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from mpi_compress.core.errors import UserError
from mpi_compress.problem.datasets.cache import make_folder

ATTEMPTS = 4  # in a row that bring nothing new
_CHUNK = 2**18
_TIMEOUT = 30.0
_WAIT = 1.0
Progress = Callable[[int, int | None], None]  # bytes there, bytes in all


@dataclass
class _Partial:
    """What is known of a file that is being fetched; kept beside it, to check later that the server's file has not changed."""

    url: str
    total: int | None = None
    etag: str | None = None
    modified: str | None = None

    @classmethod
    def read(cls, note: Path, url: str) -> "_Partial":
        try:
            kept = cls(**json.loads(note.read_text()))
        except (OSError, ValueError, TypeError):
            kept = cls("")
        return kept if kept.url == url else cls(url)


class _Broken(Exception):
    """The connection ended before the file did."""


def download(url: str, file: Path, progress: Progress) -> None:
    """Fetch `url` to `file`; the bytes of an interrupted attempt stay beside it as .part, and the next one goes on from there.

    Raises:
        UserError: there is no such file at the server, it cannot be reached, breaks off again and again, or the disk is full.
    """
    part, note = file.with_name(file.name + ".part"), file.with_name(file.name + ".part.json")
    make_folder(file.parent)
    known = _Partial.read(note, url)
    if known == _Partial(url):
        part.unlink(missing_ok=True)
    failures, most = 0, _size(part)
    while True:
        try:
            _attempt(url, part, note, known, progress)
            break
        except urllib.error.HTTPError as error:
            with error:
                problem: Any = f"the server says {error.code} {error.reason}"
                if error.code < 500:
                    raise UserError(f"{url}: {problem}") from None
        except UserError:
            raise
        except (_Broken, OSError, http.client.HTTPException, ValueError) as error:
            problem = getattr(error, "reason", error)
        failures = 0 if _size(part) > most else failures + 1
        most = max(most, _size(part))
        if failures >= ATTEMPTS:
            of = f" of {known.total}" if known.total is not None else ""
            there = f"; {_size(part)}{of} bytes are there, and the same command goes on from there" if _size(part) else ""
            raise UserError(f"{url}: {problem}{there}")
        time.sleep(_WAIT * failures)
    part.replace(file)
    note.unlink(missing_ok=True)


def _attempt(url: str, part: Path, note: Path, known: _Partial, progress: Progress) -> None:
    have = _size(part)
    if known.total is not None and have > known.total:
        part.unlink()
        have = 0
    if have and have == known.total:
        return
    headers = {"User-Agent": "mpi-compress", "Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": known.etag or known.modified or ""}
    asked = urllib.request.Request(url, headers={name: text for name, text in headers.items() if text})
    try:
        reply = urllib.request.urlopen(asked, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not have:
            raise
        error.close()
        part.unlink()  # the file has become shorter: begin again
        raise _Broken("the file has changed at the server") from None
    with reply:
        total, goes_on = _announced(reply, have)
        if goes_on and known.total is not None and total != known.total:
            part.unlink()
            raise _Broken("the file has changed at the server")
        have = have if goes_on else 0
        etag = reply.headers.get("ETag") or ""
        known.etag = None if etag.startswith("W/") else etag or None  # a weak one does not promise equal bytes
        known.total, known.modified = total, reply.headers.get("Last-Modified")
        note.write_text(json.dumps(asdict(known)))
        if total is not None and total - have > (free := shutil.disk_usage(part.parent).free):
            raise UserError(f"{part.parent}: {total - have} bytes are to come, and {free} are free")
        with part.open("ab" if goes_on else "wb") as out:
            have = _copy(reply, out, have, total, progress)
    if total is not None and have != total:
        raise _Broken(f"the connection ended at {have} of {total} bytes")


def _announced(reply: Any, have: int) -> tuple[int | None, bool]:
    """The whole file's length, as the server says, and whether the reply goes on from what is there."""
    length, goes_on = reply.headers.get("Content-Length", ""), reply.status == 206
    if goes_on:
        unit, _, rest = reply.headers.get("Content-Range", "").partition(" ")
        span, _, length = rest.partition("/")
        if unit != "bytes" or span.split("-")[0] != str(have):
            raise _Broken("the server sends another part of the file than was asked for")
    return (int(length) if length.isdigit() else None), goes_on


def _copy(reply: Any, out: BinaryIO, have: int, total: int | None, progress: Progress) -> int:
    while True:
        try:
            block = reply.read(_CHUNK)
        except http.client.IncompleteRead as error:
            out.write(error.partial)
            raise _Broken(f"the connection ended at {have + len(error.partial)} bytes") from None
        if not block:
            return have
        try:
            out.write(block)
        except OSError as error:
            raise UserError(f"{out.name}: cannot be written: {error.strerror}") from None
        have += len(block)
        progress(have, total)


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
