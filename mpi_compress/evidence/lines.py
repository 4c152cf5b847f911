"""The lines of a figure, taken from results alone; runs that differ in their seed alone are one line, with a band."""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.progress import count_text
from mpi_compress.results.columns import column_of
from mpi_compress.results.reader import ANY_SEED, Run
from mpi_compress.results.settings import overridden_of, settings_of
from mpi_compress.results.status import ROUNDING
from mpi_compress.results.targets import Target, grows, rises
from mpi_compress.results.tuning import caveat, in_words, put_by

Namer = Callable[[Run], str]
"""Gives a run's line its name."""

_BOUNCE = 100.0  # times what rounding decides of f − f*, which it decides once it has come down to it
_ENDED = "complete", "diverged"
_EARLY = 0.9  # times the end of another seed
POINTS = 3  # rows of a run, up to which they are points, and no curve
_VALUE = r"(?:^|, )(?:tuned (?:to )?)?[\w.-]+ = [^,:]*"


@dataclass(frozen=True)
class Line:
    """A line of a figure: a run, several seeds of one, or points that each stand for a run."""

    label: str
    x: Any  # an array; None: at every x
    y: NDArray[Any]  # over several seeds the median, as x is
    least: Any = None  # an array over the seeds, as `most` is; None: there are no several seeds
    most: Any = None
    note: str = ""  # what a legend adds to the label, such as "diverged"
    is_exact: bool = False  # True: its run drew no random number, so that nothing in it is noise
    keeps_last: bool = False  # True: a seed ended much before another one, and its last value goes on
    of: Sequence[str] = ()  # the labels of its runs

    @property
    def has_band(self) -> bool:
        """True if seeds differ."""
        return self.least is not None and bool(np.any(self.least < self.most))

    @property
    def entry(self) -> str:
        """Its entry in a legend."""
        return f"{self.label} ({self.note})" if self.note else self.label

    def each(self, take: Callable[[NDArray[Any]], NDArray[Any]]) -> "Line":
        """The same line with what `take` makes of each of its arrays."""
        columns: dict[str, Any] = {name: take(values) for name, values in vars(self).items() if isinstance(values, np.ndarray)}
        return replace(self, **columns)

    def rows(self, keep: NDArray[Any]) -> "Line":
        """The same line with some of its rows."""
        return self.each(lambda values: values[keep])


def name_of(run: Run) -> str:
    """A line's name: the run's label, what was overridden in it, as by --set, and what was tuned for it."""
    return ", ".join(filter(None, [label_of_run(run), *changes(run), tuned_text(run)]))


def name_in_paper(run: Run) -> str:
    """A line's name where the text says what was tuned: the label, what was overridden, and what speaks against a tuned value."""
    return ", ".join([label_of_run(run), *changes(run)]) + _note(run)


def label_of_run(run: Run) -> str:
    """A run's label as it is shown: of a grid of targets of [tune] "EF21, tuned to suboptimality = 0.01", what was asked."""
    return tuned_to(run.label, run.written.get("tune", {}).get("to"))


def tuned_to(label: str, to: Any) -> str:
    """The same of a label, and the target of its run's [tune]."""
    for column in to if isinstance(to, Mapping) else ():
        label = label.replace(f", {column} = ", f", tuned to {column} = ")
    return label


def changes(run: Run) -> list[str]:
    """What was overridden in a run, as by --set, but for its seed: "rounds = 10", or of a name "data = a9a"."""
    overridden = {key.removesuffix(".name"): value for key, value in overridden_of(run).items() if key != "seed"}
    return [re.sub(r".*\.(?!seed$)", "", key) + f" = {value}" for key, value in overridden.items()]


def seed_of_all(runs: Sequence[Run]) -> list[str]:
    """The seed that all runs were given, as by --set: "seed = 3"; [] where some have their job's."""
    given = {overridden_of(run).get("seed") for run in runs}
    return [f"seed = {seed}" for seed in given if len(given) == 1 and seed is not None]


def tuned_text(run: Run) -> str:
    """The value that [tune] found for a run, such as "tuned a = 0.5", and what speaks against it; or ""."""
    return f"tuned {found}{_note(run)}" if (found := _found(run)) else ""


def _found(run: Run) -> str:
    """The value that [tune] found, "a = 0.5", a formula as a number; or ""."""
    if not (tuned := run.tuned):
        return ""
    numbers = {f"algorithm.{name}": f"{value:.3g}" for name, value in run.evaluated.items()}
    return in_words({key: numbers.get(key, value) if "(" in str(value) else value for key, value in put_by(tuned).items()})


def tuned_column(groups: Sequence[Sequence[Run]]) -> list[str]:
    """What [tune] found for each method, a group of seeds: a head, "tuned step" where that is all, and a cell for each method; []
    where nothing was tuned."""
    found = [" or ".join(dict.fromkeys(map(_found, group))) for group in groups]
    names = set(re.findall(r"([\w.-]+) = ", ", ".join(found)))
    if len(names) != 1:
        return ["tuned", *(text or "–" for text in found)] if names else []
    (name,) = names
    return [f"tuned {name}", *(text.replace(f"{name} = ", "") or "–" for text in found)]


def _note(run: Run) -> str:
    """What speaks against a tuned value, in brackets: it ends its grid, or is not settled."""
    return f" ({note})" if (note := caveat(run.tuned)) else ""


def lines(runs: Sequence[Run], x: str, y: str, name: Namer = name_of) -> list[Line]:
    """One line for each run, or for all that differ in their seed alone."""
    return [_line(each, x, y, name(each[0])) for each in by_seed(runs)]


def ended(runs: Sequence[Run]) -> list[Run]:
    """The runs without those that were stopped, or failed, where another seed of the same run has ended: a median of fewer rows
    would end with them."""
    return [run for group in by_seed(runs) for run in [r for r in group if r.status in _ENDED] or group]


def unfinished(runs: Sequence[Run]) -> str:
    """How many of several seeds were stopped, or failed, or still run, drawn or not: "2 runs unfinished"; or ""."""
    count = sum(run.status not in _ENDED for group in by_seed(runs) if len(group) > 1 for run in group)
    return f"{count_text(count, 'run')} unfinished" if count else ""


def by_seed(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs in groups, each of those that differ in their seed alone, with equal data and code; a second run of the same seed is
    in the next group."""
    groups, seen = defaultdict[Any, list[Run]](list), Counter[Any]()
    for run in runs:
        tables = run.written
        seed = tables.pop("seed", 0)
        others = json.dumps([run.label, tables, run.inputs], sort_keys=True, default=str) if "job" in run.attrs else id(run)
        groups[others, seen[others, seed]].append(run)
        seen[others, seed] += 1
    return [*groups.values()]


def seeds_text(runs: Sequence[Run]) -> str:
    """Over how many seeds lines of these runs are: "over 10 seeds", "over 1 to 10 seeds"; "" where each is a run, or as if it were
    one, since seeds change nothing."""
    groups = by_seed(runs)
    least, most = min(map(len, groups)), max(map(len, groups))
    is_one = most == 1 or all(map(equal_seeds, groups))
    return "" if is_one else f"over {f'{least} to ' * (least < most)}{most} seeds"


def with_seeds(runs: Sequence[tuple[str, object]]) -> list[str]:
    """The names of runs, given with their seeds; with the seed where several have one name."""
    counts = Counter(name for name, _ in runs)
    return [f"{name}, seed {seed}" if counts[name] > 1 else name for name, seed in runs]


def equal_seeds(runs: Sequence[Run]) -> str:
    """"5 seeds, equal: 1 run" where the seed changes nothing in several runs: all records are equal to the last bit; else ""."""
    first, *others = (run.trace for run in runs)
    equal = all(n in own and own[n].tobytes() == first[n].tobytes() for own in others for n in first)
    return f"{len(runs)} seeds, equal: 1 run" if others and equal else ""


def _line(runs: Sequence[Run], x: str, y: str, name: str) -> Line:
    values = [_drawable(run, y) for run in runs]
    note = ", ".join(filter(None, [_diverged(runs), _unfinished(runs), _short_floats(runs[0], x)]))
    is_exact = all(ANY_SEED in run.attrs for run in runs)
    if len(runs) == 1:
        return Line(name, runs[0].column(x), values[0], note=note, is_exact=is_exact, of=[runs[0].label])
    along, half, ys = at_equal_x(runs, x, values, column_of(y).falls)
    median = np.median(ys, axis=0)
    median[along > half] = np.nan  # no plateau, but seeds that have ended
    ends = [run.column(x if grows(x) else "round")[-1] for run in runs if run.status in _ENDED]
    keeps_last = bool(ends) and min(ends) < _EARLY * max(ends)
    return Line(name, along, median, np.min(ys, axis=0), np.max(ys, axis=0), note, is_exact, keeps_last, [runs[0].label])


def _drawable(run: Run, y: str) -> NDArray[Any]:
    """A column of a run, with 0 for what rounding decides: a suboptimality of 1e-15 of the loss. One that diverges is infinite at
    its end."""
    values: NDArray[Any] = run.column(y)
    if y == "suboptimality":
        rounding = ROUNDING * np.abs(run.column("loss"))
        begun = np.logical_or.accumulate(np.abs(values) <= rounding)
        values = np.where(begun & (np.abs(values) <= _BOUNCE * rounding), 0.0, values)
    if run.status == "diverged" and not rises(y, run.rising):
        values = np.where(np.isfinite(values) & (np.arange(values.size) < values.size - 1), values, np.inf)
    return values


def _diverged(runs: Sequence[Run]) -> str:
    """How many seeds diverged: "diverged", "2 of 5 seeds diverged", or ""."""
    count = sum(run.status == "diverged" for run in runs)
    return "" if not count else "diverged" if count == len(runs) else f"{count} of {len(runs)} seeds diverged"


def _unfinished(runs: Sequence[Run]) -> str:
    """Where a line ends if the run that ends it was stopped, or failed, or still runs: "stopped at round 1,837"; or ""."""
    shortest = min(runs, key=lambda run: run.column("round")[-1])
    return "" if shortest.status in _ENDED else f"{shortest.status} at round {shortest.column('round')[-1]:,}"


def _short_floats(run: Run, x: str) -> str:
    """That a run of floats of 16 bits sends fewer bits than x counts for each value; or ""."""
    short = settings_of(run.written).get("up.codec.float") in (16, "bf16")
    return "sends 16 a value" if short and re.search("(32|64) a value", column_of(x).label) else ""


def at_equal_x(
    runs: Sequence[Run], x: str, values: Sequence[NDArray[Any]], falls: bool
) -> tuple[NDArray[Any], float, NDArray[np.float64]]:
    """Where along x a line of several seeds has points, the x at which half of them have ended, and the y of each seed there.

    Where x grows, y lies on the straight lines between a seed's rows, those of a logarithmic axis where y `falls`, so that the
    median comes to a level where the median of the seeds' own lines does. Other x, and those of a few rows, are the medians of
    equal rounds. A run that has ended, complete or diverged, stays where it ended; one that was stopped, or failed, ends the line.
    """
    along = grows(x) and max(run.rows for run in runs) > POINTS
    every = [run.column(x if along else "round") for run in runs]
    done, points = [run.status in _ENDED for run in runs], reduce(np.union1d, every)
    points = points[np.all([(points <= own[-1]) | is_done for own, is_done in zip(every, done, strict=True)], axis=0)].astype(float)
    ys = np.array([_between(own, column, points, falls) for own, column in zip(every, values, strict=True)])
    if along:
        return points, float(sorted(own[-1] for own in every)[len(every) // 2]), ys
    xs = [_between(own, run.column(x), points, False) for own, run in zip(every, runs, strict=True)]
    return np.median(xs, axis=0), math.inf, ys


def _between(own: NDArray[Any], values: NDArray[Any], points: NDArray[Any], falls: bool) -> NDArray[np.float64]:
    """The values at points of an axis, of which `own` (m,) has values (m,): on straight lines between them, in the logarithm where
    they fall; where one of the two has none, the one before."""
    before = values[np.maximum(np.searchsorted(own, points, side="right") - 1, 0)]
    with np.errstate(all="ignore"):
        heights = np.interp(points, own, np.log(values) if falls else values)
        found = np.exp(heights) if falls else heights
    return np.where(np.isfinite(heights) & ~np.isin(points, own), found, before)


def last_points(runs: Sequence[Run], x: str, y: str) -> list[Line]:
    """One line of last rows for the runs of a grid; over seeds their median. One that has not ended has no point."""
    found = defaultdict[str, list[tuple[Any, ...]]](list)
    for group in by_seed(runs):
        label, (xs, ys) = group[0].label, ([float(r.column(c)[-1]) for r in group] for c in (x, y))
        ys = [np.nan] if (begun := _unfinished(group)) else ys
        found[stem(label)].append((np.median(xs), np.median(ys), min(ys), max(ys), begun or caveat(group[0].tuned), label))
    return _of_points(found, x)


def levels(runs: Sequence[Run], x: str, y: str, at: Mapping[str, float]) -> list[Line]:
    """What each run took to bring the column of `at` to its level, at its own x; over seeds the median, and the most is infinite
    where some seeds alone reach it."""
    ((where, level),) = at.items()
    found = defaultdict[str, list[tuple[Any, ...]]](list)
    for group in by_seed(runs):
        label, xs = label_of_run(group[0]), np.unique(group[0].column(x)[1:], equal_nan=False) if group[0].has(x) else np.empty(0)
        each = [Target.of(where, level, r.rising).took(r, y) for r in group]
        took = [value if value < np.inf else np.nan for value in (np.median(each), min(each))]
        label, own = (_without(label, x), float(xs[0])) if xs.size == 1 else (label, np.nan)
        reached, is_missed = np.isfinite(each), np.isnan(took[0])
        share = "" if all(reached) else "not reached" if is_missed else f"{sum(reached)} of {len(group)} seeds reach it"
        said = ", ".join(filter(None, [share, caveat(group[0].tuned)]))
        found[label].append((own, *took, np.nan if is_missed else max(each), said, group[0].label))
    return _of_points(found, x)


def _of_points(found: Mapping[str, list[tuple[Any, ...]]], key: str) -> list[Line]:
    """Lines of points, by label: x, median, least, most, what is said of a point, and its run's label."""
    made = []
    for label, points in found.items():
        *numbers, said, of = zip(*sorted(points), strict=True)
        at_x, median, least, most = map(np.array, numbers)
        over = None if np.isnan(at_x).any() else at_x
        made.append(Line(label, over, median, least, most, _said_of_points(key, at_x, np.array(said)), of=of))
    return made


def _said_of_points(key: str, xs: NDArray, shares: NDArray) -> str:
    """What is said of points, with their x: "not reached: k = 1, 28; 2 of 3 seeds reach it: k = 5", or ""."""
    if len(set(shares)) == 1 or np.isnan(xs).any():
        return str(shares[0])
    name = key.rpartition(".")[2]
    where = {share: ", ".join(f"{x:g}" for x in np.unique(xs[shares == share])) for share in shares if share}
    return "; ".join(f"{share}: {name} = {values}" for share, values in where.items())


def _without(label: str, x: str) -> str:
    """A label without the value of x, or where it does not name it without all values of its grid."""
    rest, times = re.subn(rf"(^|, )(tuned to )?{re.escape(x.rpartition('.')[2])} = [^,]*", "", label)
    return rest.removeprefix(", ") or x if times else stem(label)


def stem(label: str) -> str:
    """The label that the runs of a grid share, which differ in what stands behind a comma and an equals sign."""
    return re.sub(r", (tuned to )?\w+ = .*", "", label)


def method_and_values(name: str) -> tuple[str, str]:
    """The parts of a name: "EF21, top 10 %" and "k = 5, tuned step = 4" of "EF21, k = 5, top 10 %, tuned step = 4"."""
    values = re.findall(_VALUE, name)
    return re.sub(_VALUE, "", name), ", ".join(value.removeprefix(", ") for value in values)


def without_common(labels: Sequence[str]) -> dict[str, str]:
    """Labels of a grid's runs without the values, such as ", c2 = 0.25", that all of them share."""
    values = [re.findall(r", [\w.]+ = [^,]*", label) for label in labels]
    common = [value for value in values[0] if all(value in each for each in values)] if values else []
    return {label: reduce(lambda left, value: left.replace(value, "", 1), common, label) for label in labels}


def shown(xs: NDArray, ys: NDArray, xscale: str, yscale: str) -> NDArray[np.bool_]:
    """Which points can be drawn: finite, and above 0 on a logarithmic axis."""
    return np.isfinite(xs) & np.isfinite(ys) & ((xscale != "log") | (xs > 0)) & ((yscale != "log") | (ys > 0))
