"""Results while they are written: what several runs have come to, read again where a file has changed."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import bits_text
from mpi_compress.results.files import ASIDE, part_of, result_of, results_below
from mpi_compress.results.reader import Run, read
from mpi_compress.results.status import Status, status_of

HEADS = ("label", "status", "round", "loss", "up", "bits a second")


@dataclass(frozen=True)
class Seen:
    """What a run has come to."""

    label: str
    status: Status
    run: Run | None  # None: nothing of it can be read yet

    @property
    def cells(self) -> list[str]:
        """Its row under `HEADS`."""
        last = self.status.last
        if self.run is None or last is None:
            return [self.label, str(self.status.state), "", "", "", ""]
        rate = bits_a_second(self.run)
        rounds = self.run.written.get("stop", {}).get("rounds")
        of = f" of {rounds:,}" if isinstance(rounds, int) else ""
        up, speed = ("" if math.isnan(bits) else bits_text(bits) for bits in (last.up, rate))
        return [self.label, str(self.status.state), f"{last.round:,}{of}", f"{last.loss:.6g}", up, speed]


def bits_a_second(run: Run) -> float:
    """Bits sent up in a second of the algorithm, over the last tenth of the rows; NaN if that is not known."""
    if "wire_bits_up" not in run.trace or len(run.trace["wire_bits_up"]) < 2:
        return math.nan
    bits, seconds = run.trace["wire_bits_up"], run.timing["seconds"]
    before = len(bits) - 1 - max(1, len(bits) // 10)
    time = float(seconds[-1] - seconds[before])
    return float(bits[-1] - bits[before]) / time if time > 0 else math.nan


class Live:
    """Runs that may be under way at this moment. `find` gives the files of their results by now, with their labels, "" where the
    file says it; `part_of` them may exist instead."""

    def __init__(self, find: Callable[[], Mapping[Path, str]]):
        self._find = find
        self._read: dict[Path, tuple[tuple[float, int], Run]] = {}

    def look(self) -> list[Seen]:
        """What each run has come to by now."""
        return [self._seen(result, label) for result, label in self._find().items()]

    def _seen(self, result: Path, label: str) -> Seen:
        status = status_of(result, self._run)
        _, run = self._read.get(result if result.exists() else part_of(result), (None, None))
        return Seen(label or (result.stem if run is None else run.label), status, run)

    def _run(self, file: Path) -> Run:
        """A result as it is now, or as it was at the last look where its writer is in the middle of a flush."""
        try:
            written = file.stat()
            mark = (written.st_mtime, written.st_size)
            if file not in self._read or self._read[file][0] != mark:
                self._read[file] = (mark, read(file))
        except (OSError, UserError) as error:
            if file not in self._read:
                raise UserError(str(error)) from None
        return self._read[file][1]


def results_in(names: Sequence[str]) -> Mapping[Path, str]:
    """The results that are, or are begun, in files and folders, for `Live`."""
    places = [(place, place.is_dir()) for place in map(Path, names)]
    found = [file for place, is_folder in places for file in (results_below(place) if is_folder else [result_of(place) or place])]
    return {file: "" for file in found if file.suffix != ASIDE and (file.exists() or part_of(file).exists())}
