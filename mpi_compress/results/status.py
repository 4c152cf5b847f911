"""A status says what a run has come to: state, reason, last row, SLURM's task. Commands and pages print it and decide nothing."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from mpi_compress.core.errors import UserError
from mpi_compress.results.files import checkpoint_of, part_of, refuse_no_file
from mpi_compress.results.locks import is_being_written
from mpi_compress.results.reader import COPY_OF, Run, read

ROUNDING = 1e-15  # of f, below which rounding decides f − f*
_LONG = 60.0  # seconds without a row that a plan tells


class State(Enum):
    """The states of a run, in the order in which a page counts them. Each has the word of result files and tables, the class of a
    page's style, and where these differ the word in a plan and the word on a report's page."""

    COMPLETE = "complete", "holds", "done"
    DIVERGED = "diverged", "fails"
    FAILED = "failed", "fails"
    STOPPED = "stopped"
    BROKEN_OFF = "broken off"  # its process has ended
    UNREADABLE = "cannot be read", "open", "", "not run"
    REFUSED = "would be refused", "open", "", "not run"
    LACKING = "not run"  # its data are not here
    TO_DO = "to do", "open", "", "not run"
    RUNNING = "running"
    QUEUED = "queued"
    UNKNOWN = "not known"  # SLURM does not answer

    def __init__(self, word: str, look: str = "open", planned: str = "", shown: str = ""):
        self.word, self.look, self.planned, self.shown = word, look, planned or word, shown or word

    def __str__(self) -> str:
        return self.word

    @property
    def has_ended(self) -> bool:
        """True if the run has a result that does not change any more."""
        return self in (State.COMPLETE, State.DIVERGED)


@dataclass(frozen=True)
class LastRow:
    """The last row of a result; NaN where it lacks a column."""

    round: int
    loss: float
    gap: float  # f − f*
    up: float  # bits on the wire
    down: float
    seconds: float  # of the algorithm's clock
    model_seconds: float = math.nan  # of the clock of [time], where it has one

    @classmethod
    def of(cls, run: Run) -> "LastRow | None":
        """None where there is no row."""
        if not run.rows:
            return None

        columns: dict[str, Any] = {**run.trace, **run.timing, "suboptimality": [last_gap(run)]}
        names = ("loss", "suboptimality", "wire_bits_up", "wire_bits_down", "seconds", "model_seconds")
        return cls(int(run.trace["round"][-1]), *(float(columns[name][-1]) if name in columns else math.nan for name in names))

    def __str__(self) -> str:
        return f"round {self.round}, loss {self.loss:.6g}"


def last_gap(run: Run) -> float:
    """f − f* at the end of a run; 0 where it is below the accuracy of f*, or lost in rounding."""
    gap = float(run.trace.get("suboptimality", [math.nan])[-1])
    return 0.0 if abs(gap) <= accuracy_of_gaps(run) else gap


def accuracy_of_gaps(run: Run) -> float:
    """What f − f* is known to near the optimum: the accuracy of f*, or rounding of the least loss."""
    return max(ROUNDING * float(np.abs(run.trace["loss"]).min()), run.attrs.get("f_star_accuracy", 0.0))


@dataclass(frozen=True)
class Status:
    """What a run has come to."""

    state: State
    reason: str = ""
    last: LastRow | None = None
    task: str = ""  # SLURM's task that executes the run, or will
    silence: float = 0.0  # seconds since an unfinished result was written
    log: Path | None = None  # what a task that failed has printed
    said: str = ""  # SLURM's own word, where it is more exact than the state's
    copy_of: str = ""  # the id of the run, with another seed, whose result this one's is a copy of, or will be

    @property
    def details(self) -> list[str]:
        """What is known besides the state."""
        parts = [self.reason, f"SLURM {self.task}" if self.task else "", str(self.last or ""), self._silence]
        return [part for part in [*parts, f"all of it: {self.log}" if self.log else ""] if part]

    def __str__(self) -> str:
        """The status as `plan` prints it: "running, SLURM 17_3 (round 4, loss 0.3), no record for 5 min"."""
        why = (f" ({self.reason})" if self.task else f": {self.reason}") if self.reason else ""
        task = f", SLURM {self.task}" if self.task else ""
        reached = f" ({self.last})" if self.last and not self.state.has_ended else ""
        silence = f", {self._silence}" if self._silence else ""
        log = f" (all of it: {self.log})" if self.log else ""
        copied = f", a copy of {self.copy_of}" if self.copy_of else ""
        return f"{self.said or self.state.planned}{why}{task}{reached}{silence}{log}{copied}"

    @property
    def _silence(self) -> str:
        return f"no record for {self.silence / 60:.0f} min" if self.state is State.RUNNING and self.silence >= _LONG else ""


def state_of(attrs: Mapping[str, Any], is_written: bool) -> State:
    """The state that a result's attributes tell; `is_written`: a process is writing it."""
    word = State.RUNNING.word if is_written else attrs.get("status")
    found = next((state for state in State if state.word == word), State.UNREADABLE)
    return State.BROKEN_OFF if found is State.RUNNING and not is_written else found


def status_of(result: Path, read: Callable[[Path], Run] = read) -> Status:
    """What the files of a result tell, by the name that it has, or would have once it is complete; `read` raises a UserError."""
    part = part_of(result)
    try:
        for file in (result, part, checkpoint_of(result)):
            refuse_no_file(file)
        if result.exists():
            return status_of_run(read(result))
    except UserError as error:
        return Status(State.UNREADABLE, str(error))
    if not part.exists():
        return Status(State.TO_DO)
    try:
        return status_of_run(read(part))
    except UserError:  # there is nothing yet, or it has just been completed
        found = State.RUNNING if is_being_written(part) else State.BROKEN_OFF if part.exists() else State.TO_DO
        return Status(found, silence=_since(part))


def status_of_run(run: Run) -> Status:
    """What a result that was read tells."""
    is_part = run.file.suffix == ".part"
    state = state_of(run.attrs, is_part and is_being_written(run.file))
    reason = "" if state is State.RUNNING else str(run.attrs.get("reason", "")).removeprefix("stopped ")
    copy_of = str(run.attrs.get(COPY_OF, ""))
    return Status(state, reason, LastRow.of(run), silence=_since(run.file) if is_part else 0.0, copy_of=copy_of)


def _since(part: Path) -> float:
    try:
        return time.time() - part.stat().st_mtime
    except OSError:
        return 0.0
