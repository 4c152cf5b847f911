"""Figures from result files alone, as wide as a paper's column, or as its page where there are panels."""

import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mpi_compress.core.errors import UserError, writing
from mpi_compress.core.fields import parameters
from mpi_compress.core.progress import print_line
from mpi_compress.core.registry import checked
from mpi_compress.evidence.comparison import labels_of
from mpi_compress.evidence.lines import by_seed, ended
from mpi_compress.evidence.problems import differing
from mpi_compress.figures.axes import name_axes, wrap_names
from mpi_compress.figures.curves import draw_on, lines_of, why_nothing
from mpi_compress.figures.legends import figure_of, handles_of, heading, put_at_curves, put_below, tuned_for_others
from mpi_compress.figures.panels import by_cost_model, draw_panels
from mpi_compress.figures.style import COLUMN, HEIGHT, Style, inches, looks, style_of
from mpi_compress.figures.words import draw_dollars
from mpi_compress.job.tables import FigureTable
from mpi_compress.problem.datasets.said import titles
from mpi_compress.results.reader import Run
from mpi_compress.results.summary import all_doubts

FORMATS = (".png", ".pdf", ".svg")
_BESIDE = 0.62  # inches beside a plot, for the ticks and the name of its y axis


def plot(
    runs: Sequence[Run], x: str = "wire_bits_up", y: str = "loss", ax: Axes | None = None,
    xscale: Literal["linear", "log"] | None = None, yscale: Literal["linear", "log"] | None = None, title: str | None = None,
    bounds: Sequence[str] = (), rows: Literal["all", "last"] = "all", at: Mapping[str, float] | None = None,
    xlabel: str | None = None, ylabel: str | None = None, xlim: Sequence[float] | None = None, ylim: Sequence[float] | None = None,
    style: str = "screen", width: str | float | None = None,
) -> Axes:  # fmt: skip
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
        xlim, ylim: the ends of the axes, the lower one first, if not all is to be seen.
        style: "paper": in Times' letters, without a title and without what was tuned, which a paper's text says.
        width: of the figure: "3.3in", "84mm", "8.4cm" or "239pt", or a number of inches.

    A band is the range over seeds. A curve that is noise is drawn as its running median over faint points. One that diverges leaves
    the plot at a cross on its top edge.

    Raises:
        UserError: no runs, no such column, nothing that could be drawn, or an argument that means nothing.
    """
    given = {key: value for key, value in locals().items() if value is not None and key in parameters(FigureTable)}
    given |= {key: [*given[key]] for key in ("bounds", "xlim", "ylim") if key in given}
    figure = checked(FigureTable, given, "plot")
    return _plot(runs, figure, ax, style_of(style), inches(width) or COLUMN)


def draw(
    runs: Sequence[Run], figure: FigureTable, style: str = "screen", width: str | float | None = None, notes: Sequence[str] = ()
) -> Figure:
    """A job's figure, one plot or panels in a grid with one legend; UserError without runs, or without such a column. A plot of
    costs by several models, whose axis the job does not name, has one for each. A title says which data are not as published;
    `notes` are lines above the legend."""
    look, room = style_of(style), inches(width)
    _refuse_no_runs(runs)
    title = figure.title and "\n".join([figure.title, *titles(runs, figure.title)])
    figure = by_cost_model(runs, replace(figure, title=title))
    if not figure.panel:
        return figure_of(_plot(runs, figure, None, look, room or COLUMN, notes))
    with mpl.rc_context(look.settings):
        drawn = draw_panels(runs, figure, look.titled, room, notes)
        draw_dollars(drawn)
        return drawn


def _refuse_no_runs(runs: Sequence[Run]) -> None:
    if not runs:
        raise UserError("there are no results to plot; `mpi-compress run JOB` makes them")


def _plot(runs: Sequence[Run], figure: FigureTable, ax: Axes | None, style: Style, width: float, notes: Sequence[str] = ()) -> Axes:
    _refuse_no_runs(runs)
    each, runs = runs, ended(runs)
    figure = replace(figure, bounds=figure.bounds or ["lyapunov_bound"] * (figure.y == "lyapunov"))  # the theorem's line
    with mpl.rc_context(style.settings):
        groups = by_seed(runs)
        labels, shared = labels_of(groups)
        named = ((run, label) for own, label in zip(groups, labels, strict=True) for run in own)
        plain = [replace(run, attrs=run.attrs | {"label": label, "overridden": ""}) for run, label in named]
        drawn = lines_of(plain, figure, style.name)
        if why := why_nothing(drawn, figure, runs):
            raise UserError(f"nothing to draw: {why}")
        on = plt.subplots(figsize=(width, HEIGHT))[1] if ax is None else ax
        noisy = draw_on(on, plain, drawn, figure, looks((line.label for line in drawn), figure.methods), style.name)
        above = ", ".join(filter(None, [heading(each, drawn, noisy), *shared]))
        beside = [*differing(runs), *notes, *tuned_for_others([(plain, figure)]), *all_doubts(runs)]
        title = "\n".join(filter(None, [above, *beside])) or None
        name_axes(on, figure, runs)
        on.set_title((figure.title or "") if style.titled else "")
        if ax is None:
            _settle(on, title, width)
        else:
            on.legend(title=title)
        draw_dollars(figure_of(on))
    return on


def _settle(ax: Axes, title: str | None, width: float) -> None:
    """Wrap what is written, and put the legend below: the figure grows by what stands around the plot."""
    figure = figure_of(ax)
    wrap_names(ax, width - _BESIDE, HEIGHT - 0.5)
    lines = len(ax.get_title().splitlines())
    above = lines * float(ax.title.get_fontsize()) * 1.25 / 72.0
    figure.set_figheight(HEIGHT + above)
    entries = {} if put_at_curves(ax) else handles_of([ax])
    figure.set_figheight(HEIGHT + above + (put_below(figure, entries, title) if entries or title else 0.0))


def refuse_format(file: Path, option: str = "-o") -> None:
    """UserError if a figure cannot be written as such a file."""
    if file.suffix not in FORMATS:
        raise UserError(f"{option} {file}: a figure is written as one of {', '.join(FORMATS)}")


def save(drawn: Axes | Figure, file: Path, dpi: int = 300, option: str = "-o") -> None:
    """Write the figure that was drawn, or that an `Axes` is on, as PNG, PDF or SVG with its fonts, whole or not at all, so that a
    viewer never sees half of it; UserError if it cannot be written."""
    refuse_format(file, option)
    part = file.with_name(f".{file.name}")
    draw_dollars(figure_of(drawn))
    try:
        with writing(file, option), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with mpl.rc_context({"pdf.fonttype": 42, "svg.fonttype": "none"}):
                figure_of(drawn).savefig(part, dpi=dpi)
            part.replace(file)
    finally:
        with suppress(OSError):
            part.unlink()
    _report_warnings(caught, file)


def _report_warnings(caught: Sequence[warnings.WarningMessage], file: Path) -> None:
    """Report the letters that the font lacks in one line, and Matplotlib's other warnings as they are."""
    lacking = dict[str, None]()
    for warning in caught:
        if glyph := re.match(r"Glyph (\d+) ", str(warning.message)):
            lacking[chr(int(glyph[1]))] = None
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if lacking:
        print_line(f"{file}: the font has no {' '.join(lacking)}; boxes stand there")


def redraw(runs: Sequence[Run], figure: FigureTable, file: Path) -> str:
    """Draw runs that have rows; UserError if the file cannot be written. Why that is not possible yet; "" if it is."""
    if not runs:
        return "no run has a record yet"
    try:
        drawn = draw(runs, figure)
    except UserError as error:
        return str(error)
    try:
        save(drawn, file)
    finally:
        plt.close(drawn)
    return ""
