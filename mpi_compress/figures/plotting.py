"""Figures from result files alone: nothing is recomputed, nothing typed in by hand.

They are of a paper's size: a column wide, or a page where there are panels. Runs that differ in their seed alone are one line,
their median, in a band from the least to the most.
"""

import math
import re
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import print_line
from mpi_compress.core.registry import checked
from mpi_compress.figures.curves import COLOURS, LONGEST, axis_name, draw_on, entry, scales, taker
from mpi_compress.figures.lines import Line, by_seed, shown, tuned_text, without_common
from mpi_compress.job.tables import FigureTable, PanelTable
from mpi_compress.results.columns import NAMES
from mpi_compress.results.reader import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHORT = {"variance": "var", "variance_spa": "var·spa"}  # beside a panel's curves
FORMATS = (".png", ".pdf", ".svg")

_COLUMN, _PAGE = 3.3, 6.9  # inches: a column of a paper, and its page
_HEIGHT, _PANEL_HEIGHT = 2.3, 1.65  # of one plot, and of one of three panels in a row
_LINE, _LETTER = 0.16, 0.05  # of a legend's text
_INSIDE = 4  # lines whose legend has room among the curves
_STYLE: Any = {
    "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "xtick.labelsize": 7, "ytick.labelsize": 7, "legend.fontsize": 7,
    "legend.title_fontsize": 7, "legend.framealpha": 0.85, "legend.handlelength": 2.6, "lines.linewidth": 1.2,
    "lines.markersize": 3.5, "axes.grid": True, "axes.linewidth": 0.6, "grid.linewidth": 0.4, "grid.alpha": 0.4,
    "xtick.major.width": 0.6, "ytick.major.width": 0.6, "xtick.minor.width": 0.4, "ytick.minor.width": 0.4,
    "figure.constrained_layout.use": True,
}  # fmt: skip


def plot(
    runs: Sequence[Run], x: str = "wire_bits_up", y: str = "loss", ax: "Axes | None" = None,
    xscale: Literal["linear", "log"] | None = None, yscale: Literal["linear", "log"] | None = None, title: str | None = None,
    bounds: Sequence[str] = (), rows: Literal["all", "last"] = "all", at: Mapping[str, float] | None = None,
    xlabel: str | None = None, ylabel: str | None = None,
) -> "Axes":  # fmt: skip
    """Draw y against x: a line for every run, or for all that differ in their seed alone; runs of one label share a line's look.

    Args:
        runs: results, as `run` or `read` gives them.
        x, y: columns of /trace or /timing, or such as follow from /theory; several y are joined by commas.
        ax: Matplotlib axes to draw on; new ones otherwise.
        xscale, yscale: "linear" or "log"; None: "log" over budgets T and for what falls to zero.
        bounds: columns drawn dashed over the curve of each run that has them, in its colour.
        rows: "last": one point a run, its last row; the points of a grid that one [[run]] makes are one line.
        at: a column and a level, {"loss": 0.4}: not the whole run is drawn but what it took to come down to it. Runs whose x never
            changes, such as the budget of fixed ones, are points on a line; others are levels to compare them with.
        xlabel, ylabel: names of the axes, if not those of the columns.

    Raises:
        UserError: no runs, no such column, nothing that could be drawn, or an argument that means nothing.
    """
    asked = {"xscale": xscale, "yscale": yscale, "title": title, "at": at, "xlabel": xlabel, "ylabel": ylabel}
    given = {key: value for key, value in asked.items() if value is not None}
    figure = checked(FigureTable, {"x": x, "y": y, "bounds": list(bounds), "rows": rows, **given}, "plot")
    return _plot(runs, figure, ax)


def draw(runs: Sequence[Run], figure: FigureTable) -> "Figure":
    """A job's figure: its panels in a grid with one legend, or the one plot that it is.

    Raises:
        UserError: no runs, or no such column.
    """
    if not figure.panel:
        return _plot(runs, figure, None).get_figure(root=True)  # type: ignore[return-value]
    import matplotlib as mpl

    _some(runs)
    with mpl.rc_context(_STYLE):
        return _panels(list(panels(runs, figure)), figure)


def panels(runs: Sequence[Run], figure: FigureTable) -> Iterator[tuple[PanelTable, FigureTable, list[Run]]]:
    """Each panel that has results, the figure that it is by itself, and its runs."""
    for panel in figure.panel:
        own = {key: value for key, value in vars(panel).items() if key != "runs" and value is not None}
        chosen = [run for run in runs if panel.shows(run.label)]
        if chosen:
            yield panel, replace(figure, **{"title": "", **own}, panel=[]), chosen


def _some(runs: Sequence[Run]) -> None:
    if not runs:
        raise UserError("there are no results to plot; `mpi-compress run JOB` makes them")


def _refuse_nothing(drawn: Sequence[Line], figure: FigureTable) -> None:
    """Refuse a plot without a point."""
    xscale, yscale = scales(figure)
    if not any(shown(line.y if line.x is None else line.x, line.y, xscale, yscale).any() for line in drawn):
        if figure.at:
            ((column, level),) = figure.at.items()
            raise UserError(f"nothing to draw: no run comes down to {column} = {level:g}")
        raise UserError(f"nothing to draw: no row has {figure.x} and {figure.y} that {xscale} and {yscale} axes can show")


def _plot(runs: Sequence[Run], figure: FigureTable, ax: "Axes | None") -> "Axes":
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    _some(runs)
    with mpl.rc_context(_STYLE):
        drawn = _lines(runs, figure)
        _refuse_nothing(drawn, figure)
        names = list(dict.fromkeys(line.label for line in drawn))
        title = "\n".join(textwrap.fill(each, 58) for each in (figure.title or "").splitlines())
        entries, seeds = [entry(name, LONGEST) for name in (*names, *figure.bounds)], _over_seeds(runs)
        outside = ax is None and (len(entries) > _INSIDE or max(map(len, entries)) > 32)
        abreast = _abreast(entries, _COLUMN)
        if ax is None:
            below = math.ceil(len(entries) / abreast) + 1 if outside else 0
            _, ax = plt.subplots(figsize=(_COLUMN, _HEIGHT + _LINE * (title.count("\n") + below)))
        draw_on(ax, runs, drawn, figure, names)
        ax.set_title(title)
        if outside:
            below_all: dict[str, Any] = {"loc": "outside lower center", "ncols": abreast, "frameon": False}
            ax.get_figure(root=True).legend(title=seeds, **below_all)  # type: ignore[union-attr]
        else:
            ax.legend(title=seeds)
    return ax


def _panels(each: "list[tuple[PanelTable, FigureTable, list[Run]]]", figure: FigureTable) -> "Figure":
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    shorts = [without_common([run.label for run in runs]) for _, _, runs in each]
    drawn = [_lines(runs, own, short) for (_, own, runs), short in zip(each, shorts, strict=True)]
    names = list(dict.fromkeys(line.label for lines_of_panel in drawn for line in lines_of_panel))
    columns = min(figure.columns, len(each))
    rows = math.ceil(len(each) / columns)
    bounds = list(dict.fromkeys(bound for _, own, _ in each for bound in own.bounds))
    abreast = _abreast([entry(name, 2 * LONGEST) for name in (*names, *bounds)], _PAGE)
    title = "\n".join(textwrap.fill(line, 110) for line in (figure.title or "").splitlines())
    texts = math.ceil((len(names) + len(bounds)) / abreast) + title.count("\n") + 3
    height = _PANEL_HEIGHT * (1.0 if columns > 2 else 1.25)
    fig, grid = plt.subplots(rows, columns, figsize=(_PAGE, rows * height + texts * _LINE), squeeze=False)
    for ax in grid.flat[len(each) :]:
        ax.remove()
    handles: dict[str, Any] = {}
    for i, ((_, own, runs), short) in enumerate(zip(each, shorts, strict=True)):
        ax = grid.flat[i]
        draw_on(ax, runs, drawn[i], own, names, short, 2 * LONGEST)
        ax.set_title(own.title or "")
        found = ax.get_legend_handles_labels()
        handles |= dict(zip(found[1], found[0], strict=True))
        notes = _notes(runs, own)
        if 0 < len(notes) <= _INSIDE:
            looks = [Line2D([], [], color=COLOURS[names.index(short[label]) % len(COLOURS)]) for label in notes]
            ax.legend(
                looks, notes.values(), labelcolor="linecolor", handlelength=0, handletextpad=0, fontsize=6, borderpad=0.3,
                labelspacing=0.2, framealpha=0.7,
            )  # fmt: skip
        if i % columns and axis_name(own, "y") == axis_name(each[i - 1][1], "y"):
            ax.set_ylabel("")
        if i + columns < len(each) and axis_name(own, "x") == axis_name(each[i + columns][1], "x"):
            ax.set_xlabel("")
    seeds = _over_seeds(list({run.file: run for _, _, runs in each for run in runs}.values()))
    fig.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=abreast, frameon=False, title=seeds)
    fig.suptitle(title, fontsize=9)
    return fig


def _lines(runs: Sequence[Run], figure: FigureTable, short: Mapping[str, str] | None = None) -> list[Line]:
    """The lines of one plot; in panels under `short` names, by label, that other panels have too."""
    columns = [c.strip() for c in figure.y.split(",")]
    if figure.at and figure.x not in NAMES and not any(r.has(figure.x) for r in runs):
        runs[0].column(figure.x)  # says that there is none
    if figure.bounds and not any(r.has(name) for name in figure.bounds for r in runs):
        raise UserError(f"bounds: no run has a column {' or '.join(figure.bounds)}")
    return [
        line if len(columns) == 1 else replace(line, label=f"{line.label}: {NAMES.get(name, name)}")
        for name in columns
        for line in taker(figure, short)(runs, figure.x, name)
    ]


def _notes(runs: Sequence[Run], figure: FigureTable) -> dict[str, str]:
    """For each label of a panel what was tuned, and the last entries of the columns that are to be noted."""
    notes = {}
    for group in by_seed(runs):
        run = group[0]
        known = [name for name in figure.notes if name in run.trace]
        parts = [tuned_text(run), *(f"{_SHORT.get(name, name)} = {run.trace[name][-1]:.3g}" for name in known)]
        notes[run.label] = ", ".join(part for part in parts if part)
    return {label: note for label, note in notes.items() if note}


def _over_seeds(runs: Sequence[Run]) -> str | None:
    """What lines and bands are, where there are several seeds."""
    most = max(map(len, by_seed(runs)))
    return f"median and range over {most} seeds" if most > 1 else None


def _abreast(names: Sequence[str], width: float) -> int:
    """So many entries of a legend fit side by side, in rows that are as full as each other."""
    most = max(1, int(width / (0.45 + _LETTER * max(map(len, names)))))
    return math.ceil(len(names) / math.ceil(len(names) / most))


def save(drawn: "Axes | Figure", file: Path, dpi: int = 300) -> None:
    """Write the figure that was drawn, or that an `Axes` is on, as PNG, PDF or SVG; fonts are embedded.

    Raises:
        UserError: another format, or a place that cannot be written.
    """
    import matplotlib as mpl

    if file.suffix not in FORMATS:
        raise UserError(f"-o {file}: a figure is written as one of {', '.join(FORMATS)}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with mpl.rc_context({"pdf.fonttype": 42, "svg.fonttype": "none"}), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            drawn.get_figure(root=True).savefig(file, dpi=dpi)  # type: ignore[union-attr]
    except OSError as error:
        raise UserError(f"-o {file}: cannot be written: {error.strerror}") from None
    except ValueError as error:  # Matplotlib's, of mathematics between dollar signs
        raise UserError(f"-o {file}: a label cannot be drawn: {' '.join(str(error).split())}") from None
    _tell_what_was_said(said, file)


def _tell_what_was_said(said: Sequence[warnings.WarningMessage], file: Path) -> None:
    """Of Matplotlib's warnings: letters that the font lacks in one line, the others as they are."""
    lacking: dict[str, None] = {}
    for warning in said:
        if glyph := re.match(r"Glyph (\d+) ", str(warning.message)):
            lacking[chr(int(glyph[1]))] = None
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if lacking:
        print_line(f"{file}: the font has no {' '.join(lacking)}; boxes stand there")
