"""Results of one run that several jobs have: they are one file under several names."""

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import h5py

from mpi_compress.core import seals
from mpi_compress.results import checksums
from mpi_compress.results.reader import attributes


def by_run_id(out: Path) -> dict[str, list[Path]]:
    """All finished results below a folder, by the run id at the end of their names."""
    found: dict[str, list[Path]] = {}
    for file in sorted(out.rglob("*-*.h5")) if out.is_dir() else ():
        found.setdefault(file.stem.rpartition("-")[2], []).append(file)
    return found


def link(other: Path, file: Path, attrs: Mapping[str, str]) -> None:
    """Give a finished result a second name; where some of its attributes should differ, such as its label, a copy has them.

    `attrs`: what they should be; "": the result should have none of that name. OSError: it cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    own = attributes(other)
    changed = {name: value for name, value in attrs.items() if own.get(name, "") != value}
    if not changed:
        with suppress(OSError):  # on file systems without hard links it is copied
            os.link(other, file)
            return
    new = file.with_name(file.name + ".new")
    new.unlink(missing_ok=True)  # it may be a link
    shutil.copyfile(other, new)
    if changed:
        _change(new, changed)
    os.replace(new, file)


def _change(file: Path, changed: Mapping[str, str]) -> None:
    """Write other attributes, and their checksums where the file has any."""
    with h5py.File(file, "r+", locking=False) as h5:
        stored = json.loads(h5.attrs.get(checksums.ATTRIBUTE, "null"))
        for name, value in changed.items():
            if value:
                h5.attrs[name] = value
            else:
                del h5.attrs[name]
        if stored is None:
            return
        kept = {name: value for name, value in stored["attributes"].items() if name not in changed}
        stored["attributes"] = kept | checksums.of_attributes({name: value for name, value in changed.items() if value})
        h5.attrs[checksums.ATTRIBUTE] = json.dumps(stored)
    seals.seal(file)
