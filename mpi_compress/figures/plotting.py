"""Figures from result files alone, as wide as a paper's column, or as its page where there are panels."""

import math
import re
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import print_line
from mpi_compress.core.registry import checked
from mpi_compress.figures.axes import INSIDE, LINE, LONGEST, abreast, entry, over_seeds, scales
from mpi_compress.figures.curves import draw_on, lines_of
from mpi_compress.figures.lines import Line, shown
from mpi_compress.figures.panels import draw_panels
from mpi_compress.job.tables import FigureTable
from mpi_compress.results.reader import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".pdf", ".svg")

COLUMN, HEIGHT = 3.3, 2.3  # inches: the width of a paper's column, and the height of one plot
STYLE: Any = {
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
        x, y: columns of /trace or /timing, or columns that follow from /theory; several y are joined by commas.
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
    """A job's figure, one plot or panels in a grid with one legend; UserError without runs, or without such a column."""
    import matplotlib as mpl

    if not figure.panel:
        return _figure_of(_plot(runs, figure, None))
    _refuse_no_runs(runs)
    with mpl.rc_context(STYLE):
        return draw_panels(runs, figure)


def _figure_of(drawn: "Axes | Figure") -> "Figure":
    figure = drawn.get_figure(root=True)
    assert figure is not None
    return figure


def _refuse_no_runs(runs: Sequence[Run]) -> None:
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

    _refuse_no_runs(runs)
    with mpl.rc_context(STYLE):
        drawn = lines_of(runs, figure)
        _refuse_nothing(drawn, figure)
        names = list(dict.fromkeys(line.label for line in drawn))
        title = "\n".join(textwrap.fill(each, 58) for each in (figure.title or "").splitlines())
        entries, seeds = [entry(name, LONGEST) for name in (*names, *figure.bounds)], over_seeds(runs)
        outside = ax is None and (len(entries) > INSIDE or max(map(len, entries)) > 32)
        side_by_side = abreast(entries, COLUMN)
        if ax is None:
            below = math.ceil(len(entries) / side_by_side) + 1 if outside else 0
            _, ax = plt.subplots(figsize=(COLUMN, HEIGHT + LINE * (title.count("\n") + below)))
        draw_on(ax, runs, drawn, figure, names)
        ax.set_title(title)
        if outside:
            _figure_of(ax).legend(title=seeds, loc="outside lower center", ncols=side_by_side, frameon=False)
        else:
            ax.legend(title=seeds)
    return ax


def save(drawn: "Axes | Figure", file: Path, dpi: int = 300, option: str = "-o") -> None:
    """Write the figure that was drawn, or that an `Axes` is on, as PNG, PDF or SVG; fonts are embedded.

    Raises:
        UserError: another format, or a place that cannot be written.
    """
    import matplotlib as mpl

    if file.suffix not in FORMATS:
        raise UserError(f"{option} {file}: a figure is written as one of {', '.join(FORMATS)}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with mpl.rc_context({"pdf.fonttype": 42, "svg.fonttype": "none"}), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            _figure_of(drawn).savefig(file, dpi=dpi)
    except OSError as error:
        raise UserError(f"{option} {file}: cannot be written: {error.strerror}") from None
    except ValueError as error:  # Matplotlib's, of mathematics between dollar signs
        raise UserError(f"{option} {file}: a label cannot be drawn: {' '.join(str(error).split())}") from None
    _report_warnings(caught, file)


def _report_warnings(caught: Sequence[warnings.WarningMessage], file: Path) -> None:
    """Report the letters that the font lacks in one line, and Matplotlib's other warnings as they are."""
    lacking = []
    for warning in caught:
        if glyph := re.match(r"Glyph (\d+) ", str(warning.message)):
            lacking.append(chr(int(glyph[1])))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if lacking:
        print_line(f"{file}: the font has no {' '.join(dict.fromkeys(lacking))}; boxes stand there")
