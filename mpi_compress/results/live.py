"""Results while they are written: what several runs have come to, read again where a file has changed."""

import math
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import bits_text
from mpi_compress.results.files import part_of
from mpi_compress.results.reader import Run, read
from mpi_compress.results.writer import is_being_written

TO_DO, RUNNING, BROKEN_OFF = "to do", "running", "broken off"
HEADS = ("label", "status", "round", "loss", "up", "bits a second")


def status_of(run: Run) -> str:
    """A result's status; "broken off" if it says that it is being played, and no process writes it."""
    return BROKEN_OFF if run.status == RUNNING and not is_being_written(run.file) else run.status


@dataclass(frozen=True)
class Seen:
    """What a run has come to."""

    label: str
    status: str  # of its result; or "to do", "running", "broken off"
    run: Run | None  # None: nothing of it can be read yet

    @property
    def is_whole(self) -> bool:
        """True if its result is complete, and does not change any more."""
        return self.run is not None and self.run.file.suffix != ".part"

    @property
    def has_rows(self) -> bool:
        return self.run is not None and len(self.run.trace.get("round", ())) > 0

    @property
    def cells(self) -> list[str]:
        """Its row under `HEADS`."""
        if self.run is None or not self.has_rows:
            return [self.label, self.status, "", "", "", ""]
        trace, rate = self.run.trace, bits_a_second(self.run)
        rounds = tomllib.loads(self.run.attrs.get("job", "")).get("stop", {}).get("rounds")
        of = f" of {rounds:,}" if isinstance(rounds, int) else ""
        up = bits_text(float(trace["wire_bits_up"][-1])) if "wire_bits_up" in trace else ""
        speed = "" if math.isnan(rate) else bits_text(rate)
        return [self.label, self.status, f"{trace['round'][-1]:,}{of}", f"{trace['loss'][-1]:.6g}", up, speed]


def bits_a_second(run: Run) -> float:
    """Bits sent up in a second of the algorithm, over the last tenth of the rows; NaN if that is not known."""
    if "wire_bits_up" not in run.trace or len(run.trace["wire_bits_up"]) < 2:
        return math.nan
    bits, seconds = run.trace["wire_bits_up"], run.timing["seconds"]
    before = len(bits) - 1 - max(1, len(bits) // 10)
    time = float(seconds[-1] - seconds[before])
    return float(bits[-1] - bits[before]) / time if time > 0 else math.nan


class Live:
    """Runs that may be played at this moment.

    Args:
        find: the files of their results by now, with their labels, "" where the file says it; `part_of` them may exist instead.
    """

    def __init__(self, find: Callable[[], Mapping[Path, str]]):
        self._find = find
        self._read: dict[Path, tuple[tuple[float, int], Run]] = {}

    def look(self) -> list[Seen]:
        """What each run has come to by now."""
        return [self._seen(result, label) for result, label in self._find().items()]

    def _seen(self, result: Path, label: str) -> Seen:
        part = part_of(result)
        playing = not result.exists() and part.exists() and is_being_written(part)
        run = self._run(result) if result.exists() else self._run(part)
        label = label or (result.stem if run is None else run.label)
        if playing:
            return Seen(label, RUNNING, run)
        if run is None:
            return Seen(label, "cannot be read" if result.exists() else TO_DO, None)
        return Seen(label, BROKEN_OFF if run.status == RUNNING else run.status, run)

    def _run(self, file: Path) -> Run | None:
        """A result as it is now; as it was at the last look where its writer is in the middle of a flush; None without one."""
        with suppress(OSError, UserError):
            written = file.stat()
            mark = (written.st_mtime, written.st_size)
            if file not in self._read or self._read[file][0] != mark:
                self._read[file] = (mark, read(file))
        return self._read[file][1] if file in self._read else None
