"""A table of what each method needed to reach a target, over its seeds."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from mpi_compress.core.errors import UserError, nearest
from mpi_compress.core.progress import bits_text
from mpi_compress.evidence.endings import ending, other_points
from mpi_compress.evidence.lines import (
    Namer,
    by_seed,
    changes,
    label_of_run,
    name_of,
    seed_of_all,
    seeds_text,
    tuned_column,
    tuned_text,
)  # fmt: skip
from mpi_compress.evidence.notes import LABELS, notes_of, said_of
from mpi_compress.problem.datasets.said import captioned, line_of
from mpi_compress.results.columns import column_of
from mpi_compress.results.reader import Run, rising
from mpi_compress.results.settings import settings_of, varying
from mpi_compress.results.status import accuracy_of_gaps
from mpi_compress.results.summary import no_f_star
from mpi_compress.results.targets import RAISED, Target, grows, rises
from mpi_compress.results.units import counted_by, label_of, model_of, unit_of

BY = ("wire_bits_up", "cost_up", "paper_bits_up", "seconds", "round")  # what methods are mostly compared by
_LONG = 200  # letters of all labels
_LATE = 0.1  # of what was spent
_AGAIN = 0.1  # of the rows after the first one at a target


@dataclass(frozen=True)
class Cell:
    """What the runs of a method, one a seed, took to reach a target."""

    took: Sequence[float]  # infinite where a run does not reach it
    by: str  # the column of `took`
    end: str = ""  # how the runs that do not reach it ended, with what they had spent, a line
    unknown: str = ""  # why it cannot be said
    unit: str | None = None  # the column's unit; None: what `columns` says
    diverged: int = 0  # runs that reach it and diverge later
    last: float = math.inf  # the median of the last values of the target's column, less for what is nearer
    late: float = 0.0  # the largest share of it that was spent since the row before, where rounds lie between the two
    again: float = 0.0  # the share of later rows that miss the target again
    stays: float = math.inf  # what it took to come to the target and stay there
    doubt: str = ""  # that it may be at another stationary point, or that f* is not known to the target

    @property
    def median(self) -> float:
        """Over the seeds; infinite where half of them do not reach the target, or where it cannot be said."""
        return float(np.median(self.took)) if self.took else math.inf

    @property
    def is_left(self) -> bool:
        """True if more than a tenth of the later rows miss the target again."""
        return self.again > _AGAIN

    @property
    def is_cut(self) -> bool:
        """True if it does not reach the target, and was cut off on no plateau."""
        return self.median == math.inf and self.end.startswith("in ")

    @property
    def short(self) -> str:
        """Median and range; whether it is not reached, or cannot be said, but not why."""
        if self.median == math.inf:
            return "–" if self.unknown else "not reached"
        median, *ends = (amount(value, self.by, self.unit) for value in (self.median, min(self.took), max(self.took)))
        if math.inf in self.took or ends[0] == ends[1]:
            return median
        unit = median.partition(" ")[2]
        if all(end.partition(" ")[2] == unit for end in ends):  # said once
            ends = [end.partition(" ")[0] for end in ends]
        return f"{median} ({' … '.join(ends)})"

    @property
    def why(self) -> str:
        """Why it is not reached by some, or cannot be said; or ""."""
        if self.unknown:
            return self.unknown
        reached, of = [value for value in self.took if value < math.inf], len(self.took)
        later = f"{self.diverged} of {of} diverged later" if self.diverged else ""
        missed = f"not reached {self.end}" if len(reached) < of else ""
        if missed and reached:
            ends = " … ".join(dict.fromkeys(amount(end, self.by, self.unit) for end in (min(reached), max(reached))))
            missed = f"reached by {len(reached)} of {of} seeds, in {ends}; by the others {missed}"
        stays = "up to the end" if self.stays == math.inf else f"for good from {amount(self.stays, self.by, self.unit)} on"
        again = f"left again: {self.again:.0%} of the later rows miss it; {stays}" if self.is_left else ""
        return "; ".join(filter(None, (missed, again, later, self.doubt)))

    @property
    def numbers(self) -> list[str]:
        """Median, least and most without loss, each empty where it is not reached, and how many seeds reached it."""
        ends = (self.median, min(self.took, default=math.inf), max(self.took, default=math.inf))
        texts = ["" if math.isinf(v) else f"{v:.0f}" if v.is_integer() else repr(v) for v in ends]
        return [*texts, f"{sum(value < math.inf for value in self.took)}"]


@dataclass(frozen=True)
class ComparedMethod:
    """A row of the table: runs that differ in their seed alone."""

    label: str
    runs: Sequence[Run]
    cells: Sequence[Cell]
    number: str = ""  # by which notes name it in place of its label

    @property
    def name(self) -> str:
        """The label, and what was tuned."""
        return ", ".join(filter(None, (self.label, tuned_text(self.runs[0]))))


@dataclass(frozen=True)
class Comparison:
    """Methods, the soonest first, and what each took to reach each target."""

    targets: Sequence[Target]
    by: str
    methods: Sequence[ComparedMethod]
    shared: Sequence[str] = ()  # notes of what all methods share

    @property
    def in_file(self) -> "Comparison":
        """The same for a file, where notes name all methods: by their numbers if their labels are long."""
        if sum(len(method.label) for method in self.methods) < _LONG:
            return self
        return replace(self, methods=[replace(method, number=f"({i})") for i, method in enumerate(self.methods, 1)])

    @property
    def caption(self) -> str:
        """What the numbers are."""
        runs = [run for method in self.methods for run in method.runs]
        over = f"; median (range) {over}" if (over := seeds_text(runs)) else ""
        measured = ", as this machine took it" * (self.by == "seconds")
        return f"{label_of(self.by, runs)}{measured}{over}"

    @property
    def heads(self) -> list[str]:
        """The heads, in which several levels of one column name it once."""
        before, heads = "", self._first[0]
        for target in self.targets:
            name, sign, level = str(target).partition(" ≥" if target.rising else " ≤")
            heads.append(f"{name * (name != before)}{sign}{level}".strip())
            before = name
        return heads

    @property
    def _first(self) -> list[list[str]]:
        """Heads and cells of the first columns: the method, which says where others have more seeds, and what was tuned for it."""
        counts = [len(method.runs) for method in self.methods]
        marks = [f" ({n} of {max(counts)} seeds)" * (n < max(counts)) for n in counts]
        labels = ["method", *(f"{m.number} {m.label}{mark}".removeprefix(" ") for m, mark in zip(self.methods, marks, strict=True))]
        tuned = tuned_column([method.runs for method in self.methods])
        return [list(row) for row in zip(labels, *([tuned] if tuned else []), strict=True)]

    @property
    def whys(self) -> list[str]:
        """Why cells have no number, or not of all seeds, each text once: what the numbers in `cells` stand for."""
        return [*filter(None, dict.fromkeys(cell.why for method in self.methods for cell in method.cells))]

    @property
    def whole_caption(self) -> str:
        """The caption in a file, which stands alone: with the data, and what counts the costs, or the model's seconds."""
        firsts = [method.runs[0] for method in self.methods]
        counted = (counted_by(self.by, run) for run in firsts)
        return "; ".join(filter(None, dict.fromkeys([self.caption, *map(captioned, firsts), *counted])))

    @property
    def notes(self) -> list[str]:
        """What is said below the table on a screen, of the first labels alone where a note is about many."""
        return self.notes_of(LABELS)

    def notes_of(self, most: int | None = None) -> list[str]:
        """What is to be said below the table: the numbered reasons of its cells, what all methods share, whose rows are too far
        apart for its numbers, and `notes` of methods. Each names the first so many labels; None: all."""
        groups, labels = [method.runs for method in self.methods], [method.number or method.label for method in self.methods]
        late = list[str]()
        for i, target in enumerate(self.targets):
            shares = [method.cells[i].late for method in self.methods]
            kind = "beyond the budget" if grows(target.column) else "too much"
            read = f"{target} is read at logged rows, so up to {max(shares):.0%} {kind} (log.every)"
            late += said_of((read * (share > _LATE) for share in shares), labels, most).values()
        return [
            *(f"{raised(i)} {why}" for i, why in enumerate(self.whys, 1)),
            *self.shared,
            *notes_of(groups, labels, self.by, self.targets, most),
            *late,
        ]

    @property
    def cells(self) -> list[list[str]]:
        """The rows as text; a number behind a cell is that of its note. Where methods differ in what counts them, such as the cost
        model, they are in blocks, each below a row that says it."""
        marks = {why: f" {raised(i)}" for i, why in enumerate(self.whys, 1)}
        counted = [counted_by(self.by, method.runs[0]) for method in self.methods]
        rows, before = list[list[str]](), counted[0] if len(set(counted)) == 1 else ""
        for method, first, counts in zip(self.methods, self._first[1:], counted, strict=True):
            row = [*first, *(cell.short + marks.get(cell.why, "") for cell in method.cells)]
            rows += [row] if counts == before else [[f"{counts}:", *[""] * (len(row) - 1)], row]
            before = counts
        return rows

    @property
    def numbers(self) -> tuple[list[str], list[list[str]]]:
        """Heads and rows for CSV, in full precision: for each target the median, least and most, and how many seeds reached it."""
        heads = [f"{self.by} to {t.column}{'>=' if t.rising else '<='}{t.level:g}" for t in self.targets]
        heads = [f"{head}{what}" for head in heads for what in ("", ", least", ", most", ", seeds")]
        rows = []
        for label, runs, cells in ((m.label, m.runs, m.cells) for m in self.methods):
            about = [line_of(runs[0], with_place=False).removeprefix("data: "), model_of(runs[0])]
            rows.append([label, f"{len(runs)}", *chain(*(cell.numbers for cell in cells)), *about])
        return ["method", "seeds", *heads, "data", "cost model"], rows


def compare(runs: Sequence[Run], targets: Sequence[Target], by: str = BY[0]) -> Comparison:
    """What each method took to reach the targets, by a column such as `wire_bits_up`; UserError if no run has one of the columns.
    Methods are sorted by their number of workers, by the cost model where `by` is a cost, and then by what they took to the first
    target, or at it in a column that rises; those that do not reach it come last, the nearest first."""
    for column in (by, *(target.column for target in targets)):
        if runs and not any(run.has(column) for run in runs):
            if column in ("test_loss", "test_accuracy"):
                raise UserError(f"no column called '{column}': the job names no test set; [data] test = FILE adds it to the trace")
            raise UserError(nearest(column, dict.fromkeys(c for run in runs for c in (*run.trace, "seconds")), "column"))
    groups = by_seed([run for run in runs if run.rows])
    if not groups:
        raise UserError("no result has a row yet")
    labels, shared = labels_of(groups)
    by_target = [_column(groups, target, by) for target in targets]
    methods = [ComparedMethod(*method) for method in zip(labels, groups, zip(*by_target, strict=True), strict=True)]
    models = [*dict.fromkeys(counted_by(by, group[0]) for group in groups)]
    better = -1 if rises(by, rising(runs)) and not grows(by) else 1  # of an accuracy at a budget the largest

    def place(method: ComparedMethod) -> Any:
        first = method.runs[0]
        took = [(better * c.median if c.median < math.inf else math.inf, c.last) for c in method.cells]
        return first.attrs.get("n_workers", 1), models.index(counted_by(by, first)), took

    methods.sort(key=place)
    return Comparison(targets, by, methods, shared)


def best_of_each(found: Comparison, i: int) -> list[ComparedMethod]:
    """The methods without those that differ from another one in what they were tuned to alone, and took more to target i, or as
    much and were not tuned to it."""
    best: dict[str, ComparedMethod] = {}
    target = str(found.targets[i])
    for method in sorted(found.methods, key=lambda m: (m.cells[i].median, (m.runs[0].tuned or {}).get("to") != target)):
        best.setdefault(re.sub(r", tuned to \S+ = [^, ]*", "", method.label), method)
    return [method for method in found.methods if method in best.values()]


def names_apart(runs: Sequence[Run], several_seeds: bool = False, name: Namer = name_of) -> list[str]:
    """A name for each run: its label, and where others have the same one, its job, or the settings that differ. Where some of them
    stand for `several_seeds`, a seed is no name."""
    names = [name(run) for run in runs]
    for shared in [each for each, count in Counter(names).items() if count > 1]:
        those = [i for i, each in enumerate(names) if each == shared]
        settings = [settings_of(runs[i].written) for i in those]
        keys = [key for key in varying(settings) if key != "seed" or not several_seeds]
        jobs = [runs[i].file.parent.name for i in those]
        for i, setting, job in zip(those, settings, jobs, strict=True):
            differing = [job] if len(set(jobs)) == len(jobs) else [f"{key} = {setting.get(key, 'default')}" for key in keys]
            names[i] = f"{shared} ({', '.join(differing)})" if differing else shared
    return names


def labels_of(groups: Sequence[Sequence[Run]]) -> tuple[list[str], list[str]]:
    """Labels that tell methods apart, each a group of seeds, and a note of what --set changed in all of them."""
    firsts = [group[0] for group in groups]
    shared = [change for change in changes(firsts[0]) if all(change in changes(run) for run in firsts)]
    shared += seed_of_all([*chain(*groups)])

    def name(run: Run) -> str:
        return ", ".join([label_of_run(run), *(change for change in changes(run) if change not in shared)])

    labels = names_apart(firsts, any(len(group) > 1 for group in groups), name)
    return labels, [f"all with {', '.join(shared)}"] if shared else []


def raised(number: int) -> str:
    """A number as it marks a note."""
    return str(number).translate(RAISED)


def amount(value: float, column: str, unit: str | None = None) -> str:
    """A value of a column with its unit, short enough for a table; the unit of costs depends on the cost model."""
    unit = column_of(column).unit if unit is None else unit
    if unit == "bit":
        return bits_text(value, digits=3)
    if column == "round" or column_of(column).dtype == "int64":
        return f"{value:,.0f}"
    return f"{value:.3g}{f' {unit}' if unit else ''}"


def _column(groups: Sequence[Sequence[Run]], target: Target, by: str) -> list[Cell]:
    """The cells of a target, one for each method; those of a small gradient say where it may be of another stationary point."""
    cells = [cell(group, target, by) for group in groups]
    if "grad_norm" not in target.column:
        return cells
    reached = [[run for run in group if run.has(target.column) and target.row_of(run) is not None] for group in groups]
    return [replace(own, doubt=point) for own, point in zip(cells, other_points(reached), strict=True)]


def cell(runs: Sequence[Run], target: Target, by: str) -> Cell:
    """What the runs of a method, one a seed, took to reach a target."""
    if missing := [name for name in (target.column, by) if not all(run.has(name) for run in runs)]:
        return Cell([], by, unknown=f"has no {missing[0]}")
    if all(target.is_unknown(run) for run in runs):
        return Cell([], by, unknown=no_f_star(runs[0]) if target.column == "suboptimality" else f"{target.column} is not known")
    rows, unit, end = [(run, target.row_of(run)) for run in runs], unit_of(by, runs), ""
    reached, missed = [(run, row) for run, row in rows if row is not None], [run for run, row in rows if row is None]
    if missed:  # with what those had spent that were cut off
        spent = [float(run.column(by)[-1]) for run in missed if run.status == "complete"]
        end = ending(missed, target, amount(float(np.median(spent)), by, unit) + " rounds" * (by == "round") if spent else "")
    diverged = sum(run.status == "diverged" for run, _ in reached)
    late = max((_late(target, by, run, row) for run, row in reached), default=0.0)
    last = float(np.median([run.column(target.column)[-1] for run in runs])) * (-1.0 if target.rising else 1.0)
    nearest = math.inf if math.isnan(last) else last
    known = max(map(accuracy_of_gaps, runs))
    is_below = target.column == "suboptimality" and target.level < known
    doubt = f"f* is known to {known:.1g}, and the target is below that" if is_below else ""
    again, stays = np.median([_again(target, by, run, row) for run, row in reached] or [(0.0, math.inf)], axis=0).tolist()
    return Cell([target.took(run, by) for run in runs], by, end, "", unit, diverged, nearest, late, again, stays, doubt)


def _again(target: Target, by: str, run: Run, row: int) -> tuple[float, float]:
    """The share of the rows after the first one at a target that miss it again, and what was spent when it came there for
    good; infinite where the last tenth of the rows misses it, too."""
    values = run.column(target.column)[row:]
    misses = np.flatnonzero(values < target.level if target.rising else values > target.level)
    if not misses.size:
        return 0.0, float(run.column(by)[row])
    last = int(misses[-1]) + 1
    stays = last < (1 - _AGAIN) * values.size
    return misses.size / (values.size - 1), float(run.column(by)[row + last]) if stays else math.inf


def _late(target: Target, by: str, run: Run, row: int) -> float:
    """The share of what was spent at a row that was spent since the row before, 0 where no round lies between, or by which a row is
    beyond a budget. Uplink bits of ship-data were all spent in the first round."""
    if grows(target.column):
        return float(run.column(target.column)[row] / target.level - 1)
    spent, rounds = run.column(by), run.column("round")
    up = f"{by}_up" if run.has(f"{by}_up") else by
    at_once = settings_of(run.written).get("algorithm.name") == "ship-data" and column_of(up).label.startswith("uplink")
    before = run.column(up)[row] if at_once else spent[row - 1]
    apart = row > 0 and spent[row] > 0 and rounds[row] - rounds[row - 1] > 1
    return float(1 - before / spent[row]) if apart else 0.0
