"""Begins the result of a run, or goes on with one, unless another process is writing it."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpi_compress.core.progress import print_line
from mpi_compress.core.signals import Interrupts
from mpi_compress.engine.checkpoint import Header, header_of, path_of, remove_checkpoint
from mpi_compress.engine.preparing import Prepared
from mpi_compress.exchange.ranks import Ranks
from mpi_compress.results.writer import BeingWritten, LostRows, Mark, Recorder, part_of

DONE = "done"
_LOOK_SECONDS = (0.1, 5.0)  # between two looks at what another process is writing: at first, and at most


@dataclass(frozen=True)
class How:
    """How runs are played."""

    ranks: Ranks
    fresh: bool
    quiet: bool
    force: bool
    interrupts: Interrupts
    shared: bool = False  # with other processes, as the trials of [tune] are: a run that another one plays is waited for


@dataclass(frozen=True)
class Begun:
    """A run that can be played, or why it is not; at rank 0."""

    recorder: Recorder | None = None
    header: Header | None = None  # of the checkpoint to go on from
    instead: str = ""  # DONE, or why waiting for another process ended


def begin_in_turn(file: Path, p: Prepared, attributes: Mapping[str, Any], schema: str, how: How) -> Begun:
    """Begin, or wait while another process plays the run, where runs are shared. At rank 0.

    Raises:
        BeingWritten: another process plays it, and runs are not shared.
    """
    pause, longest = _LOOK_SECONDS
    waited = False
    while True:
        if how.shared and file.exists() and (waited or not how.fresh):
            return Begun(instead=DONE)
        try:
            return _begin(file, p, attributes, schema, how)
        except BeingWritten:
            if not how.shared:
                raise
        if not waited and not how.quiet:
            print_line(f"{p.spec.label}: another process plays this trial; waiting for it")
        waited = True
        if wish := how.interrupts.wish():
            return Begun(instead=wish)
        time.sleep(pause)
        pause = min(1.5 * pause, longest)


def _begin(file: Path, p: Prepared, attributes: Mapping[str, Any], schema: str, how: How) -> Begun:
    """The result's recorder, and the checkpoint to go on from."""
    checkpoint = path_of(file)
    header: Header | None = None

    def saved() -> Mark | None:
        nonlocal header
        if not how.fresh and checkpoint.exists():
            header = header_of(checkpoint, p.run_id, schema)
            if header is None:
                print_line(f"{p.spec.label}: begins again, for {checkpoint} is damaged, or of another version")
        return header.mark if header else None

    try:
        recorder = Recorder(file, attributes, saved)
    except LostRows as lost:
        print_line(f"{p.spec.label}: begins again, for {part_of(file)} does not go with its checkpoint ({lost.__cause__})")
        recorder, header = Recorder(file, attributes), None
    if header is None:
        remove_checkpoint(checkpoint)
    elif not how.quiet:
        print_line(f"{p.spec.label}: goes on from round {header.k}")
    return Begun(recorder, header)
