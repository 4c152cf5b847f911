"""One file over HTTP: with progress, resumed where an earlier attempt broke off, complete or absent."""

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mpi_compress.core.errors import UserError
from mpi_compress.problem.datasets.cache import make_folder

ATTEMPTS = 4  # in a row that bring nothing new
_CHUNK = 2**18
_TIMEOUT = 30.0
_WAIT = 1.0
_PAST_THE_END = 416  # what a server says of a range beyond the file
Progress = Callable[[int, int | None], None]  # bytes there, bytes in all


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
