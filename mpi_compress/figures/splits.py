"""A picture of a split: a bar for each worker, stacked by label."""


import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from mpi_compress.core.errors import UserError
from mpi_compress.figures.style import COLUMN, HEIGHT, STYLE
from mpi_compress.results import split
from mpi_compress.results.reader import Run

_NAMED = 10  # labels that a legend names; more have a scale of colours


def draw_split(run: Run) -> Figure:
    """The rows of each worker by label, as a result has them; UserError if it does not say."""
    if "rows" not in run.split:
        raise UserError(f"{run.file}: does not say which rows its workers had; an earlier version wrote it")
    rows = run.split["rows"]
    labels, counts = run.split.get("labels", np.empty(0)), run.split.get("counts", rows[:, np.newaxis])
    K = counts.shape[1]
    scale = mpl.cm.ScalarMappable(mpl.colors.Normalize(*labels[[0, -1]]), "viridis") if labels.size > _NAMED else None
    colours = mpl.colormaps["tab10"](np.arange(K)) if scale is None else scale.to_rgba(labels)
    with mpl.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(COLUMN, HEIGHT))
        for k, bottom in enumerate((np.cumsum(counts, axis=1) - counts).T):
            ax.bar(np.arange(rows.size), counts[:, k], 0.85 if rows.size <= 50 else 1.0, bottom, color=colours[k])
        ax.set(title=f"{run.attrs['data']}, {split.name(run)}", xlabel="worker", ylabel="rows", xlim=(-0.6, rows.size - 0.4))
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
