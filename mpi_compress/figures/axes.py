"""The axes of a plot, their scales, names and units, and the entries of its legend."""

import math
import re
from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Text
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from mpi_compress.core.errors import UserError
from mpi_compress.figures.words import wrapped
from mpi_compress.job.tables import FigureTable
from mpi_compress.results.columns import column_of
from mpi_compress.results.reader import Run
from mpi_compress.results.targets import Target, in_signs
from mpi_compress.results.units import COSTS, label_of, named_model, unit_of

_BOTH: tuple[Literal["x", "y"], ...] = ("x", "y")
_SHORT_AXIS = 12  # its end over its begin, where powers of ten make no ticks
_SUBS = (10, (1, 2, 5)), (2, (1, 1.5, 2, 3, 4, 5, 6, 8))  # of an axis that is so many times as long as its begin: two ticks or more
_TICKS, _RATIO = 9, 1.4  # values at most that have a tick each, and how far apart they are at least
_LARGE = 10_000.0  # a number without a unit, from which on ticks have a prefix


def name_axes(ax: Axes, figure: FigureTable, runs: Sequence[Run]) -> None:
    """Write the names and units of x and y, once the curves are drawn."""
    for which in _BOTH:
        given, column = getattr(figure, f"{which}label"), getattr(figure, which).strip()
        text = "" if "," in column else label_of(column, runs)  # the legend names several columns
        text = re.sub(r"^(up|down)\.(\w+)\.(\w+)$", r"\3 of the \1link's \2", text)
        if column in COSTS and (model := named_model(runs)) and model not in (figure.title or ""):
            text += f", {model}"
        text += "".join(f" to {in_signs(str(Target.of(*target)))}" for target in (figure.at or {}).items() if which == "y")
        unit = _unit(which, figure, runs)
        if not (which == "x" and figure.at and _tick_values(ax, column, runs)):
            _write_ticks(ax, which, unit)
        ax.set(**{f"{which}label": f"{text if given is None else given}{f' [{unit}]' if unit else ''}".strip()})


def _unit(which: str, figure: FigureTable, runs: Sequence[Run]) -> str:
    units = {unit_of(column.strip(), runs) for column in getattr(figure, which).split(",")}
    return units.pop() if len(units) == 1 else ""


def set_limits(ax: Axes, figure: FigureTable) -> None:
    """Cut the axes at the ends that the figure states; UserError for one that a logarithmic axis does not have."""
    for which, scale in zip(_BOTH, scales(figure), strict=True):
        if ends := getattr(figure, f"{which}lim"):
            if scale == "log" and ends[0] <= 0:
                raise UserError(f"{which}lim = {ends}: a logarithmic axis begins above 0")
            ax.set(**{f"{which}lim": ends})


def wrap_names(ax: Axes, width: float, height: float) -> None:
    """Wrap the names of the axes and the title where they would be wider, or higher, than there is room in inches."""
    _wrap(ax.yaxis.label, height)
    further = max(0, ax.yaxis.label.get_text().count("\n") - 1)  # there is room for two lines of it
    for text in (ax.xaxis.label, ax.title):
        _wrap(text, width - further * float(ax.yaxis.label.get_fontsize()) * 1.25 / 72.0)


def _wrap(text: Text, room: float) -> None:
    text.set_text(wrapped(text.get_text(), room, float(text.get_fontsize())))


def scales(figure: FigureTable) -> tuple[str, str]:
    """The scales of x and y: what the figure says, or what suits its columns."""
    over_budgets = figure.x == "T" or figure.at is not None
    falls = column_of(figure.ys[0]).falls
    xscale, yscale = ("log" if suits else "linear" for suits in (over_budgets, over_budgets or falls))
    return figure.xscale or xscale, figure.yscale or yscale


def _write_ticks(ax: Axes, which: Literal["x", "y"], unit: str) -> None:
    """Write ticks with a unit, or of large numbers, with prefixes such as "2 M", unless they are powers of ten; seconds as plain
    numbers. A logarithmic axis with fewer than two powers of ten, or a short one, gets further ticks."""
    axis, (low, high) = getattr(ax, f"{which}axis"), getattr(ax, f"get_{which}lim")()
    is_log = getattr(ax, f"get_{which}scale")() == "log"
    is_long = is_log and high >= _SHORT_AXIS * low
    if is_long and math.floor(math.log10(high)) > math.ceil(math.log10(low)):
        axis.set_minor_formatter(NullFormatter())
        return
    if is_log:
        subs = next((subs for ratio, subs in _SUBS if high >= ratio * low), None)
        axis.set_major_locator(LogLocator(subs=subs) if subs else MaxNLocator(5))
        axis.set_minor_locator(LogLocator(subs=range(1, 10)))  # so that it is seen to be logarithmic
        axis.set_minor_formatter(NullFormatter())
    if unit not in ("", "s") or max(abs(low), abs(high)) >= _LARGE:
        axis.set_major_formatter(EngFormatter())
    elif is_log or unit:
        axis.set_major_formatter("{x:g}")


def _tick_values(ax: Axes, key: str, runs: Sequence[Run]) -> bool:
    """Write a tick at each value of a swept key, drawn or not, where few lie apart on a logarithmic x axis; True if so."""
    values = np.unique([run.column(key)[-1] for run in runs if run.rows and run.has(key)]).astype(float)
    if ax.get_xscale() != "log" or not 1 < values.size <= _TICKS or values[0] <= 0 or np.min(values[1:] / values[:-1]) < _RATIO:
        return False
    ax.set_xticks(values, [f"{value:.4g}" for value in values])
    ax.xaxis.set_minor_locator(NullLocator())
    return True


def entry(label: str) -> str:
    """A label as a legend shows it: Matplotlib hides those that begin with _."""
    return f" {label}" if label.startswith("_") else label
