"""The axes of a plot, their scales, names and units, and the entries of its legend."""

import math
from collections.abc import Sequence
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullLocator

from mpi_compress.core.errors import UserError
from mpi_compress.figures.words import number, wrapped
from mpi_compress.job.tables import FigureTable
from mpi_compress.results.columns import column_of
from mpi_compress.results.reader import Run
from mpi_compress.results.units import COSTS, named_model, unit_of

LONGEST = 48  # letters of an entry, on one plot; twice as many on a page
_BOTH: tuple[Literal["x", "y"], ...] = ("x", "y")
_PREFIXES = {-2: "µ", -1: "m", 0: "", 1: "k", 2: "M", 3: "G", 4: "T"}  # prefixes by the power of 1000
_SHORT_AXIS = 12  # its end over its begin, where powers of ten make no ticks
_LARGE = 10_000.0  # a number without a unit, from which on an axis has a prefix


def name_axes(ax: Axes, figure: FigureTable, runs: Sequence[Run]) -> None:
    """Write the names and units of x and y, once the curves are drawn."""
    for which, scale in zip(_BOTH, scales(figure), strict=True):
        given, columns = getattr(figure, f"{which}label"), [c.strip() for c in getattr(figure, which).split(",")]
        own = column_of(columns[0]).label if len(columns) == 1 else ""  # the legend names several columns
        if own and columns[0] in COSTS and (model := named_model(runs)):
            own += f", {model}"
        units, text = {unit_of(column, runs) for column in columns}, own if given is None else given
        unit = _ticked(ax, which, units.pop() if len(units) == 1 else "", scale)
        ax.set(**{f"{which}label": f"{text} [{unit}]".strip() if unit else text})


def set_limits(ax: Axes, figure: FigureTable) -> None:
    """Cut the axes at the ends that the figure states; UserError for one that a logarithmic axis does not have."""
    for which, scale in zip(_BOTH, scales(figure), strict=True):
        ends = getattr(figure, f"{which}lim")
        if ends is not None and scale == "log" and ends[0] <= 0:
            raise UserError(f"{which}lim = {ends}: a logarithmic axis begins above 0")
        if ends is not None:
            ax.set(**{f"{which}lim": ends})


def wrap_names(ax: Axes, width: float, height: float) -> None:
    """Wrap the names of the axes and the title where they would be wider, or higher, than there is room in inches."""
    for text, room in ((ax.xaxis.label, width), (ax.yaxis.label, height), (ax.title, width)):
        text.set_text(wrapped(text.get_text(), room, float(text.get_fontsize())))


def scales(figure: FigureTable) -> tuple[str, str]:
    """The scales of x and y: what the figure says, or what suits its columns."""
    over_budgets = figure.x == "T" or figure.at is not None
    falls = column_of(figure.y.split(",")[0].strip()).falls
    xscale, yscale = ("log" if suits else "linear" for suits in (over_budgets, over_budgets or falls))
    return figure.xscale or xscale, figure.yscale or yscale


def _ticked(ax: Axes, which: Literal["x", "y"], unit: str, scale: str) -> str:
    """The unit of an axis, with a prefix where ticks would have many digits without. A short logarithmic axis gets plain ticks."""
    axis = ax.xaxis if which == "x" else ax.yaxis
    least, most = ax.get_xlim() if which == "x" else ax.get_ylim()
    short = scale == "log" and 0 < least < most < _SHORT_AXIS * least
    if scale == "log" and not short:
        return unit
    if short:
        axis.set_major_locator(MaxNLocator(5))
        axis.set_minor_locator(NullLocator())
    end = max(abs(least), abs(most))
    if not unit:
        if short or end >= _LARGE:
            axis.set_major_formatter(lambda value, _: number(value, end))
        return ""
    power = min(max(math.floor(math.log10(end) / 3), min(_PREFIXES)), max(_PREFIXES)) if end > 0 else 0
    axis.set_major_formatter(lambda value, _: f"{value / 1000.0**power:.6g}")
    return _PREFIXES[power] + unit


def entry(label: str, most: int) -> str:
    """A label as a legend shows it: a line at most, parts of its middle left out; Matplotlib hides those that begin with _."""
    label = f" {label}" if label.startswith("_") else label
    if len(label) <= most:
        return label
    first, *parts = label.split(", ")
    while len(parts) > 1 and len(f"{first}, …, {', '.join(parts)}") > most:
        parts = parts[1:]
    short = f"{first}, …, {', '.join(parts)}"
    return short if parts and len(short) <= most else f"{label[: most // 2]} … {label[-(most // 2 - 3) :]}"
