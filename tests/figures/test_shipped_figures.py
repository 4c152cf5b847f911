"""Every figure of the jobs that ship, drawn from made-up results: nothing is cut off, nothing covers a curve."""

import itertools
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from helpers.made_up import made_up_results
from matplotlib.figure import Figure
from matplotlib.text import Text

from mpi_compress.figures import plotting
from mpi_compress.job.loading import load_job

ROOT = Path(__file__).parents[2]
JOBS = sorted(file for file in (ROOT / "jobs").rglob("*.toml"))
DPI = 60


def faults(figure: Figure) -> list[str]:
    """What is wrong with a figure as it is drawn."""
    figure.set_dpi(DPI)
    figure.canvas.draw()
    figure.set_layout_engine("none")
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    found = ["dark pixels at the border"] if min(e.min() for e in (pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1])) < 200 else []
    unseen = set(_unseen(figure))
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and text not in unseen:
            box = text.get_window_extent()
            inside = box.x0 > -0.5 and box.y0 > -0.5 and box.x1 < figure.bbox.x1 + 0.5 and box.y1 < figure.bbox.y1 + 0.5
            found += [] if inside else [f"outside the canvas: {text.get_text()!r}"]
    titles = [t for ax in figure.axes for t in (ax.title, ax.xaxis.label, ax.yaxis.label) if t.get_text()]
    for one, other in itertools.combinations(titles, 2):
        if one.get_window_extent().overlaps(other.get_window_extent()):
            found.append(f"{one.get_text()!r} is over {other.get_text()!r}")
    return found + list(_covered(figure))


def _unseen(figure):
    """The labels of ticks beyond the ends of their axes."""
    for axis in (axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)):
        low, high = sorted(axis.get_view_interval())
        for tick in (*axis.majorTicks, *axis.minorTicks):
            if not low * (1 - 1e-9) <= tick.get_loc() <= high * (1 + 1e-9):
                yield from (tick.label1, tick.label2)


def _covered(figure):
    """Legends that have anything but a plain ground behind them, or that reach into a plot from outside."""
    for legend in figure.legends:
        if any(legend.get_window_extent().overlaps(ax.get_tightbbox()) for ax in figure.axes):
            yield "the legend below reaches into a plot"
    legends = [(ax, ax.get_legend(), ax.get_legend().get_window_extent()) for ax in figure.axes if ax.get_legend()]
    for ax, legend, _ in legends:
        legend.set_visible(False)
        ax.grid(visible=False)
    if legends:
        figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[::-1, :, :3]
    for ax, legend, box in legends:
        if box.x0 < ax.bbox.x0 or box.x1 > ax.bbox.x1:
            yield f"a legend is wider than its plot: {[t.get_text() for t in legend.get_texts()]}"
        x0, y0, x1, y1 = (round(v) for v in box.extents)
        behind = pixels[max(0, y0 + 1) : y1 - 1, max(0, x0 + 1) : x1 - 1]
        if behind.size == 0 or behind.min() < 200:
            yield f"a legend covers something: {[t.get_text() for t in legend.get_texts()]}"


LINK = """
affine = { c0 = 1e-4, c1 = 1e-9 }
packet = { c0 = 1e-4, c1 = 1e-5, pmax = 12000 }
points = { bits = [8, 80000], seconds = [1e-4, 2e-4] }
"""


FEW = ("demo", "aiade/bits-a9a", "cat/fig1", "deep/gspar-fig4", "gspar/fig5", "ht/fig1", "literature/workers", "records/mushrooms")
NAMES = {file.relative_to(ROOT / "jobs").with_suffix("").as_posix(): file for file in JOBS}


@pytest.mark.parametrize("file", [pytest.param(NAMES[n], marks=[] if n in FEW else [pytest.mark.slow], id=n) for n in NAMES])
def test_nothing_is_cut_off_and_no_legend_covers_a_curve(file, tmp_path, monkeypatch):
    (tmp_path / "link.toml").write_text(LINK)
    monkeypatch.chdir(tmp_path)
    job = load_job(file)
    if missing := next((spec.missing for spec in job.runs if spec.missing), ""):
        pytest.skip(missing.partition(":")[0])
    figure = plotting.draw(made_up_results(job), job.titled_figure)
    try:
        assert faults(figure) == []
    finally:
        mpl.pyplot.close(figure)
