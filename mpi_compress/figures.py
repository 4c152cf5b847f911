"""Figures from result files alone: nothing is recomputed, nothing typed in by hand."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mpi_compress.errors import UserError
from mpi_compress.results import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, told apart by colour-blind readers too; line styles and sparse markers tell the lines apart in grey.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
_STYLES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_NAMES = {
    "round": "round",
    "epoch": "passes over the data",
    "loss": "loss f(x)",
    "suboptimality": "suboptimality f(x) − f*",
    "grad_norm": "gradient norm ‖∇f(x)‖",
    "wire_bits_up": "bits sent up, on the wire",
    "wire_bits_down": "bits sent down, on the wire",
    "paper_bits_up": "bits sent up, by the papers' formula",
    "paper_bits_down": "bits sent down, by the papers' formula",
    "elements_up": "coordinates sent up",
    "cost_up": "communication cost up",
    "cost_down": "communication cost down",
    "wire_bits": "bits sent up and down, on the wire",
    "bits_up": "bits a coordinate, message up",
    "bits_down": "bits a coordinate, message down",
    "distance": "distance ‖x − x*‖",
    "relative_distance": "distance ‖x − x*‖ / ‖x0 − x*‖",
    "rate": "c'",
    "kappa": "condition number L/µ",
    "bound": "theorem's bound",
    "lower_up": "Lemma 2.1, least",
    "upper_up": "Lemma 2.1, most",
    "lower_down": "Lemma 2.1, least",
    "upper_down": "Lemma 2.1, most",
    "budget": "budget T (mean over workers)",
    "seconds": "seconds",
}
_FALLING_TO_ZERO = ("suboptimality", "grad_norm", "distance", "relative_distance", "error_norm")
_INSIDE = 7  # lines whose legend has room among the curves
FORMATS = (".png", ".pdf", ".svg")


def plot(
    runs: Sequence[Run], x: str = "wire_bits_up", y: str = "loss", ax: "Axes | None" = None,
    xscale: str = "linear", yscale: str | None = None, title: str | None = None, bounds: Sequence[str] = (),
    rows: Literal["all", "last"] = "all",
) -> "Axes":  # fmt: skip
    """Draw y against x for every run, one line each; runs of one label share a line's look.

    Args:
        runs: results, as `run` or `read` gives them.
        x, y: columns of /trace or /timing.
        ax: Matplotlib axes to draw on; new ones otherwise.
        yscale: "linear" or "log"; None: "log" for what falls to zero.
        bounds: columns drawn dashed over the curve of each run that has them, in its colour.
        rows: "last": one point a run, its last row; the points of a grid that one [[run]] makes are one line.

    Raises:
        UserError: no runs, or no such column.
    """
    if not runs:
        raise UserError("there are no results to plot; `mpi-compress run JOB` makes them")
    lines_of = _lines if rows == "all" else _lines_of_last
    lines = lines_of(runs, x, y)
    labels = list(dict.fromkeys(label for label, _, _ in lines))
    beside: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)} if len(labels) > _INSIDE else {}
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(7.4 if beside else 5.2, 3.6), layout="constrained")
    yscale = yscale or ("log" if y in _FALLING_TO_ZERO else "linear")
    if bounds and not any(name in r.trace for name in bounds for r in runs):
        raise UserError(f"bounds: no run has a column {' or '.join(bounds)}")
    drawn = set()
    for label, xs, ys in lines:
        look = labels.index(label)
        xs, ys = shown(xs, ys, xscale, yscale)
        marker = _MARKERS[(look + look // len(_COLOURS)) % len(_MARKERS)]
        ax.plot(
            xs, ys, label=None if label in drawn else label, color=_COLOURS[look % len(_COLOURS)],
            linestyle="-" if bounds else _STYLES[look % len(_STYLES)], marker=marker,
            markevery=(0.03 + 0.02 * look, 0.18) if rows == "all" else None, markersize=4, linewidth=1.4,
        )  # fmt: skip
        drawn.add(label)
    for number, name in enumerate(bounds):
        dashes = (0, (4 + 2 * number, 2))
        for label, xs, ys in lines_of([r for r in runs if name in r.trace], x, name):
            ax.plot(*shown(xs, ys, xscale, yscale), color=_COLOURS[labels.index(label) % len(_COLOURS)], ls=dashes, lw=1.0)
        ax.plot([], [], color="0.4", ls=dashes, lw=1.0, label=_NAMES.get(name, name))
    ax.set(xscale=xscale, yscale=yscale, xlabel=_NAMES.get(x, x), ylabel=_NAMES.get(y, y))
    if title:
        ax.set_title(title, fontsize="medium")
    ax.grid(True, alpha=0.3, linewidth=0.6)
    ax.legend(fontsize="small", framealpha=0.9, **beside)
    return ax


def _lines(runs: Sequence[Run], x: str, y: str) -> list[tuple[str, NDArray, NDArray]]:
    return [(r.label, r.column(x), r.column(y)) for r in runs]


def _lines_of_last(runs: Sequence[Run], x: str, y: str) -> list[tuple[str, NDArray, NDArray]]:
    """One line for the runs of a grid, whose labels differ in what stands behind the first comma and equals sign."""
    points: dict[str, list[tuple[float, float]]] = {}
    for r in runs:
        points.setdefault(re.sub(r", \w+ = .*", "", r.label), []).append((float(r.column(x)[-1]), float(r.column(y)[-1])))
    return [(label, *np.array(sorted(each)).T) for label, each in points.items()]


def shown(xs: NDArray, ys: NDArray, xscale: str, yscale: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """The points that can be drawn: finite, and above 0 on a logarithmic axis."""
    keep = np.isfinite(xs) & np.isfinite(ys)
    if xscale == "log":
        keep &= xs > 0
    if yscale == "log":
        keep &= ys > 0
    return xs[keep], ys[keep]


def save(ax: "Axes", file: Path) -> None:
    """Write the figure that `ax` is on, as PNG, PDF or SVG; fonts are embedded.

    Raises:
        UserError: another format, or a place that cannot be written.
    """
    import matplotlib as mpl

    if file.suffix not in FORMATS:
        raise UserError(f"-o {file}: a figure is written as one of {', '.join(FORMATS)}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with mpl.rc_context({"pdf.fonttype": 42, "svg.fonttype": "none"}):
            ax.get_figure(root=True).savefig(file, dpi=200)  # type: ignore[union-attr]
    except OSError as error:
        raise UserError(f"-o {file}: cannot be written: {error.strerror}") from None
