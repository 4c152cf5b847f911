"""The model of scale as a figure, and as a table of numbers."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from mpi_compress.planning.scale import PARTS, WAYS, ModelledRound, Way

Modelled = Mapping[str, Mapping[Way, Sequence[ModelledRound]]]
"""Rounds by label of the run, and by way."""

MOST = 12  # panels of a figure
_NUMBERS = (*PARTS, "seconds", "bits_up", "bits_down")


def csv_text(found: Modelled) -> str:
    """A line for each run, way and number of workers: seconds, and bits of a round."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["run", "way", "workers", *_NUMBERS, "fan_in", "largest"])
    for label, ways in found.items():
        for way, rounds in ways.items():
            for r in rounds:
                writer.writerow([label, way, r.n, *(f"{getattr(r, name):.6g}" for name in _NUMBERS), r.fan_in, r.largest])
    return out.getvalue()


def draw(found: Modelled, way: Way, file: Path) -> None:
    """Draw a panel for each of at most `MOST` runs: the parts of a round by this way, and rounds by all ways.

    Raises:
        UserError: the figure cannot be written.
    """
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    from mpi_compress.figures import plotting
    from mpi_compress.figures.style import COLOURS, COLUMN, HEIGHT, style_of

    columns = min(3, len(found))
    rows = math.ceil(len(found) / columns)
    with mpl.rc_context(style_of("screen").settings):
        figure, grid = plt.subplots(
            rows, columns, figsize=(COLUMN * columns, HEIGHT * rows + 0.5), squeeze=False, sharex=True, sharey=True
        )
        for ax in grid.flat[len(found) :]:
            ax.set_axis_off()
        for ax, (label, ways) in zip(grid.flat, found.items(), strict=False):
            for part, colour in zip(PARTS, COLOURS, strict=False):
                drawn = [(r.n, s) for r in ways[way] if (s := getattr(r, part)) > 0]
                ax.plot([n for n, _ in drawn], [s for _, s in drawn], "o-", color=colour, label=f"{part}, {way}")
            for each, dash in zip(WAYS, ("-", "--", ":"), strict=True):
                ax.plot([r.n for r in ways[each]], [r.seconds for r in ways[each]], dash, color="black", label=f"a round, {each}")
            ax.set(xscale="log", yscale="log", title=label)
        for ax in grid[-1]:
            ax.set_xlabel("workers")
        for ax in grid[:, 0]:
            ax.set_ylabel("seconds")
        figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=min(4, 2 * columns))
        plotting.save(figure, file)
        plt.close(figure)
