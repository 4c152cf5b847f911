"""The problem of a run: its data and loss, with the regulariser, the smoothness and the minimiser."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from mpi_compress.core.errors import UserError
from mpi_compress.core.expressions import evaluate, names_in
from mpi_compress.core.progress import print_line
from mpi_compress.job.runs import RunSpec
from mpi_compress.kernels.rows import squared_norms
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.constants import gram_eigenvalues
from mpi_compress.problem.datasets.store import DataSet, open_data, open_test
from mpi_compress.problem.losses import losses
from mpi_compress.problem.optimum import Optimum, optimum, optimum_file, solver_of
from mpi_compress.problem.rows import Rows

T = TypeVar("T")

SOLVED_UP_TO = 50_000_000  # nonzeros, and 20 for each coordinate: for larger sets x* is computed only where a job needs it
_SOLVED = 1e-8  # the largest ‖∇f(x)‖/‖∇f(0)‖ at which f(x) is called f*


@dataclass(frozen=True)
class Problem:
    """Data and objective of a run, with their constants."""

    data: DataSet
    loss: str
    mu: float
    L: float  # smoothness of f, regulariser included; NaN where the loss is not smooth
    L_max: float | None  # the largest of the workers' L_i, where the job asks for it
    L_rms: float | None  # √((1/n) Σ L_i²), likewise
    L_row: float | None  # the largest smoothness that one sample gives its worker's minibatch of one, likewise
    x_star: Vector | None
    f_star: float
    f_star_accuracy: float
    test: DataSet | None = None

    def numbers(self, n: int) -> dict[str, float]:
        """The quantities that formulas may name."""
        known = {"mu": self.mu, "n": float(n), "d": float(self.data.dim), "N": float(self.data.n_samples)}
        if not losses[self.loss]().smooth:
            return known
        known |= {"L": self.L, "kappa": self.L / self.mu if self.mu > 0 else math.inf}
        return known | {name: L for name in ("L_max", "L_rms", "L_row") if (L := getattr(self, name)) is not None}


def key_of(spec: RunSpec) -> str:
    """Runs of equal keys have one problem."""
    tables = [spec.written.get(t) for t in ("data", "objective", "workers", "seed")]
    return json.dumps([*tables, _wants(spec)], default=str)


def problem_of(spec: RunSpec, data: DataSet, quiet: bool) -> Problem:
    """The problem of a run on its data, with the test set. At rank 0."""
    objective = spec.objective
    loss = losses[objective.loss]()
    test = open_test(spec.data, spec.folder, data)
    gram = gram_eigenvalues(data)[0]
    if gram == 0:
        raise UserError("data: all samples are zero, so there is nothing to optimise")
    if not math.isfinite(gram):
        raise UserError('data: the samples are so large that their squares overflow; normalize = "rows" or "columns" scales them')
    scale = loss.curvature / data.n_samples
    L_data = scale * gram if loss.smooth else math.nan
    mu = _mu(spec, data, L_data)
    wants_L_max, wants_L_row, wants_optimum = _wants(spec)
    L_max = L_rms = L_row = None
    n = spec.workers.count
    if wants_L_row and loss.smooth:
        L_row = max(loss.curvature * _peak_weight(rows, n / data.n_samples) for rows in data.shards(range(n), n)) + mu
    if wants_L_max and loss.smooth:
        each = [scale * n * eigenvalue + mu for eigenvalue in gram_eigenvalues(data, n)]
        L_max, L_rms = max(each), math.sqrt(sum(L * L for L in each) / n)
    known = Problem(data, objective.loss, mu, L_data + mu, L_max, L_rms, L_row, None, math.nan, math.nan, test)
    if (loss.solver is None or is_large(data)) and not wants_optimum:
        return known
    if not quiet and not optimum_file(data, loss, mu).exists():
        print_line(f"{data.title}: computing x* and f* (kept beside the data)")
    best = optimum(data, loss, mu)
    if best.reached > _SOLVED:
        if wants_optimum:
            raise UserError(
                f"objective: x* cannot be computed: the {solver_of(loss).measure} falls to {best.reached:.1e} "
                "of its start only; set mu > 0"
            )
        return known
    return replace(known, x_star=best.x, f_star=best.f, f_star_accuracy=best.accuracy)


def solve(spec: RunSpec) -> tuple[Problem, Optimum]:
    """A run's problem with its minimiser, however large it is; in this process."""
    data = open_data(spec.data, spec.folder, spec.workers.partition, spec.seed, spec.real_labels)
    problem = problem_of(spec, data, quiet=True)
    return problem, optimum(data, losses[problem.loss](), problem.mu)


def _wants(spec: RunSpec) -> tuple[bool, bool, bool]:
    """Three answers: does the run need L_max or L_rms, does it need L_row, does it need x*?"""
    names = spec.algorithm.names()
    falls = spec.stop.suboptimality is not None or spec.stop.relative_distance is not None
    optimum = spec.start.at == "optimum" or spec.algorithm.needs_optimum or falls
    return not names.isdisjoint({"L_max", "L_rms"}), "L_row" in names, optimum


def _mu(spec: RunSpec, data: DataSet, L_data: float) -> float:
    """µ, from either form of the regulariser; in a formula L is the smoothness of the data part."""
    objective = spec.objective
    key, factor = ("mu", 1.0) if objective.lambda2 is None else ("lambda2", 2.0)
    formula = getattr(objective, key)
    refuse_smoothness(formula, spec, f"objective.{key}")
    sizes = {"L": L_data, "N": float(data.n_samples), "d": float(data.dim), "n": float(spec.workers.count)}
    value = checked_at(f"objective.{key}", lambda: evaluate(formula or 0.0, sizes))
    if not 0 <= value < math.inf:
        raise UserError(f"objective.{key}: {value:g} is {'negative' if value < 0 else 'no finite number'}; it must be 0 or more")
    return factor * value


def _peak_weight(shard: Rows, weight: float) -> float:
    """max_j ‖a_j‖² of a shard, times the weight of a sample that stands for all of it."""
    squares = np.empty(len(shard))
    squared_norms(shard.matrix, squares)
    return float(squares.max()) * weight * len(shard)


def is_large(data: DataSet) -> bool:
    """True if the set is so large that x* is computed only where a job needs it."""
    return data.nonzeros + 20 * data.dim > SOLVED_UP_TO


def refuse_smoothness(formula: Any, spec: RunSpec, where: str) -> None:
    """Refuse a formula in L if the loss is not smooth."""
    loss = spec.objective.loss
    if formula is None or losses[loss]().smooth:
        return
    named = names_in(formula) & {"L", "L_max", "L_rms", "L_row", "kappa"}
    if named:
        raise UserError(
            f"{where}: '{formula}' needs {min(named)}, and the {loss} loss is not smooth, so there is none; "
            "give a number, or a formula in mu, n, d, N"
        )


def checked_at(where: str, build: Callable[[], T]) -> T:
    """The result of `build`; UserError with the place in the job if it refuses a value."""
    try:
        return build()
    except UserError:
        raise
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None
