"""0 on logarithmic axes, which have no place for it: curves start at the left edge, and end at the bottom."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.ticker import LogFormatterSciNotation, LogLocator

_ROOM = 0.09  # the share of the axis between 0 and the first point


def draw_starts(ax: Axes, starts: Sequence[tuple[float, tuple[float, float], str]]) -> None:
    """Draw where curves start, at x = 0, at the left edge of a logarithmic x axis, whose tick there says 0.

    Args:
        starts: for each curve its y at x = 0, its first point (x, y) that the axis can show, and its colour.
    """
    if not starts:
        return
    first = min(x for _, (x, _), _ in starts)
    drawn = [np.asarray(line.get_xdata(), dtype=float) for line in ax.lines if line.get_transform() == ax.transData]
    last = max(float(x.max()) for x in drawn if x.size)
    edge = first / max(last / first, 10.0) ** (_ROOM / (1 - _ROOM))
    pieces = [[(edge, y), point] for y, point, _ in starts]
    colours = [colour for *_, colour in starts]
    ax.add_collection(LineCollection(pieces, colors=colours, linewidths=0.7, linestyles=(0, (1, 2)), label="_start"))
    seen = dict.fromkeys(y for y, *_ in starts)
    ax.scatter([edge] * len(seen), list(seen), s=9, color="0.2", clip_on=False, zorder=3, label="_start")
    ax.set_xlim(left=edge)
    _tick_at(ax, edge, first)


def draw_ends(ax: Axes, ends: Sequence[tuple[tuple[float, float], float, str]]) -> None:
    """Draw where curves fall to y = 0, as the data itself does in one round: a line down to a triangle at the bottom.

    Args:
        ends: for each curve its last point (x, y) above 0, the x at which it is 0, and its colour.
    """
    bottom = ax.get_ylim()[0]
    for (before, y), x, colour in ends:
        if before > 0 or ax.get_xscale() != "log":
            ax.plot([before, x], [y, bottom], color=colour, linewidth=0.7, linestyle=(0, (1, 2)), label="_end")
        ax.plot([x], [bottom], marker="v", markersize=5, color=colour, linestyle="", clip_on=False, zorder=3, label="_end")
    if ends:
        ax.set_ylim(bottom=bottom)


def _tick_at(ax: Axes, edge: float, first: float) -> None:
    """A tick that says 0 at the edge, and no others before the first point."""

    class FromZero(LogLocator):
        def tick_values(self, vmin: float, vmax: float) -> Any:
            return [*([edge] if self.major else []), *(x for x in super().tick_values(vmin, vmax) if x >= first * (1 - 1e-9))]

        major = False

    class Zero(LogFormatterSciNotation):
        def __call__(self, x: float, pos: int | None = None) -> str:
            return "0" if abs(x - edge) < 1e-9 * edge else super().__call__(x, pos)

    major, minor = FromZero(), FromZero(subs="auto")
    major.major = True
    ax.xaxis.set_major_locator(major)
    ax.xaxis.set_minor_locator(minor)
    ax.xaxis.set_major_formatter(Zero())
