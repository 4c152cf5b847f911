"""Pictures of one run, its split and its bounds beside what it took; and that of performance profiles."""

from collections.abc import Sequence

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from mpi_compress.core.errors import UserError
from mpi_compress.evidence.profile import FACTORS, Profile
from mpi_compress.figures.axes import entry
from mpi_compress.figures.legends import handles_of, put_below
from mpi_compress.figures.style import COLUMN, HEIGHT, PAGE_WIDTH, STYLE, looks, style_of
from mpi_compress.results import bounds
from mpi_compress.results.columns import column_of
from mpi_compress.results.reader import Run
from mpi_compress.results.summary import partition_of

_NAMED = 10  # labels that a legend names; more have a scale of colours
_LINE = 0.16  # inches of a line of text


def draw_split(run: Run) -> Figure:
    """A bar for each worker, its rows stacked by label; UserError if the result does not have them."""
    if "rows" not in run.split:
        raise UserError(f"{run.file}: does not say which samples its workers had; an earlier version wrote it")
    rows = run.split["rows"]
    labels, counts = run.split.get("labels", np.empty(0)), run.split.get("counts", rows[:, np.newaxis])
    K = counts.shape[1]
    scale = mpl.cm.ScalarMappable(mpl.colors.Normalize(*labels[[0, -1]]), "viridis") if labels.size > _NAMED else None
    colours = mpl.colormaps["tab10"](np.arange(K)) if scale is None else scale.to_rgba(labels)
    with mpl.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(COLUMN, HEIGHT))
        for k, bottom in enumerate((np.cumsum(counts, axis=1) - counts).T):
            ax.bar(np.arange(rows.size), counts[:, k], 0.85 if rows.size <= 50 else 1.0, bottom, color=colours[k])
        ax.set(title=f"{run.attrs['data']}, {partition_of(run)}", xlabel="worker", ylabel="rows", xlim=(-0.6, rows.size - 0.4))
        ax.grid(visible=False, axis="x")
        ax.set_axisbelow(True)
        ax.xaxis.set_major_locator(mpl.ticker.MaxNLocator(integer=True))
        if scale is not None:
            figure.colorbar(scale, ax=ax, label="label")
        elif labels.size:
            bars = [mpl.patches.Patch(color=colour) for colour in colours]
            names = [f"{label:g}" for label in labels]
            figure.legend(bars, names, title="label", loc="outside right upper", frameon=False, handlelength=1)
    return figure


def draw_bounds(run: Run) -> Figure:
    """A run's bounds on rounds beside the rounds that it needed, CAT table 1 of `mpi-compress show`; UserError without any."""
    table = bounds.BoundsTable.of(run) if run.theory else None
    if table is None or not (cells := table.cells()):
        raise UserError(f"{run.file}: has no bounds of CAT's table 1; a run of cat or gd with log.theory = true has them")
    with mpl.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(2 * COLUMN, _LINE * (len(cells) + 4)))
        ax.axis("off")
        ax.set_title(f"{run.label}: rounds to an accuracy ε; least improvement {table.gain:.3g}, at worst {table.worst_gain:.3g}")
        drawn = ax.table(cells, colLabels=bounds.HEADS, loc="center", cellLoc="right", edges="horizontal")
        drawn.auto_set_font_size(False)
        drawn.set_fontsize(mpl.rcParams["font.size"])
    return figure


def draw_profiles(profiles: Sequence[Profile], style: str = "screen") -> Figure:
    """The share of targets that each method reaches within τ times the least, over τ from 1 to 100."""
    look_of = looks(method for profile in profiles for method in profile.methods)
    with mpl.rc_context(style_of(style).settings):
        figure, panels = plt.subplots(1, len(profiles), figsize=(PAGE_WIDTH, HEIGHT), sharey=True, squeeze=False)
        for ax, profile in zip(panels[0], profiles, strict=True):
            for method in (name for name in look_of if name in profile.ratios):
                ratios = sorted(ratio for ratio in profile.ratios[method] if ratio <= FACTORS[-1])
                share = np.array([*range(len(ratios) + 1), len(ratios)]) / profile.targets
                look = {**look_of[method].of_line, "marker": None, "label": entry(method)}
                ax.step([FACTORS[0], *ratios, FACTORS[-1]], share, where="post", **look)
            ax.set(xscale="log", xlim=(FACTORS[0], FACTORS[-1]), ylim=(0, 1.02), xlabel="τ, times the least")
            ax.set_title(column_of(profile.by).label)
        panels[0][0].set_ylabel("share of targets")
        figure.set_figheight(HEIGHT + put_below(figure, handles_of(list(panels[0])), None))
    return figure
