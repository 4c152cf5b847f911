"""The process that `probing` asks: it reads files, and a damaged one may crash it."""

import json
import sys
from contextlib import suppress
from pathlib import Path

import h5py

from mpi_compress.core.errors import UserError
from mpi_compress.results import hdf5
from mpi_compress.results.reader import GROUPS, TIGHTEST, read_here


def answer() -> None:
    """Answer, for each name of a file on the standard input, why it cannot be read, "" if it can."""
    for line in sys.stdin:
        path = Path(json.loads(line))
        with suppress(Exception), h5py.File(path, "r", locking=False) as h5:  # what `read_here` would not reach, others may
            for group in GROUPS:
                with suppress(Exception):
                    hdf5.arrays(hdf5.within(h5, group), TIGHTEST * path.stat().st_size)
        complaint = ""
        try:
            read_here(path)
        except UserError as error:
            complaint = str(error)
        print(json.dumps(complaint), flush=True)
