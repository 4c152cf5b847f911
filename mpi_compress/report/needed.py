"""What each method of a job needed to reach a few targets, and which one needed the least."""

import math
from collections.abc import Sequence

import numpy as np

from mpi_compress.evidence.comparison import BY, Comparison, amount, compare
from mpi_compress.evidence.levels import round_targets
from mpi_compress.job.tables import FigureTable
from mpi_compress.results.columns import column_of
from mpi_compress.results.reader import Run, rising
from mpi_compress.results.targets import Target, grows, rises

_TARGETS = ("suboptimality", "loss", "grad_norm", "distance", "test_loss", "perplexity", "test_accuracy", "hit_rate")


def needed(runs: Sequence[Run], figure: FigureTable) -> Comparison | None:
    """The table of a job's runs, the soonest first, at the targets that its figure names and three round ones; None where no run
    comes nearer to any."""
    asked = {**(figure.to or {}), **(figure.at or {})}
    first = [name for name in (*asked, figure.ys[0]) if name in _TARGETS or column_of(name).falls]
    by = figure.by if figure.to else figure.x if grows(figure.x) and any(run.has(figure.x) for run in runs) else BY[0]
    for name in dict.fromkeys([*first, *_TARGETS]):
        up = rises(name, rising(runs))
        each = [values for run in runs if run.has(name) and np.isfinite(values := run.column(name)).any()]
        if each and (levels := round_targets(each, up, column_of(name).falls, [asked[name]] if name in asked else [])):
            return compare(runs, [Target(name, level, up) for level in levels], by)
    return None


def winner(found: Comparison) -> str:
    """Who needed the least to the hardest target that any method reaches, and who comes next, in one sentence."""
    for i in reversed(range(len(found.targets))):
        took = sorted((m.cells[i].median, m.label) for m in found.methods if m.cells[i].median < math.inf)
        if took:
            (least, best), *others = took
            unit = found.methods[0].cells[i].unit
            then = "; ".join(f"{label}, {amount(value, found.by, unit)}" for value, label in others[:2])
            reached = f" ({len(took)} of {len(found.methods)} methods reach it)" if len(took) < len(found.methods) else ""
            said = f"{best}: {amount(least, found.by, unit)}" + (f"; then {then}" if then else "")
            return f"Least {column_of(found.by).label} to {found.targets[i]}{reached} – {said}."
    return ""
