"""The axes of a plot, their scales, names and units, and the entries of its legend."""

import math
from collections.abc import Sequence
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullFormatter, NullLocator

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


def name_axes(row: Sequence[tuple[Axes, FigureTable, Sequence[Run]]]) -> None:
    """Write the names and units of x and y of plots side by side, once their curves are drawn. Axes of one unit have one prefix."""
    for which in _BOTH:
        kinds = [_unit(which, figure, runs) or getattr(figure, which) for _, figure, runs in row]
        for (ax, figure, runs), kind in zip(row, kinds, strict=True):
            given, column = getattr(figure, f"{which}label"), getattr(figure, which).strip()
            own = "" if "," in column else column_of(column).label  # the legend names several columns
            if column in COSTS and (model := named_model(runs)):
                own += f", {model}"
            alike, text = [other for (other, *_), k in zip(row, kinds, strict=True) if k == kind], own if given is None else given
            unit = _ticked(ax, which, _unit(which, figure, runs), alike)
            ax.set(**{f"{which}label": f"{text} [{unit}]".strip() if unit else text})


def _unit(which: str, figure: FigureTable, runs: Sequence[Run]) -> str:
    units = {unit_of(column.strip(), runs) for column in getattr(figure, which).split(",")}
    return units.pop() if len(units) == 1 else ""


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


def _ticked(ax: Axes, which: Literal["x", "y"], unit: str, alike: Sequence[Axes] = ()) -> str:
    """The unit of an axis and of those `alike`, with a prefix where ticks would have many digits without, unless one of them has
    powers of ten for ticks. A short logarithmic axis gets plain ticks."""
    axis, scale = getattr(ax, f"{which}axis"), getattr(ax, f"get_{which}scale")()
    from_zero = which == "x" and any(each.get_label() == "_start" for each in ax.collections)
    short = scale == "log" and _is_short(ax, which) and not from_zero
    if scale == "log" and not short:
        axis.set_minor_formatter(NullFormatter())
        return unit
    if short:
        axis.set_major_locator(MaxNLocator(5))
        axis.set_minor_locator(NullLocator())
    end = max(abs(end) for each in (ax, *alike) for end in getattr(each, f"get_{which}lim")())
    powers = any(getattr(each, f"get_{which}scale")() == "log" and not _is_short(each, which) for each in alike)
    if not unit or powers:
        if short or end >= _LARGE:
            axis.set_major_formatter(lambda value, _: number(value, end))
        return unit
    power = min(max(math.floor(math.log10(end) / 3), min(_PREFIXES)), max(_PREFIXES)) if end > 0 else 0
    axis.set_major_formatter(lambda value, _: f"{value / 1000.0**power:.6g}")
    return _PREFIXES[power] + unit


def _is_short(ax: Axes, which: Literal["x", "y"]) -> bool:
    low, high = getattr(ax, f"get_{which}lim")()
    return bool(0 < low < high < _SHORT_AXIS * low)


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
