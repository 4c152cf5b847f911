"""How the runs of each method ended: a row a method, the medians of several seeds, and in lines below why a run is not complete."""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.core.progress import bits_text, time_text
from mpi_compress.evidence.comparison import labels_of
from mpi_compress.evidence.lines import by_seed, equal_seeds, name_of, seeds_text, tuned_column
from mpi_compress.evidence.notes import said_of
from mpi_compress.results.reader import Run
from mpi_compress.results.status import LastRow, State, Status, status_of_run
from mpi_compress.results.summary import WARNINGS, rise

LESS_NEEDED = ("ended by", "time here", "time", "down", "suboptimality", "up", "time, modelled")
"""Heads of `endings` that a narrow terminal leaves out, the first one first."""
_LONG = 100.0  # seconds, from which on they are minutes


def _seconds_text(seconds: float) -> str:
    return time_text(seconds) if seconds >= _LONG else f"{seconds:.3g} s"


_NUMBERS: Mapping[str, Callable[[float], str]] = {
    "loss": "{:.4g}".format, "gap": "{:.3g}".format, "up": bits_text, "down": bits_text,
    "seconds": _seconds_text, "model_seconds": _seconds_text,
}  # fmt: skip
"""The numbers of a row as text."""
_NOTHING = LastRow(0, *5 * [math.nan])


@dataclass(frozen=True)
class MethodStatus:
    """Runs of a job that differ in their seed alone: how they ended, and the medians of their last rows."""

    name: str
    states: Sequence[State]  # one a seed, or one of all where the seed changes nothing
    why: str = ""
    last: LastRow = _NOTHING
    rise: str = ""  # that complete runs end above their start

    @property
    def state(self) -> str:
        """The state that all seeds share, or how many have which, and whether the loss rose."""
        counts = Counter(state.shown for state in self.states)
        shared = self.states[0].shown if len(counts) == 1 else ", ".join(f"{n} {shown}" for shown, n in counts.items())
        return ", ".join(filter(None, [shared, re.sub(r" from \S+ to \S+", "", self.rise)]))

    @property
    def look(self) -> str:
        """The worst of its states' looks: a class of the page's style."""
        return min((state.look for state in self.states), key=("fails", "open", "holds").index)

    @property
    def cells(self) -> dict[str, str]:
        """Its numbers as text."""
        return {name: "–" if math.isnan(value := getattr(self.last, name)) else text(value) for name, text in _NUMBERS.items()}


def method_status(runs: Sequence[Run], known: Mapping[int, Status], name: str = "") -> MethodStatus:
    """Several seeds of one method; `known` is the status of runs that are begun, by number. It says why those ended that are not
    complete, or where all are what ended them."""
    statuses = [known.get(i) or status_of_run(run) for i, run in enumerate(runs)]
    whys = [", ".join(known[i].details) if i in known else run.ended_by for i, run in enumerate(runs)]
    open_ = [why for status, why in zip(statuses, whys, strict=True) if status.state is not State.COMPLETE]
    last = [row for run in runs if (row := LastRow.of(run)) is not None]
    middle = LastRow(0, *(known_of(np.median, [getattr(row, name) for row in last]) for name in _NUMBERS))
    equal = equal_seeds(runs) if all(status.state.has_ended for status in statuses) else ""
    why = "; ".join([*filter(None, dict.fromkeys([equal, *(open_ or whys)]))][:3])
    states = [status.state for status in (statuses[:1] if equal else statuses)]
    return MethodStatus(name or name_of(runs[0]), states, why, middle, rise(runs))


def known_of(take: Callable[[list[float]], Any], values: Sequence[float]) -> float:
    """A number of those that are known; NaN where none is."""
    known = [value for value in values if not math.isnan(value)]
    return float(take(known)) if known else math.nan


def endings(runs: Sequence[Run]) -> tuple[list[str], list[list[str]], list[str]]:
    """How each method ended, as a table: heads, rows, and notes, which say why a run is not complete."""
    groups = by_seed(runs)
    labels, notes = labels_of(groups)
    methods = [method_status(group, {}, label) for group, label in zip(groups, labels, strict=True)]
    tuned, clocked = tuned_column(groups), any(run.has("model_seconds") for run in runs)
    rows, open_ = [], []
    for i, m in enumerate(methods):
        is_complete = set(m.states) == {State.COMPLETE}
        goes_on = "; `mpi-compress run` goes on" if State.BROKEN_OFF in m.states else ""
        open_.append("" if is_complete else f"{m.state}{m.why and f' ({m.why})'}{goes_on}")
        *cells, seconds, modelled = m.cells.values()
        times = [modelled, seconds] if clocked else [seconds]
        rows.append([m.name, *tuned[i + 1 : i + 2], m.state, *cells, *times, m.why if is_complete else ""])
    over, times_of = seeds_text(runs), ["time, modelled", "time here"] if clocked else ["time"]
    heads = ["method", *tuned[:1], "status", "loss", "suboptimality", "up", "down", *times_of, "ended by"]
    warnings = [line for said in (*WARNINGS, _condition) for line in said_of(map(said, groups), labels).values()]
    return heads, rows, [*notes, *([f"medians {over}"] if over else []), *said_of(open_, labels).values(), *warnings]


def _condition(runs: Sequence[Run]) -> str:
    """What is not known of the theorem of their step; or ""."""
    return str(runs[0].attrs.get("condition", ""))
