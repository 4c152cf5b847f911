"""How a command or a call wants a job to be run. All steps from a job to its results take this one record."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpi_compress.core.clock import Stopwatch
from mpi_compress.core.signals import Interrupts
from mpi_compress.engine.keeper import Keeper
from mpi_compress.exchange.ranks import Ranks


@dataclass(frozen=True)
class Request:
    """On which ranks the runs of a job are executed, where their results go, and who watches them."""

    out: Path  # results go to <out>/<job>/<label>-<run id>.h5
    ranks: Ranks
    interrupts: Interrupts
    fresh: bool = False  # begin every run again
    quiet: bool = False
    force: bool = False  # also runs that need more memory than is free
    on_row: Callable[[dict[str, Any]], Any] | None = None  # takes every record: label, the trace's columns, seconds; at rank 0
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    again: str = "run the same command again to go on"
    keeper: Callable[..., Keeper] = Keeper  # what looks at the states between rounds
    shared: bool = False  # with other processes, as the trials of [tune] are: a run of another one is waited for
    lines: bool = True  # a line for each run that ends; False where a table follows
    details: bool = False  # a line for each trial, too
    kept: dict[str, str] = field(default_factory=dict)  # what would do, by where parts of one's own kept something in these runs
    proved: dict[str, dict[str, str]] = field(default_factory=dict)  # what draws prove wrong of users' compressors, by these and d

    @property
    def tells(self) -> bool:
        """True if this rank says what is going on."""
        return self.ranks.is_root and not self.quiet

    @property
    def tells_ends(self) -> bool:
        """True if this rank says how each of its runs ended."""
        return self.tells and (self.details if self.shared else self.lines)
