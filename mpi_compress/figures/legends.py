"""Legends, below the plots, where they cover no curve."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.transforms import ScaledTranslation

from mpi_compress.evidence.lines import seeds_text
from mpi_compress.figures.curves import INNER
from mpi_compress.figures.words import measuring, width, wrapped
from mpi_compress.results.reader import Run

_BETWEEN = 1.5  # sizes of the font between two columns of entries


def put_under(legend: Legend) -> float:
    """Put a legend under its plot and the name of x; gives its height in inches."""
    ax, figure = legend.axes, figure_of(legend.axes)
    low = min(text.get_window_extent().y0 for text in (ax.xaxis.label, *ax.get_xticklabels()) if text.get_text()) - ax.bbox.y0
    legend.set(loc="upper center", frame_on=False)
    legend.set_bbox_to_anchor((0.5, 0.0), ax.transAxes + ScaledTranslation(0, low / figure.dpi, figure.dpi_scale_trans))
    return float(legend.get_window_extent().height) / figure.dpi


def figure_of(drawn: Axes | Figure) -> Figure:
    """The figure that was drawn, or that an `Axes` is on."""
    figure = drawn.get_figure(root=True)
    assert figure is not None
    return figure


def put_below(figure: Figure, entries: Mapping[str, Any], title: str | None) -> float:
    """Put a legend of entries and their handles below all plots of a figure; gives its height in inches."""
    size = mpl.rcParams["legend.fontsize"]
    handle = (mpl.rcParams["legend.handlelength"] + mpl.rcParams["legend.handletextpad"]) * size / 72.0
    room = figure.get_figwidth() - 0.15
    names = [wrapped(name, room - handle, size) for name in entries]
    most = handle + max(width(line, size) for name in names for line in name.splitlines() or [""])
    legend = figure.legend(
        list(entries.values()), names, loc="outside lower center", ncols=_abreast(len(names), most, room, size), frameon=False,
        title=None if title is None else wrapped(title, room, size), columnspacing=_BETWEEN,
    )  # fmt: skip
    with measuring():
        return float(legend.get_window_extent().height / figure.dpi)
    return len(names) * 1.5 * size / 72.0


def _abreast(entries: int, widest: float, room: float, size: float) -> int:
    """How many entries fit side by side, in rows that are equally full."""
    gap = _BETWEEN * size / 72.0
    most = max(1, int((room + gap) / (widest + gap)))
    return math.ceil(entries / math.ceil(entries / most))


def handles_of(each: Sequence[Axes]) -> dict[str, Any]:
    """The entries of several axes, each name once."""
    return {name: handle for ax in each for handle, name in zip(*ax.get_legend_handles_labels(), strict=True)}


def heading(runs: Sequence[Run], noisy: bool) -> str | None:
    """The legend's title, which says what lines and bands are where there are several seeds, or noise."""
    share = f"{100 * (INNER[1] - INNER[0]):.0f} % of nearby records"
    if over := seeds_text(runs):
        return f"median and range {over}" + (", and over nearby records if noisy" if noisy else "")
    return f"median and band of {share} if noisy" if noisy else None
