"""Curves that are noise: their running median, and the band in which most of their rows lie."""

import numpy as np
from numpy.typing import NDArray

from mpi_compress.evidence.lines import Line

_ROWS = 150  # fewer are drawn as they are
_TURNS = 0.25  # share of rows at which a curve turns up or down, from which on it is noise
_TRAVEL = 6.0  # heights of the plot that the pen goes up and down
_WINDOWS = 80  # at most, side by side over the width of a plot
_FEW = 4  # rows of a window, below which they are drawn as they are
INNER = (0.1, 0.9)  # quantiles: the band


def smoothed(line: Line, xscale: str, yscale: str) -> Line | None:
    """The running median of a curve that is noise, in its band; None for one that is not.

    It begins at the curve's first row. Windows are even along the axis as it is drawn. The band holds the middle four fifths of a
    window's rows; over several seeds it goes from the median of their least to the median of their most.
    """
    assert line.x is not None
    along, height = _on_axis(line.x, xscale), _on_axis(line.y, yscale)
    if line.y.size < _ROWS or np.any(np.diff(along) < 0) or not is_noise(height):
        return None
    windows = min(_WINDOWS, along.size // (2 * _FEW))
    edges = np.linspace(along[0], along[-1], windows + 1)
    inside = np.searchsorted(along, edges)
    inside[-1] = along.size
    rows = [(float(line.x[0]), *[float(line.y[0])] * 3)]
    for i in range(windows):
        own = slice(inside[i], inside[i + 1])
        near = slice(inside[max(0, i - 1)], inside[min(windows, i + 2)])
        if inside[i + 1] - inside[i] >= _FEW:
            rows.append((float(np.median(line.x[own])), float(np.median(line.y[near])), *_band(line, near)))
        else:
            rows += [(float(x), float(y), float(y), float(y)) for x, y in zip(line.x[own], line.y[own], strict=True)]
    return Line(line.label, *np.array(rows).T)


def is_noise(height: NDArray) -> bool:
    """True if a curve, in heights as its axis draws them, turns at every few rows and travels many times its own range."""
    steps = np.diff(height)
    low, high = np.quantile(height, [0.01, 0.99])
    turns = np.mean(np.sign(steps[1:]) != np.sign(steps[:-1]))
    return bool(turns > _TURNS and np.abs(steps).sum() > _TRAVEL * (high - low) > 0)


def _band(line: Line, near: slice) -> tuple[float, float]:
    if line.least is None or line.most is None:
        low, high = np.quantile(line.y[near], INNER)
        return float(low), float(high)
    return float(np.median(line.least[near])), float(np.median(line.most[near]))


def _on_axis(values: NDArray, scale: str) -> NDArray:
    return np.log10(values) if scale == "log" else np.asarray(values, dtype=float)
