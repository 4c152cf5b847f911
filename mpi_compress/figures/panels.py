"""Figures of several panels, a page wide, with one legend."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mpi_compress.core.errors import UserError
from mpi_compress.core.patterns import is_chosen
from mpi_compress.evidence.lines import Line, by_seed, changes, ended, label_of_run, seed_of_all, tuned_text, without_common
from mpi_compress.evidence.problems import differing
from mpi_compress.figures.axes import name_axes, wrap_names
from mpi_compress.figures.curves import draw_on, lines_of, why_nothing
from mpi_compress.figures.legends import figure_of, handles_of, heading, put_below, put_under, tuned_for_others
from mpi_compress.figures.style import NARROWEST, PAGE_WIDTH, PANEL, Look, looks
from mpi_compress.figures.words import measuring, wrapped
from mpi_compress.job.tables import FigureTable, PanelTable
from mpi_compress.results.columns import column_of
from mpi_compress.results.reader import Run
from mpi_compress.results.summary import all_doubts
from mpi_compress.results.tuning import caveat
from mpi_compress.results.units import COSTS, model_of, unit_of

_IN_PAIRS = 4  # panels of cost models; more are three in a row
_NOTES = 4  # more are left out
_SMALL = 6  # points: the letters of notes
_BESIDE = 0.55  # inches of a panel's width, for the ticks and the name of its y axis


@dataclass(frozen=True)
class _Panel:
    figure: FigureTable
    runs: list[Run]

    @cached_property
    def short(self) -> Mapping[str, str]:
        """By label: the label without the values that all of the panel's runs share, as other panels have it; and without the end
        that they share, such as ", packets", where the panel has a title."""
        shown = {run.label: label_of_run(run) for run in self.runs}
        short = without_common([*shown.values()])
        names, ends = {*short.values()}, {name.rpartition(", ")[2] for name in short.values()}
        shares = self.figure.title and len(ends) == 1 < len(names)
        return {label: short[name].rpartition(", ")[0] if shares else short[name] for label, name in shown.items()}

    @cached_property
    def lines(self) -> list[Line]:
        return lines_of(self.runs, self.figure, self.name)

    def name(self, run: Run) -> str:
        """The name of a run's line."""
        return self.short[run.label]


def panels(runs: Sequence[Run], figure: FigureTable) -> Iterator[tuple[PanelTable, FigureTable, list[Run]]]:
    """Each panel that has results, the figure that it is by itself, and its runs."""
    for panel in figure.panel:
        own = {key: value for key, value in vars(panel).items() if key != "runs" and value is not None}
        # the figure's name of an axis, and its ends, are those of its own column
        others = [axis for axis in ("x", "y") if own.get(axis, getattr(figure, axis)) != getattr(figure, axis)]
        named = {f"{axis}{what}": None for axis in others for what in ("label", "lim")}
        chosen = [run for run in runs if is_chosen(run.label, panel.runs)]
        if chosen:
            yield panel, replace(figure, **{"title": "", **named, **own}, panel=[]), chosen


def by_cost_model(runs: Sequence[Run], figure: FigureTable) -> FigureTable:
    """The figure with a panel for each cost model, where an axis of costs that the job does not name would mix models."""
    if figure.panel:
        tables = [new for panel, own, chosen in panels(runs, figure) for new in _split(panel, own, chosen)]
        return replace(figure, panel=tables) if len(tables) > len(figure.panel) else figure
    split = _split(PanelTable(), figure, runs)
    return replace(figure, panel=split, columns=2 if len(split) <= _IN_PAIRS else 3) if len(split) > 1 else figure


def _split(panel: PanelTable, own: FigureTable, runs: Sequence[Run]) -> list[PanelTable]:
    """A panel for each cost model of the runs, or the panel itself, as where x is what models differ in."""
    of_costs = any(getattr(own, which) in COSTS and getattr(own, f"{which}label") is None for which in ("x", "y"))
    mixed = of_costs and not own.x.startswith("cost.")
    labels: dict[str, dict[str, None]] = {}
    for run in runs if mixed else ():
        labels.setdefault(model_of(run), {})[run.label] = None
    if len(labels) < 2:
        return [panel]
    return [replace(panel, title=f"{panel.title or ''}\n{model}".strip(), runs=[*names]) for model, names in labels.items()]


def draw_panels(
    runs: Sequence[Run], figure: FigureTable, titled: bool = True, width: float | None = None, notes: Sequence[str] = ()
) -> Figure:
    """The panels that have results, in a grid with one legend below; UserError if none has, or none has anything to draw."""
    width = width or PAGE_WIDTH
    each = [_Panel(own, ended(chosen)) for _, own, chosen in panels(runs, figure)]
    if not each:
        raise UserError("there are no results of the runs that the panels show; `mpi-compress run JOB` makes them")
    if all(whys := [why_nothing(panel.lines, panel.figure, panel.runs) for panel in each]):
        raise UserError(f"nothing to draw: {whys[0]}")
    look_of = looks((line.label for panel in each for line in panel.lines), figure.methods)
    columns = max(1, min(figure.columns, len(each), int(width / NARROWEST)))
    rows = math.ceil(len(each) / columns)
    height = PANEL * (1.0 if columns > 2 else 1.25)
    fig, grid = plt.subplots(rows, columns, figsize=(width, rows * height), squeeze=False)
    for ax in grid.flat[len(each) :]:
        ax.remove()
    axes = list(grid.flat[: len(each)])
    noisy = [draw_on(ax, p.runs, p.lines, p.figure, look_of, p.name) for ax, p in zip(axes, each, strict=True)]
    _share_costs(axes, each)
    _name_panels(axes, each, columns, (width / columns - _BESIDE, height - 0.7))
    all_runs = list({run.file: run for *_, chosen in panels(runs, figure) for run in chosen}.values())
    further = [ax.get_title().count("\n") + ax.get_xlabel().count("\n") for ax in axes]  # lines around each panel beyond one each
    rooms = rows * height + 0.14 * sum(max(further[row * columns : (row + 1) * columns]) for row in range(rows))
    if titled:
        title = fig.suptitle(wrapped(figure.title or "", width - 0.2, 9), fontsize=9)
        rooms += (title.get_text().count("\n") + 1) * 0.16
    changed = "; ".join(dict.fromkeys([*(c for run in all_runs for c in changes(run)), *seed_of_all(all_runs)]))
    said = heading(all_runs, (line for panel in each for line in panel.lines), any(noisy))
    others = tuned_for_others((panel.runs, panel.figure) for panel in each)
    above = filter(None, [said, changed, *differing(all_runs), *notes, *others, *all_doubts(all_runs)])
    rooms += put_below(fig, handles_of(axes), "\n".join(above) or None)
    fig.set_figheight(rooms)
    with measuring():
        fig.draw_without_rendering()
    under = [_write_notes(ax, panel, look_of, titled) for ax, panel in zip(axes, each, strict=True)]
    fig.set_figheight(rooms + sum(max(under[row * columns : (row + 1) * columns]) for row in range(rows)))
    return fig


def _share_costs(axes: Sequence[Axes], each: Sequence[_Panel]) -> None:
    """Give panels of costs, one for each model, in one unit the same ends of x: what they show is compared."""
    columns, models = zip(*((panel.figure.x, model_of(panel.runs[0])) for panel in each), strict=True)
    units = {unit_of(columns[0], panel.runs) for panel in each}
    if columns[0] in COSTS and len({*columns}) == len(units) == 1 and len({*models}) == len(each):
        ends = [end for ax in axes for end in ax.get_xlim()]
        for ax in axes:
            ax.set_xlim(min(ends), max(ends))


def _name_panels(axes: Sequence[Axes], each: Sequence[_Panel], columns: int, room: tuple[float, float]) -> None:
    """Titles of panels, and names of axes where the panel to the left, or the one below, does not have the same."""
    for ax, panel in zip(axes, each, strict=True):
        name_axes(ax, panel.figure, panel.runs)
    xs, ys = [ax.get_xlabel() for ax in axes], [ax.get_ylabel() for ax in axes]
    for i, (ax, panel) in enumerate(zip(axes, each, strict=True)):
        ax.set_title(panel.figure.title or "")
        if i % columns and ys[i] == ys[i - 1]:
            ax.set_ylabel("")
        if xs[i] in xs[i + columns : i + columns + 1]:
            ax.set_xlabel("")
        wrap_names(ax, *room)


def _write_notes(ax: Axes, panel: _Panel, look_of: Mapping[str, Look], titled: bool) -> float:
    """Write a panel's notes under it, in their curves' colours, unless they are many; the inches that they take there."""
    notes, room = _notes(panel.runs, panel.figure, titled), ax.bbox.width / figure_of(ax).dpi - 0.1
    if not 0 < len(notes) <= _NOTES:
        return 0.0
    looks_of = {label: look_of[line.label].of_line for line in panel.lines for label in line.of}
    curves = [Line2D([], [], color=looks_of[label]["color"]) for label in notes]
    whole = [f"{panel.short[label]}: {note}".replace(" = ", "\u00a0=\u00a0") for label, note in notes.items()]  # not broken there
    legend = ax.legend(
        curves, [wrapped(text, room, _SMALL).replace("\u00a0", " ") for text in whole], labelcolor="linecolor",
        fontsize=_SMALL, handlelength=0, handletextpad=0, borderpad=0.3, labelspacing=0.2,
    )  # fmt: skip
    with measuring():
        return put_under(legend)
    return 0.0


def _notes(runs: Sequence[Run], figure: FigureTable, titled: bool) -> dict[str, str]:
    """What was tuned for each label of a panel, if no paper's text says so, and the last entries of the columns to be noted."""
    notes = {}
    for run, *_ in by_seed(runs):
        known = [f"{column_of(name).short or name} = {run.trace[name][-1]:.3g}" for name in figure.notes if name in run.trace]
        tuned = tuned_text(run) if titled or caveat(run.tuned) else ""
        notes[run.label] = ", ".join(filter(None, [tuned, *known]))
    return {label: note for label, note in notes.items() if note}
