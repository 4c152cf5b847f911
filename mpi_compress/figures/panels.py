"""Figures of several panels, a page wide, with one legend."""

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mpi_compress.core.errors import UserError
from mpi_compress.figures.axes import INSIDE, LINE, LONGEST, abreast, axis_name, entry, over_seeds
from mpi_compress.figures.curves import COLOURS, draw_on, lines_of
from mpi_compress.figures.lines import Line, by_seed, tuned_text, without_common
from mpi_compress.job.tables import FigureTable, PanelTable
from mpi_compress.results.columns import column_of
from mpi_compress.results.reader import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PAGE = 6.9  # inches: the width of a paper's page
_HEIGHT = 1.65  # inches: of one of three panels in a row


@dataclass(frozen=True)
class _Panel:
    """A panel with what is drawn in it."""

    figure: FigureTable
    runs: list[Run]
    short: Mapping[str, str]  # label → the label without the values that all of the panel's runs share
    lines: list[Line]


def panels(runs: Sequence[Run], figure: FigureTable) -> Iterator[tuple[PanelTable, FigureTable, list[Run]]]:
    """Each panel that has results, the figure that it is by itself, and its runs."""
    for panel in figure.panel:
        own = {key: value for key, value in vars(panel).items() if key != "runs" and value is not None}
        chosen = [run for run in runs if panel.shows(run.label)]
        if chosen:
            yield panel, replace(figure, **{"title": "", **own}, panel=[]), chosen


def draw_panels(runs: Sequence[Run], figure: FigureTable) -> "Figure":
    """The panels that have results, in a grid with one legend below; UserError if none has."""
    import matplotlib.pyplot as plt

    each = [_panel(own, chosen) for _, own, chosen in panels(runs, figure)]
    if not each:
        raise UserError("there are no results of the runs that the panels show; `mpi-compress run JOB` makes them")
    names = list(dict.fromkeys(line.label for panel in each for line in panel.lines))
    columns = min(figure.columns, len(each))
    rows = math.ceil(len(each) / columns)
    bounds = list(dict.fromkeys(bound for panel in each for bound in panel.figure.bounds))
    side_by_side = abreast([entry(name, 2 * LONGEST) for name in (*names, *bounds)], _PAGE)
    title = "\n".join(textwrap.fill(line, 110) for line in (figure.title or "").splitlines())
    texts = math.ceil((len(names) + len(bounds)) / side_by_side) + title.count("\n") + 3
    height = _HEIGHT * (1.0 if columns > 2 else 1.25)
    fig, grid = plt.subplots(rows, columns, figsize=(_PAGE, rows * height + texts * LINE), squeeze=False)
    for ax in grid.flat[len(each) :]:
        ax.remove()
    handles: dict[str, Any] = {}
    for i, panel in enumerate(each):
        ax = grid.flat[i]
        _draw_panel(ax, panel, names)
        found = ax.get_legend_handles_labels()
        handles |= dict(zip(found[1], found[0], strict=True))
        if i % columns and axis_name(panel.figure, "y") == axis_name(each[i - 1].figure, "y"):
            ax.set_ylabel("")
        if i + columns < len(each) and axis_name(panel.figure, "x") == axis_name(each[i + columns].figure, "x"):
            ax.set_xlabel("")
    seeds = over_seeds(list({run.file: run for panel in each for run in panel.runs}.values()))
    fig.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=side_by_side, frameon=False, title=seeds)
    fig.suptitle(title, fontsize=9)
    return fig


def _panel(figure: FigureTable, runs: list[Run]) -> _Panel:
    short = without_common([run.label for run in runs])
    return _Panel(figure, runs, short, lines_of(runs, figure, short))


def _draw_panel(ax: "Axes", panel: _Panel, names: Sequence[str]) -> None:
    """The curves of a panel, and its notes in the curves' colours."""
    from matplotlib.lines import Line2D

    draw_on(ax, panel.runs, panel.lines, panel.figure, names, panel.short, 2 * LONGEST)
    ax.set_title(panel.figure.title or "")
    notes = _notes(panel.runs, panel.figure)
    if 0 < len(notes) <= INSIDE:
        looks = [Line2D([], [], color=COLOURS[names.index(panel.short[label]) % len(COLOURS)]) for label in notes]
        ax.legend(
            looks, notes.values(), labelcolor="linecolor", handlelength=0, handletextpad=0, fontsize=6, borderpad=0.3,
            labelspacing=0.2, framealpha=0.7,
        )  # fmt: skip


def _notes(runs: Sequence[Run], figure: FigureTable) -> dict[str, str]:
    """For each label of a panel what was tuned, and the last entries of the columns that are to be noted."""
    notes = {}
    for group in by_seed(runs):
        run = group[0]
        known = [name for name in figure.notes if name in run.trace]
        parts = [tuned_text(run), *(f"{column_of(name).short or name} = {run.trace[name][-1]:.3g}" for name in known)]
        notes[run.label] = ", ".join(part for part in parts if part)
    return {label: note for label, note in notes.items() if note}
