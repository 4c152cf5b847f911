"""The axes of a plot: their scales, names and units."""

import math
from typing import TYPE_CHECKING, Literal

from mpi_compress.job.tables import FigureTable
from mpi_compress.results.columns import column_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    return (
        figure.xscale or ("log" if over_budgets else "linear"),
        figure.yscale or ("log" if over_budgets or falls else "linear"),
    )


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
