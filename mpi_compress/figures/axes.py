"""The axes of a plot, their scales, names and units, and the entries of its legend."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from mpi_compress.figures.lines import by_seed
from mpi_compress.job.tables import FigureTable
from mpi_compress.results.columns import column_of
from mpi_compress.results.reader import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST = 48  # letters of an entry, on one plot; twice as many on a page
LINE, _LETTER = 0.16, 0.05  # inches of an entry's text
INSIDE = 4  # entries that have room among the curves
_BOTH: tuple[Literal["x", "y"], ...] = ("x", "y")
_PREFIXES = {-2: "µ", -1: "m", 0: "", 1: "k", 2: "M", 3: "G", 4: "T"}  # of 1000 to the power
_SHORT_AXIS = 8  # its end over its begin, where powers of ten make no ticks


def name_axes(ax: "Axes", figure: FigureTable) -> None:
    """Write the names and units of x and y, once the curves are drawn."""
    for which, scale in zip(_BOTH, scales(figure), strict=True):
        unit, text = _unit(ax, which, column_of(getattr(figure, which)).unit, scale), axis_name(figure, which)
        ax.set(**{f"{which}label": f"{text} [{unit}]" if unit and text else text})


def axis_name(figure: FigureTable, which: Literal["x", "y"]) -> str:
    """An axis' name, without its unit."""
    column, given = getattr(figure, which), getattr(figure, f"{which}label")
    if given is not None:
        return given
    return column_of(column).label if "," not in column else ""  # of several columns the legend says it


def scales(figure: FigureTable) -> tuple[str, str]:
    """The scales of x and y: what the figure says, or what suits its columns."""
    over_budgets = figure.x == "T" or figure.at is not None
    falls = column_of(figure.y.split(",")[0].strip()).falls
    xscale, yscale = ("log" if suits else "linear" for suits in (over_budgets, over_budgets or falls))
    return figure.xscale or xscale, figure.yscale or yscale


def _unit(ax: "Axes", which: Literal["x", "y"], unit: str, scale: str) -> str:
    """The unit of an axis, with a prefix where ticks would have many digits without. A short logarithmic axis gets plain ticks."""
    from matplotlib.ticker import MaxNLocator, NullLocator

    axis = ax.xaxis if which == "x" else ax.yaxis
    least, most = ax.get_xlim() if which == "x" else ax.get_ylim()
    if scale == "log" and 0 < least < most < _SHORT_AXIS * least:
        axis.set_major_locator(MaxNLocator(5))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(lambda value, _: f"{value:.6g}")
    if scale == "log" or not unit:
        return unit
    end = max(abs(least), abs(most))
    power = min(max(math.floor(math.log10(end) / 3), min(_PREFIXES)), max(_PREFIXES)) if end > 0 else 0
    axis.set_major_formatter(lambda value, _: f"{value / 1000.0**power:.6g}")
    return _PREFIXES[power] + unit


def entry(label: str, most: int) -> str:
    """A label as a legend shows it: not longer than a line; Matplotlib hides those that begin with _."""
    label = f" {label}" if label.startswith("_") else label
    return label if len(label) <= most else f"{label[: most // 2]} … {label[-(most // 2 - 3) :]}"


def abreast(names: Sequence[str], width: float) -> int:
    """How many entries fit side by side in this width, in rows that are equally full."""
    most = max(1, int(width / (0.45 + _LETTER * max(map(len, names)))))
    return math.ceil(len(names) / math.ceil(len(names) / most))


def over_seeds(runs: Sequence[Run]) -> str | None:
    """The legend's title, which says what lines and bands are where there are several seeds."""
    most = max(map(len, by_seed(runs)))
    return f"median and range over {most} seeds" if most > 1 else None
