"""Legends, below the plots, where they cover no curve."""

import itertools
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.transforms import ScaledTranslation

from mpi_compress.evidence.lines import Line, by_seed, ended, label_of_run, seeds_text, unfinished
from mpi_compress.evidence.notes import said_of, tuned_for
from mpi_compress.figures.words import draw_dollars, measuring, width, wrapped
from mpi_compress.job.tables import FigureTable
from mpi_compress.results.reader import Run, rising
from mpi_compress.results.targets import Target, grows

_BETWEEN = 1.5  # sizes of the font between two columns of entries
_AT_CURVES = 6  # curves, up to which their names may stand beside them
_SHARES = np.linspace(1, 0.1, 10)  # of the way along a curve, where its name is tried
_APART = 2.0  # points at least from a name to the curves of others
_SIDES = (((4, 0), "left", "center"), ((3, 3), "left", "bottom"), ((-3, 3), "right", "bottom"), ((-3, -3), "right", "top"))


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
    if not entries and title is not None:
        below = figure.supxlabel(wrapped(title, figure.get_figwidth() - 0.15, size), fontsize=size)
        return len(below.get_text().splitlines()) * 1.5 * size / 72.0
    handle = (mpl.rcParams["legend.handlelength"] + mpl.rcParams["legend.handletextpad"]) * size / 72.0
    room = figure.get_figwidth() - 0.15
    names = [wrapped(name, room - handle, size) for name in entries]
    most = handle + max((width(line, size) for name in names for line in name.splitlines()), default=0.0)
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
    return math.ceil(entries / math.ceil(entries / most)) if entries else 1


def put_at_curves(ax: Axes) -> bool:
    """Write each curve's name at its end, or along it, in its colour, where all have room: then no legend is needed. True if so."""
    entries, names = handles_of([ax]), list[Text]()
    if len(entries) > _AT_CURVES or any("$" in name for name in entries):
        return False
    draw_dollars(figure_of(ax))
    with measuring():
        figure_of(ax).draw_without_rendering()
    taken = [text.get_window_extent() for text in ax.texts if text.get_text()]  # as the value of a point far below
    paths = {line: line.get_transform().transform_path(line.get_path()) for line in ax.lines}
    for name, line in entries.items():
        vertices = ax.transAxes.inverted().transform(paths[line].vertices)
        points = vertices[np.all((vertices >= 0) & (vertices <= 1), axis=1)]
        if not points.size:
            break
        along_x = points[0, 0] + _SHARES * (points[-1, 0] - points[0, 0])
        at = zip(along_x, np.interp(along_x, *points.T), strict=True)
        for where, (offset, across, along) in itertools.product(at, _SIDES):
            text = ax.annotate(name, where, offset, "axes fraction", "offset points", ha=across, va=along, color=line.get_color())
            text.set_fontsize(mpl.rcParams["legend.fontsize"])
            with warnings.catch_warnings(action="ignore"):  # of letters that the font lacks, which `save` says
                box = text.get_window_extent()
            fits = all(ax.bbox.contains(*corner) for corner in (box.min, box.max)) and not box.count_overlaps(taken)
            room = {each: box if each is line else box.padded(_APART * figure_of(ax).dpi / 72) for each in paths}
            if fits and not any(path.intersects_bbox(room[each], filled=False) for each, path in paths.items()):
                taken.append(box)
                names.append(text)
                break
            text.remove()
    if len(names) < len(entries):
        for written in names:
            written.remove()
    return len(names) == len(entries)


def handles_of(each: Sequence[Axes]) -> dict[str, Any]:
    """The entries of several axes, each name once."""
    return {name: handle for ax in each for handle, name in zip(*ax.get_legend_handles_labels(), strict=True)}


def heading(runs: Sequence[Run], drawn: Iterable[Line], noisy: bool) -> str | None:
    """The legend's title, which says what drawn lines and bands are where there are several seeds, or noise, and how many of the
    runs are unfinished."""
    seeds = f"median and range {over}" if (over := seeds_text(ended(runs))) else ""
    kept = "a seed that ended keeps its last value" if any(line.keeps_last for line in drawn) else ""
    parts = (seeds, "noise as its running median" if noisy else ""), (kept, unfinished(runs))
    return "\n".join(filter(None, (", ".join(filter(None, part)) for part in parts))) or None


def tuned_for_others(plots: Iterable[tuple[Sequence[Run], FigureTable]]) -> list[str]:
    """Lines of what the runs of plots were tuned for, if that is not what these show, as a table's notes."""
    said, labels, each = list[str](), list[str](), list[tuple[Sequence[Run], str, list[Target]]]()
    for runs, figure in plots:
        targets = [Target.of(*target, rising(runs)) for target in (figure.at or {}).items()]
        each.append((runs, figure.ys[0] if figure.at else figure.x, targets))
    for runs, by, _ in each:
        for run in (run for run, *_ in by_seed(runs) if grows(by)):
            asked = [own for others, column, own in each if column == by and any(other.file == run.file for other in others)]
            said.append(tuned_for(run, by, list(dict.fromkeys(itertools.chain(*asked)))))
            labels.append(label_of_run(run))
    return [*said_of(said, labels).values()]
