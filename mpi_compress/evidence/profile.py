"""Performance profiles: for each method the share of targets that it reaches within a factor of what the best method took.

E. D. Dolan and J. J. Moré, "Benchmarking optimization software with performance profiles", Mathematical Programming 91 (2002).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError
from mpi_compress.evidence.lines import stem
from mpi_compress.evidence.problems import key_of
from mpi_compress.results.columns import column_of
from mpi_compress.results.reader import Run
from mpi_compress.results.targets import Target

FACTORS = (1.0, 1.5, 2.0, 5.0, 10.0, 100.0)
"""The factors τ that tables have."""


@dataclass(frozen=True)
class Profile:
    """What each method took to each target on each problem, over the least that any took there."""

    by: str  # the column in which it was paid
    ratios: Mapping[str, NDArray]  # by method, (targets,): infinite where it was missed
    missed: int  # targets that no method reached, which are left out

    @property
    def targets(self) -> int:
        return next(iter(self.ratios.values())).size

    def share(self, method: str, τ: float) -> float:
        """The share of targets that a method reaches within τ times the least."""
        return float(np.mean(self.ratios[method] <= τ))

    @property
    def methods(self) -> list[str]:
        """Best first: by the mean share over τ from 1 to 100, on a logarithmic axis."""
        area = {m: float(np.mean(np.clip(2 - np.log10(each), 0, 2))) for m, each in self.ratios.items()}
        return sorted(area, key=lambda method: -area[method])

    @property
    def caption(self) -> str:
        beside = f"; {self.missed} further ones, which no method reaches, are left out" if self.missed else ""
        return f"{column_of(self.by).label}: share of {self.targets} targets within τ × the least{beside}"

    @property
    def heads(self) -> list[str]:
        return ["method", *(f"τ = {τ:g}" for τ in FACTORS)]

    @property
    def cells(self) -> list[list[str]]:
        return [[method, *(f"{self.share(method, τ):.2f}" for τ in FACTORS)] for method in self.methods]


def profile(runs: Sequence[Run], targets: Sequence[Target], by: str) -> Profile:
    """The profile of these runs, each target on each problem, by each cost model, counting once; what a method took is the median
    over its seeds.

    A method is a label without the values of a grid. One that has no run on a problem has missed its targets.

    Raises:
        UserError: a run has no such column, or none reaches a target.
    """
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in {run.attrs["run_id"]: run for run in runs if run.rows}.values():
        groups.setdefault((key_of(run, by), stem(run.label)), []).append(run)
    taken: dict[str, dict[Any, float]] = {}
    for (problem, method), those in groups.items():
        for target in targets:
            taken.setdefault(method, {})[problem, target] = float(np.median([target.took(run, by) for run in those]))
    places = dict.fromkeys(place for each in taken.values() for place in each)
    table = np.array([[each.get(place, math.inf) for place in places] for each in taken.values()])
    least = table.min(axis=0, initial=math.inf)
    if not np.any(reached := least < math.inf):
        raise UserError(f"no run reaches {', '.join(map(str, targets))}; --to names other targets")
    ratios = table[:, reached] / np.maximum(least[reached], 1e-300)
    return Profile(by, dict(zip(taken, ratios, strict=True)), int(np.sum(~reached)))
