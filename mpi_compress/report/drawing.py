"""What the page's plots have as those of `plot`: units of costs, and running medians of noise."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.evidence.levels import grows
from mpi_compress.evidence.lines import Line, shown
from mpi_compress.figures.noise import smoothed
from mpi_compress.results.columns import column_of
from mpi_compress.results.reader import Run
from mpi_compress.results.units import COSTS, named_model, unit_of

Axes = tuple[str, str, str, str]
"""x, y and their scales."""


def cost_names(runs: Sequence[Run]) -> dict[str, str]:
    """The names of costs with their cost model, if all runs share it, and its unit."""
    model = named_model(runs)
    names = {name: column_of(name).label + (f", {model}" if model else "") for name in COSTS}
    return {name: f"{label} [{unit}]" if (unit := unit_of(name, runs)) else label for name, label in names.items()}


def smooth(columns: Mapping[str, NDArray], ranges: Mapping[str, NDArray], drawn: Sequence[Axes]) -> dict[str, Any]:
    """The running median of each drawn y that is noise, as arrays by y.

    Args:
        columns: a line's columns, over several seeds their medians.
        ranges: least and greatest over the seeds, by names such as "loss.low" and "loss.high".

    Returns:
        by y: `x`, the columns that grow, at the middle of each window; `y`, and the band's `low` and `high`.
    """
    found: dict[str, Any] = {}
    for x, y, xscale, yscale in drawn:
        if x not in columns or y not in columns or y in found:
            continue
        keep = shown(columns[x], columns[y], xscale, yscale)
        ends = [ranges[f"{y}.{end}"][keep] if f"{y}.{end}" in ranges else None for end in ("low", "high")]
        along = columns[x][keep]
        if keep.sum() < 2 or (found_here := smoothed(Line("", along, columns[y][keep], *ends), xscale, yscale)) is None:
            continue
        xs = {name: np.interp(found_here.x, along, values[keep]) for name, values in columns.items() if grows(name)}
        found[y] = {"x": xs, "y": found_here.y, "low": found_here.least, "high": found_here.most}
    return found
