"""From traces to what a page draws: rows thinned, seeds brought together, numbers in few digits.

A column is a list of numbers (None: none there), or {"of": column, "times": a, "plus": b} where it follows from another one.
Where runs differ in their seed alone, it is their median at each round that all have, `low` and `high` their range.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError
from mpi_compress.evidence.lines import Line, by_seed, name_of, rows_of_seeds, shown, stem, tuned_text, without_common
from mpi_compress.figures.axes import scales
from mpi_compress.figures.curves import ceilings, smoothed
from mpi_compress.figures.panels import panels
from mpi_compress.job.tables import FigureTable, PanelTable
from mpi_compress.results.columns import column_of, named
from mpi_compress.results.reader import Run
from mpi_compress.results.targets import first_row, grows, rises
from mpi_compress.results.units import COSTS, named_model, unit_of

_SAME = 1e-7  # relative: how closely a column follows from another one

Columns = dict[str, NDArray[np.float64]]
Axes = tuple[str, str, str, str]  # x, y and their scales
BITS_COUNTED = "bits_counted"  # the x of a run drawn by each way of counting its bits: each line has another column


def views(runs: Sequence[Run], figure: FigureTable, points: int) -> list[dict[str, Any]]:
    """What a figure can show, first what its job asks for, each column of a trace thinned to so many `points`. A panel shows series
    `of` another view, whose place in the list is `source`."""
    groups = by_seed(runs)
    own_ends = {"names": _cost_names(runs), "ceilings": ceilings(runs)}
    tables: list[FigureTable | PanelTable] = [figure, *figure.panel]
    asked = {name.strip() for table in tables for name in (table.x or "", *(table.y or "").split(","), *(table.bounds or ()))}
    asked = (asked | set(figure.at or ())) - {"", "T"}
    found: dict[str, dict[str, Any]] = {}
    if figure.at or figure.rows == "last":
        levels = " and ".join(f"{column} ≤ {level:g}" for column, level in (figure.at or {}).items())
        title = f"what it took to {levels}" if levels else "the end of each run"
        found["ends"] = {"kind": "points", "title": title, **_axes(figure), "series": _ends(groups, asked, figure.at)}
    own = _axes(FigureTable("wire_bits_up", "loss", "log") if found or figure.x == "T" else figure)
    found["runs"] = {"kind": "lines", "title": "whole runs", **own}
    found["runs"]["series"] = [_line(each, asked, points, _drawn(figure)) for each in groups]
    with_theory = [i for i, group in enumerate(groups) if group[0].theory]
    if with_theory:
        over = _axes(FigureTable("T", "speedup") if figure.x != "T" else figure)
        curves = [_over_budgets(groups[i][0]) for i in with_theory]
        found["theory"] = {"kind": "lines", "title": "theory, over budgets T", **over, "series": curves}
    every = [*_panels(groups, figure, list(found), with_theory), *found.values(), *_by_convention(runs, figure, points)]
    return [{**view, **own_ends} for view in every]


def _drawn(own: FigureTable) -> list[Axes]:
    tables: list[FigureTable | PanelTable] = [own, *own.panel]
    each = [FigureTable(t.x or own.x, t.y or own.y, t.xscale or own.xscale, t.yscale or own.yscale) for t in tables]
    return [(table.x, y.strip(), *scales(table)) for table in each for y in table.y.split(",")]


def _by_convention(runs: Sequence[Run], figure: FigureTable, points: int) -> list[dict[str, Any]]:
    """The first run that [log] count counts: a line for each way of counting its bits."""
    for run in runs:
        y = next((name for name in (figure.y.split(",")[0].strip(), "loss") if run.has(name)), "")
        if (ways := ways_of_counting(run)) and y:
            axes = _axes(FigureTable(BITS_COUNTED, y, yscale=figure.yscale if y in figure.y else None))
            values = {name: run.trace[name].astype(float) for name in ("round", *ways)} | {y: run.column(y).astype(float)}
            rows = kept(values, points)
            written = {name: short(each[rows]) for name, each in values.items()}
            columns = [{BITS_COUNTED: written[name], y: written[y]} for name in ways]
            lines = [{"label": label, "seeds": 1, "columns": own} for label, own in zip(ways.values(), columns, strict=True)]
            return [{"kind": "lines", "title": f"{name_of(run)}, by each way of counting", **axes, "series": lines}]
    return []


def ways_of_counting(run: Run) -> dict[str, str]:
    """The columns in which the bits that a run sent up are counted, and their names; none without [log] count."""
    columns = {name: column_of(name).label for name in named("convention") if name in run.trace}
    if columns:
        columns["wire_bits_up"] = column_of("wire_bits_up").label
        if run.written.get("cost", {}).get("model") == "udp-ethernet":
            columns["cost_up"] = "sent, with the headers of UDP on Ethernet"
    return columns


def _axes(figure: FigureTable) -> dict[str, Any]:
    xscale, yscale = scales(figure)
    y = figure.y.split(",")[0].strip()
    labels = {"xlabel": figure.xlabel, "ylabel": figure.ylabel}
    return {"x": figure.x, "y": y, "xscale": xscale, "yscale": yscale, "bounds": figure.bounds, **labels}


def _panels(groups: Sequence[Sequence[Run]], figure: FigureTable, there: list[str], with_theory: list[int]) -> list[dict[str, Any]]:
    found = []
    for panel, own, _ in panels([group[0] for group in groups], figure):
        name = "theory" if own.x == "T" else "ends" if "ends" in there else "runs"
        if name not in there:
            continue
        indices = [i for i, group in enumerate(groups) if panel.shows(group[0].label) and (name != "theory" or i in with_theory)]
        short = without_common([groups[i][0].label for i in indices])
        labels = [", ".join(filter(None, (short[groups[i][0].label], tuned_text(groups[i][0])))) for i in indices]
        of = [with_theory.index(i) if name == "theory" else i for i in indices]
        source = len(figure.panel) + there.index(name)
        kind = "points" if name == "ends" else "lines"
        found.append({"kind": kind, "title": own.title, **_axes(own), "source": source, "of": of, "labels": labels})
    for each in found:
        each["source"] += len(found) - len(figure.panel)
    return found


def kept(columns: Columns, points: int) -> NDArray[np.intp]:
    """The rows that lines need: least and greatest of each column in each part of the rounds, even and even in logarithms."""
    from tsdownsample import MinMaxDownsampler

    rounds = np.ascontiguousarray(columns["round"])
    chosen = [np.array([0, len(rounds) - 1], dtype=np.intp)]
    thin = MinMaxDownsampler().downsample
    for scale in (rounds, np.log1p(rounds)):
        chosen += [thin(scale, np.ascontiguousarray(v), n_out=points).astype(np.intp) for v in columns.values()]
    return np.unique(np.concatenate(chosen))


def short(values: NDArray[Any]) -> list[float | int | None]:
    """Numbers for JSON: to seven digits, whole ones exactly, and None for what is not finite."""
    return [
        None if not math.isfinite(v) else int(v) if v == int(v) and abs(v) < 2**53 else float(f"{v:.7g}")
        for v in map(float, values)
    ]


def columns_of(run: Run, asked: set[str]) -> Columns:
    """All that can be drawn row by row."""
    found = {name: run.trace[name].astype(np.float64) for name in ("round", *run.trace)}
    found["seconds"] = run.timing["seconds"]
    for name in (*named("result", "bounds"), *sorted(asked)):
        try:
            values = np.asarray(run.column(name), dtype=np.float64)
        except (UserError, KeyError):
            continue
        if values.shape == found["round"].shape:
            found[name] = values
    return {name: values for name, values in found.items() if np.isfinite(values).any()}


def _line(group: Sequence[Run], asked: set[str], points: int, drawn: Sequence[Axes]) -> dict[str, Any]:
    each = [columns_of(run, asked) for run in group]
    at = rows_of_seeds(group)
    names = [name for name in each[0] if all(name in columns for columns in each)]
    stacked = {name: np.array([columns[name][rows] for columns, rows in zip(each, at, strict=True)]) for name in names}
    middle = {name: np.median(values, axis=0) if len(each) > 1 else values[0] for name, values in stacked.items()}
    follows = _following(middle)
    ranges = {
        f"{name}{end}": take(stacked[name], axis=0)
        for name in names
        if name != "round" and not np.array_equal(stacked[name].min(axis=0), stacked[name].max(axis=0), equal_nan=True)
        for end, take in ((".low", np.min), (".high", np.max))
    }
    own = {name: values for name, values in (middle | ranges).items() if name not in follows}
    rows = kept(own, points)
    written: dict[str, Any] = {name: short(values[rows]) for name, values in own.items()}
    series = {"label": name_of(group[0]), "seeds": len(each), "columns": {n: follows.get(n, written.get(n)) for n in names}}
    for end in ("low", "high") if ranges else ():
        series[end] = {name: written[f"{name}.{end}"] for name in names if f"{name}.{end}" in written}
    if noise := _smooth(middle, ranges, drawn):
        series["smooth"] = {y: _shortened(each) for y, each in noise.items()}
    return series


def _cost_names(runs: Sequence[Run]) -> dict[str, str]:
    """The names of costs with their cost model, if all runs share it, and its unit."""
    model = named_model(runs)
    names = {name: column_of(name).label + (f", {model}" if model else "") for name in COSTS}
    return {name: f"{label} [{unit}]" if (unit := unit_of(name, runs)) else label for name, label in names.items()}


def _smooth(columns: Mapping[str, NDArray], ranges: Mapping[str, NDArray], drawn: Sequence[Axes]) -> dict[str, Any]:
    """The running median of each drawn y that is noise, from a line's columns, and their `ranges` over seeds such as "loss.low". By
    y: `x`, the columns that grow, at the middle of each window; `y`, and the band's `low` and `high`."""
    found: dict[str, Any] = {}
    for x, y, xscale, yscale in drawn:
        if x not in columns or y not in columns or y in found:
            continue
        keep = shown(columns[x], columns[y], xscale, yscale)
        line = Line("", columns[x], columns[y], ranges.get(f"{y}.low"), ranges.get(f"{y}.high")).rows(keep)
        if line.y.size < 2 or (smooth := smoothed(line, xscale, yscale)) is None or smooth.x is None or line.x is None:
            continue
        xs = {name: np.interp(smooth.x, line.x, values[keep]) for name, values in columns.items() if grows(name)}
        found[y] = {"x": xs, "y": smooth.y, "low": smooth.least, "high": smooth.most}
    return found


def _shortened(arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _shortened(each) if isinstance(each, Mapping) else short(each) for name, each in arrays.items()}


def _following(columns: Columns) -> dict[str, dict[str, Any]]:
    """The columns that are a·c + b for an earlier column c, such as constants and the bits of messages of one size. They follow
    from c as it is written: f − f* does not follow from f, whose digits end before those of the difference."""
    found: dict[str, dict[str, Any]] = {}
    bases: Columns = {}
    for name, values in columns.items():
        if not np.isfinite(values).all():  # the run diverged, or the column is not known at first
            continue
        few = slice(None, None, max(1, len(values) // 4))  # enough to rule out most columns
        for base, others in bases.items():
            span = others[-1] - others[0]
            a = (values[-1] - values[0]) / span if span else 0.0
            b = values[0] - a * others[0]
            if all(np.allclose(a * others[rows] + b, values[rows], rtol=_SAME, atol=0.0) for rows in (few, slice(None))):
                found[name] = {"of": base, "times": float(a), "plus": float(b)}
                break
        else:
            bases[name] = np.array([np.nan if v is None else v for v in short(values)])
    return found


def _ends(groups: Sequence[Sequence[Run]], asked: set[str], at: Mapping[str, float] | None) -> list[dict[str, Any]]:
    """One point for each label: the last row, or the first that has come down to a level; `varies` names what changes on the way.
    Points of one `stem` are a grid's: on a line, at an x that does not vary; where x does, a point is a level to compare with."""
    found = []
    for group in groups:
        each = [columns_of(run, asked | {"step", "kappa", "rate"}) for run in group]
        rows = [_row(columns, at) for columns in each]
        names = [name for name in each[0] if all(name in columns for columns in each)]
        constant = {name for name in names if all(np.all(columns[name][1:] == columns[name][-1]) for columns in each)}
        point = {
            name: np.median([
                np.inf if row is None and name not in constant else columns[name][-1 if row is None else row]
                for columns, row in zip(each, rows, strict=True)
            ])
            for name in names
        }  # fmt: skip
        values = dict(zip(point, short(np.array(list(point.values()))), strict=True))
        varies = [name for name in names if name not in constant] if at else []
        label = {"label": name_of(group[0]), "stem": stem(group[0].label)}
        found.append({**label, "seeds": len(group), "columns": values, "varies": varies})
    return found


def _row(columns: Columns, at: Mapping[str, float] | None) -> int | None:
    if at is None:
        return -1
    ((column, level),) = at.items()
    return first_row(columns[column], level, rises(column)) if column in columns else None


def _over_budgets(run: Run) -> dict[str, Any]:
    return {"label": name_of(run), "seeds": 1, "columns": {name: short(run.column(name)) for name in named("curves")}}


def as_json(data: Any) -> str:
    """JSON that can stand in a <script> element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
