"""One plot: lines and their bounds, the names and units of its axes."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mpi_compress.figures.lines import Line, last_points, levels, lines, named, shown
from mpi_compress.job.tables import FigureTable
from mpi_compress.results.columns import FALLING_TO_ZERO, NAMES, UNITS
from mpi_compress.results.reader import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, told apart by colour-blind readers too; line styles and sparse markers tell the lines apart in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_PREFIXES = {-2: "µ", -1: "m", 0: "", 1: "k", 2: "M", 3: "G", 4: "T"}  # of 1000 to the power
_SHORT_AXIS = 8  # its end over its begin, where powers of ten make no ticks
LONGEST = 48  # letters of a legend's entry, on one plot; twice as many on a page
_SPARSE = 3  # points, up to which each has its marker
_CEILING = 10.0  # times what other curves reach, where curves that diverge leave the picture


def draw_on(
    ax: "Axes", runs: Sequence[Run], drawn: Sequence[Line], figure: FigureTable, names: Sequence[str],
    short: Mapping[str, str] | None = None, longest: int = LONGEST,
) -> None:  # fmt: skip
    """Lines, their bounds, and the axes' names and units; a name's place among `names` is its look."""
    xscale, yscale = scales(figure)
    points = figure.at is not None or figure.rows == "last"
    ceiling = math.inf if points else _ceiling(runs, figure)
    named_already = set()
    for line in drawn:
        look = names.index(line.label)
        own: dict[str, Any] = {
            "label": None if line.label in named_already else entry(line.label, longest), "color": COLOURS[look % len(COLOURS)],
            "linestyle": "-" if figure.bounds else _DASHES[look % len(_DASHES)],
        }  # fmt: skip
        named_already.add(line.label)
        if line.x is None:
            _draw_level(ax, line, yscale, own)
            continue
        keep = shown(line.x, line.y, xscale, yscale) & (line.y <= ceiling)
        marker = _MARKERS[(look + look // len(COLOURS)) % len(_MARKERS)]
        each = points or len(np.unique(line.x[keep])) <= _SPARSE
        ax.plot(line.x[keep], line.y[keep], **own, marker=marker, markevery=None if each else (0.03 + 0.02 * (look % 7), 0.2))
        if line.least is not None and line.most is not None and np.any(line.least < line.most):
            ax.fill_between(line.x[keep], line.least[keep], line.most[keep], color=own["color"], alpha=0.2, linewidth=0)
    for number, name in enumerate(figure.bounds):
        dashes = (0, (4 + 2 * number, 2))
        having = [r for r in runs if r.has(name)]
        for line in taker(figure, short)(having, figure.x, name):
            if line.x is not None:
                keep = shown(line.x, line.y, xscale, yscale)
                look = next(i for i, n in enumerate(names) if n == line.label or n.startswith(f"{line.label}: "))
                single = "_" if keep.sum() == 1 else None
                ax.plot(line.x[keep], line.y[keep], color=COLOURS[look % len(COLOURS)], ls=dashes, lw=0.9, marker=single)
        ax.plot([], [], color="0.4", ls=dashes, lw=0.9, label=NAMES.get(name, name))
    ax.set(xscale=xscale, yscale=yscale)
    for which, scale in (("x", xscale), ("y", yscale)):
        unit = _unit(ax, which, UNITS.get(getattr(figure, which), ""), scale)  # type: ignore[arg-type]
        text = axis_name(figure, which)  # type: ignore[arg-type]
        ax.set(**{f"{which}label": f"{text} [{unit}]" if unit and text else text})


def _draw_level(ax: "Axes", line: Line, yscale: str, look: Mapping[str, Any]) -> None:
    """A line across the plot, in a band where it is a median."""
    y, least, most = line.y[0], line.least, line.most
    if shown(line.y[:1], line.y[:1], "linear", yscale)[0]:
        ax.axhline(y, **look)
        if least is not None and most is not None and least[0] < most[0]:
            ax.axhspan(least[0], most[0], color=look["color"], alpha=0.2, linewidth=0)


def _ceiling(runs: Sequence[Run], figure: FigureTable) -> float:
    """Up to where curves are drawn if one of them diverges, so that the others can be seen."""
    columns = {c.strip() for c in figure.y.split(",")} & {"loss", "test_loss", *FALLING_TO_ZERO}
    if not columns or all(run.status != "diverged" for run in runs):
        return math.inf
    tops = [run.column(name)[: 1 if run.status == "diverged" else None] for run in runs for name in columns]
    return _CEILING * max(float(np.max(top, where=np.isfinite(top), initial=0.0)) for top in tops) or math.inf


def taker(figure: FigureTable, short: Mapping[str, str] | None) -> Any:
    """What makes lines of runs."""
    if figure.at:
        return partial(levels, at=figure.at)
    if figure.rows == "last":
        return last_points
    return partial(lines, name=named if short is None else lambda run: short[run.label])


def entry(label: str, most: int) -> str:
    """A label as a legend has it: not longer than a line, and not hidden, as those that begin with _ are."""
    label = f" {label}" if label.startswith("_") else label
    return label if len(label) <= most else f"{label[: most // 2]} … {label[-(most // 2 - 3) :]}"


def axis_name(figure: FigureTable, which: Literal["x", "y"]) -> str:
    """An axis' name, without its unit."""
    column, given = getattr(figure, which), getattr(figure, f"{which}label")
    if given is not None:
        return given
    return NAMES.get(column, column) if "," not in column else ""  # of several columns the legend says it


def scales(figure: FigureTable) -> tuple[str, str]:
    """Of x and y: what the figure says, or what suits its columns."""
    over_budgets = figure.x == "T" or figure.at is not None
    falls = figure.y.split(",")[0].strip() in FALLING_TO_ZERO
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
