"""Figures from result files alone: nothing is recomputed, nothing typed in by hand."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
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
    "T": "budget T",
    "alpha_bar": "least α(T) over the run",
    "beta_bar": "least β(T) over the run",
    "omega_bar": "least ω(T) over the run",
    "worst_case": "worst case T/d",
    "speedup": "SpeedUp(T) = d ᾱ_T / T",
    "predicted_cost": "predicted cost C(T) / ᾱ_T",
    "predicted_payload": "predicted payload P(T) / ᾱ_T",
    "table1": "bound on rounds, data-dependent",
    "table1_gd": "bound on rounds, no compression",
    "table1_worst_case": "bound on rounds, worst case",
    "seconds": "seconds",
}
_FALLING_TO_ZERO = ("suboptimality", "grad_norm", "distance", "relative_distance", "error_norm")
_INSIDE = 7  # lines whose legend has room among the curves
FORMATS = (".png", ".pdf", ".svg")


def plot(
    runs: Sequence[Run], x: str = "wire_bits_up", y: str = "loss", ax: "Axes | None" = None,
    xscale: str | None = None, yscale: str | None = None, title: str | None = None, bounds: Sequence[str] = (),
    rows: Literal["all", "last"] = "all", at: Mapping[str, float] | None = None,
) -> "Axes":  # fmt: skip
    """Draw y against x for every run, one line each; runs of one label share a line's look.

    Args:
        runs: results, as `run` or `read` gives them.
        x, y: columns of /trace or /timing, or such as follow from /theory; several y are joined by commas.
        ax: Matplotlib axes to draw on; new ones otherwise.
        xscale, yscale: "linear" or "log"; None: "log" over budgets T and for what falls to zero.
        bounds: columns drawn dashed over the curve of each run that has them, in its colour.
        rows: "last": one point a run, its last row; the points of a grid that one [[run]] makes are one line.
        at: a column and a level, {"loss": 0.4}: not the whole run is drawn but what it took to come down to it. Runs whose x never
            changes, such as the budget of fixed ones, are points on a line; others are levels to compare them with.

    Raises:
        UserError: no runs, or no such column.
    """
    if not runs:
        raise UserError("there are no results to plot; `mpi-compress run JOB` makes them")
    columns = [c.strip() for c in y.split(",")]
    over_budgets = x == "T" or at is not None
    xscale = xscale or ("log" if over_budgets else "linear")
    yscale = yscale or ("log" if over_budgets or columns[0] in _FALLING_TO_ZERO else "linear")
    if bounds and not any(name in r.trace for name in bounds for r in runs):
        raise UserError(f"bounds: no run has a column {' or '.join(bounds)}")
    lines_of = partial(_levels, at=at) if at else _lines if rows == "all" else _lines_of_last
    lines = [
        (label if len(columns) == 1 else f"{label}: {_NAMES.get(name, name)}", xs, ys)
        for name in columns
        for label, xs, ys in lines_of(runs, x, name)
    ]
    labels = list(dict.fromkeys(label for label, _, _ in lines))
    beside: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)} if len(labels) > _INSIDE else {}
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(7.4 if beside else 5.2, 3.6), layout="constrained")
    drawn = set()
    for label, xs, ys in lines:
        look = labels.index(label)
        own: dict[str, Any] = {
            "label": None if label in drawn else label, "color": _COLOURS[look % len(_COLOURS)],
            "linestyle": "-" if bounds else _STYLES[look % len(_STYLES)], "linewidth": 1.4,
        }  # fmt: skip
        drawn.add(label)
        if xs is None:
            ax.axhline(ys[0], **own)
            continue
        xs, ys = shown(xs, ys, xscale, yscale)
        marker = _MARKERS[(look + look // len(_COLOURS)) % len(_MARKERS)]
        points = at is not None or rows == "last"
        ax.plot(xs, ys, **own, marker=marker, markevery=None if points else (0.03 + 0.02 * (look % 7), 0.18), markersize=4)
    for number, name in enumerate(bounds):
        dashes = (0, (4 + 2 * number, 2))
        for label, xs, ys in lines_of([r for r in runs if name in r.trace], x, name):
            if xs is not None:
                ax.plot(*shown(xs, ys, xscale, yscale), color=_COLOURS[labels.index(label) % len(_COLOURS)], ls=dashes, lw=1.0)
        ax.plot([], [], color="0.4", ls=dashes, lw=1.0, label=_NAMES.get(name, name))
    ylabel = _NAMES.get(y, y) if len(columns) == 1 else ""  # the legend says it
    ax.set(xscale=xscale, yscale=yscale, xlabel=_NAMES.get(x, x), ylabel=ylabel)
    if title:
        ax.set_title(title, fontsize="medium")
    ax.grid(True, alpha=0.3, linewidth=0.6)
    ax.legend(fontsize="small", framealpha=0.9, **beside)
    return ax


Line = tuple[str, NDArray[Any] | None, NDArray[Any]]  # label, x (None: at every x), y


def _lines(runs: Sequence[Run], x: str, y: str) -> list[Line]:
    return [(r.label, r.column(x), r.column(y)) for r in runs]


def _lines_of_last(runs: Sequence[Run], x: str, y: str) -> list[Line]:
    """One line for the runs of a grid."""
    points: dict[str, list[tuple[float, float]]] = {}
    for r in runs:
        points.setdefault(_stem(r), []).append((float(r.column(x)[-1]), float(r.column(y)[-1])))
    return [(label, *np.array(sorted(each)).T) for label, each in points.items()]


def _levels(runs: Sequence[Run], x: str, y: str, at: Mapping[str, float]) -> list[Line]:
    """What each run took to bring the column of `at` down to its level, at its own x."""
    ((where, level),) = at.items()
    found: dict[str, list[tuple[float, float]]] = {}
    for r in runs:
        reached = np.flatnonzero(r.column(where) <= level)
        needed = float(r.column(y)[reached[0]]) if reached.size else np.nan
        xs = r.trace[x][1:] if x in r.trace else np.empty(0)
        constant = xs.size > 0 and np.all(xs == xs[0])
        found.setdefault(_stem(r) if constant else r.label, []).append((float(xs[0]) if constant else np.nan, needed))
    lines: list[Line] = []
    for label, points in found.items():
        own, ys = np.array(sorted(points)).T
        lines.append((label, None if np.isnan(own).any() else own, ys))
    return lines


def _stem(run: Run) -> str:
    """The label that the runs of a grid share, which differ in what stands behind a comma and an equals sign."""
    return re.sub(r", \w+ = .*", "", run.label)


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
