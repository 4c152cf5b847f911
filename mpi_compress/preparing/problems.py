"""The problem of a run: its data and its loss or model, with the regulariser, the smoothness and the minimiser."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from mpi_compress.algorithms.needs import OPTIMUM
from mpi_compress.algorithms.steps import named_by
from mpi_compress.algorithms.theorem import names_of_theorem
from mpi_compress.core.errors import UserError, checked_at
from mpi_compress.core.expressions import evaluate, names_in
from mpi_compress.core.progress import Amount, print_line, print_once
from mpi_compress.core.registry import is_ours
from mpi_compress.core.streams import Role, Streams
from mpi_compress.core.sums import added
from mpi_compress.core.terminal import has_bar
from mpi_compress.core.unknown import UNKNOWN, if_known
from mpi_compress.job.runs import RunSpec
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.constants import Smoothness, estimated, gram_eigenvalues, stated
from mpi_compress.problem.datasets.store import DataSet, open_data, open_test
from mpi_compress.problem.mean_loss import MeanLoss, Outline
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.optimum import Optimum, Unsolved, is_soon_solved, lowest, optimum, optimum_file
from mpi_compress.problem.penalties import Penalty
from mpi_compress.problem.rows import Rows
from mpi_compress.results.columns import INFIMUM, INFIMUM_IN_PART, LEFT_OUT, NOT_ATTAINED

OF_WORKERS = ("L_max", "L_mean", "L_rms", "L_pm")  # quantities that need all workers' smoothness
OF_OPTIMUM = ("distance", "relative_distance", "bound", "gap")  # columns that need x* in the rounds
OF_SMOOTHNESS = ("L", "kappa", "L_row", *OF_WORKERS)


@dataclass(frozen=True)
class Wanted:
    """Constants that a job needs, and that are costly."""

    each: bool  # L_max, L_mean, L_rms or L_pm
    row: bool  # L_row
    optimum: bool  # x*
    f_star: bool  # f*
    asked: bool  # x* or f*, if they can be computed

    @classmethod
    def by(cls, spec: RunSpec) -> "Wanted":
        names, stop = named_by(spec.algorithm), spec.stop
        names |= names_of_theorem(spec.algorithm) if spec.log.theory else set()
        optimum = spec.start.at == "optimum" or OPTIMUM in spec.algorithm.needs or not stop.columns.isdisjoint(OF_OPTIMUM)
        own = not all(map(is_ours, (spec.algorithm, *spec.metrics)))  # they may look at x*, if it is known
        named = not spec.asked.isdisjoint((*OF_OPTIMUM, "suboptimality"))
        asked = own or named or spec.log.theory or spec.objective.f_star == "solve"
        return cls(not names.isdisjoint(OF_WORKERS), "L_row" in names, optimum, "suboptimality" in stop.columns, asked)


def without_optimum(spec: RunSpec) -> RunSpec:
    """This run without x* and f*, unless its method needs them."""
    return spec if Wanted.by(spec).optimum else replace(spec, objective=replace(spec.objective, f_star="skip"))


def key_of(spec: RunSpec) -> str:
    """Runs of equal keys have one problem: the tables of the run after [tune], and the folder of their files."""
    start = (spec.start, spec.seed) if spec.objective.f_star == "lowest seen" else None
    return repr((spec.folder, spec.data, spec.objective, spec.workers, spec.source[2].key, start, Wanted.by(spec)))


@dataclass(frozen=True)
class Problem:
    """Data and objective of a run, with their constants."""

    data: DataSet
    loss: MeanLoss
    mu: float
    penalty: Penalty | None  # beside (µ/2)‖x‖², its weight evaluated
    smoothness: Smoothness  # of f and the f_i, µ and a smooth penalty included
    x_star: Vector | None = None
    f_star: float = math.nan
    f_star_accuracy: float = math.nan
    f_star_source: str = ""  # "solver", "given", "lowest seen", an upper bound, INFIMUM or LEFT_OUT; else why it is not known
    test: DataSet | None = None

    @property
    def dim(self) -> int:
        """d."""
        return self.loss.dim

    @property
    def is_soon_solved(self) -> bool:
        """True if x* and f* take a moment."""
        return is_soon_solved(self.data.nonzeros, self.data.dim, self.dim)

    @property
    def L(self) -> float:
        """The smoothness of f; NaN where it is not known."""
        return self.smoothness.L

    def numbers(self, n: int) -> dict[str, float]:
        """The quantities that formulas may name."""
        known = {"mu": self.mu, "n": float(n), "d": float(self.dim), "N": float(self.data.n_samples)}
        if math.isnan(self.L):
            return known
        known |= {"L": self.L, "kappa": self.L / self.mu if self.mu > 0 else math.inf}
        if self.smoothness.each:
            each = self.smoothness.each
            known |= {"L_max": max(each), "L_mean": added(each) / n, "L_rms": math.sqrt(added(L * L for L in each) / n)}
            known["L_pm"] = known["L_rms"] if math.isnan(self.smoothness.variation) else self.smoothness.variation
        return known if self.smoothness.row is None else known | {"L_row": self.smoothness.row}

    def objective(self, rows: Rows, n: int, mu: float) -> Objective:
        """f_i of a worker of n with these rows, with a regulariser (mu/2)‖x‖² and the penalty if that is smooth."""
        penalty = self.penalty if self.penalty is not None and self.penalty.smooth else None
        return Objective(rows, self.loss, self.data.weight(n), mu, penalty)

    def objectives(self, n: int) -> Iterator[Objective]:
        """f_1, …, f_n of n workers, of which each is made when it is asked for."""
        return (self.objective(rows, n, self.mu) for rows in self.data.shards(range(n), n))


def problem_of(spec: RunSpec, data: DataSet, quiet: bool, soon: bool = False, each: bool = False) -> Problem:
    """The problem of a run on its data, with the test set. At rank 0. `soon`: x* and f* that take long are left UNKNOWN; `each`:
    with every worker's L_i, which is known where it is stated."""
    problem = _unsolved(spec, data, each)
    refuse_left_out(spec, problem.penalty)
    if soon and not (optimum_file(data, problem.loss, problem.mu).exists() or problem.is_soon_solved):
        return replace(problem, x_star=UNKNOWN, f_star=UNKNOWN)
    wanted, wish = Wanted.by(spec), spec.objective.f_star
    if wish == "skip":
        return problem
    if isinstance(wish, float | int):
        return replace(problem, f_star=float(wish), f_star_source="given")
    if wish == "lowest seen":
        if not quiet:
            print_line(f"{data.title}: looking for the lowest f by a long run (kept in the cache)")
        best = lowest(data, problem.loss, problem.mu, start_of(spec, problem), problem.penalty)
        return replace(problem, f_star=best.f, f_star_source="lowest seen")
    problem = with_optimum(problem, wanted.optimum or wanted.f_star, wanted.asked, not quiet)
    if wanted.optimum and (source := problem.f_star_source).startswith(NOT_ATTAINED):
        raise UserError(f"objective: there is no x*, which the job needs: f* = {problem.f_star:.6g} is {source}; set mu > 0")
    return problem


def refuse_left_out(spec: RunSpec, penalty: Penalty | None) -> None:
    """UserError where a run needs x* or f*, and [objective] leaves it out, or has no solver for it."""
    wanted, wish = Wanted.by(spec), spec.objective.f_star
    if (wanted.optimum and isinstance(wish, float | int)) or (wish == "skip" and (wanted.optimum or wanted.f_star)):
        raise UserError(f"objective.f_star = {wish!r} leaves out what the job needs, x* or f*; leave that out")
    if wanted.optimum and wish == "lowest seen":
        raise UserError('objective.f_star = "lowest seen" gives no x*, which the job needs')
    if penalty is not None and wish in (None, "solve") and (wanted.optimum or wanted.f_star):
        raise UserError(
            f"objective: x* cannot be computed: no solver is known for the penalty '{penalty.name}'; "
            'f_star = "lowest seen" gives an upper bound on f*, by a long run'
        )


def _unsolved(spec: RunSpec, data: DataSet, each: bool) -> Problem:
    """The problem without x* and f*."""
    wanted, n = Wanted.by(spec), 1 if data.shared else spec.workers.count
    loss, given = within(spec, data), spec.objective.smoothness
    if loss.of_margin:
        gram = gram_eigenvalues(data)[0]
        if gram == 0:
            what = "the samples are so small that their squares are 0" if data.entries else "all samples are zero"
            raise UserError(f"data: {what}, so there is nothing to optimise")
        if not math.isfinite(gram):
            scales = 'normalize = "rows" or "columns" scales them'
            raise UserError(f"data: the samples are so large that their squares overflow; {scales}")
    of_data = Smoothness(math.nan)
    if given is None:
        of_data = stated(data, loss, n, wanted.each or each, wanted.row)
    elif given == "estimate":
        of_data = estimated(data, loss, n, wanted.each)
    if data.shared and of_data.each:
        of_data = replace(of_data, each=of_data.each * spec.workers.count)
    sizes = {"L": of_data.L, "N": float(data.n_samples), "d": float(loss.dim), "n": float(spec.workers.count)}
    mu, penalty = _regularizers(spec, sizes, loss)
    smoothness = of_data.plus(mu)
    if penalty is not None and penalty.smooth:
        smoothness = smoothness.plus(penalty.smoothness)
    if isinstance(given, float | int):
        smoothness = Smoothness(float(given), source="given")
    return Problem(data, loss, mu, penalty, smoothness, test=open_test(spec.data, spec.folder, data))


def foreseen(spec: RunSpec, samples: int, dim: int) -> Problem:
    """The problem before its data are read: what is not known of it yet is UNKNOWN, as N and d may be."""
    loss, given = spec.loss.within(Outline(samples, dim, 0)), spec.objective.smoothness
    of_data = math.nan if isinstance(given, float | int) or not getattr(loss, "smooth", True) else UNKNOWN
    sizes = {"L": of_data, "N": samples, "d": dim, "n": float(spec.workers.count)}
    mu, penalty = _regularizers(spec, sizes, loss)
    smoothness = Smoothness(float(given)) if isinstance(given, float | int) else Smoothness(of_data)
    data = DataSet(Path(), spec.data.title, samples, dim, UNKNOWN)
    return Problem(data, loss, mu, penalty, smoothness, x_star=UNKNOWN, f_star=UNKNOWN)


def within(spec: RunSpec, data: DataSet) -> MeanLoss:
    """The loss or model for these data; UserError if they do not go together, or what a model needs is not installed."""
    outline = Outline(data.n_samples, data.dim, data.classes, data.sizes)
    bound = checked_at(f"objective.{spec.loss.what}", spec.loss.within, outline)
    _ = bound.provenance
    return bound


def with_optimum(problem: Problem, needs: bool = False, asked: bool = True, tells: bool = False) -> Problem:
    """The problem with x* and f* by its loss's solver, unless that takes long and nothing asks for them; refused if it `needs` them
    in vain. `tells`: how far the solver is."""
    loss = problem.loss
    if problem.penalty is not None or (loss.solver is None and not needs):
        return problem
    if not (needs or asked or problem.is_soon_solved):
        return replace(problem, f_star_source=LEFT_OUT)
    try:
        best = _solved(problem, tells)
    except Unsolved as error:
        if needs:
            raise
        why = str(error).removeprefix("objective: ")
        if tells:
            print_once(f"{problem.data.title}: f* is not known: {why}")
        return replace(problem, f_star_source=why)
    problem = replace(problem, f_star=best.f, f_star_accuracy=best.accuracy)
    if best.attained:
        return replace(problem, x_star=best.x, f_star_source="solver")
    source = INFIMUM_IN_PART if best.f else INFIMUM
    if tells:
        print_once(f"{problem.data.title}: f* = {best.f:.6g} is {source}")
    return replace(problem, f_star_source=source)


def _solved(problem: Problem, tells: bool) -> Optimum:
    """x* and f*, from the file beside the data if it is there. Where there is no bar, what takes seconds is not told."""
    data, loss, mu = problem.data, problem.loss, problem.mu
    title = f"computing x* and f* of {data.title}"
    quiet = not tells or optimum_file(data, loss, mu).exists()
    if not (quiet or has_bar() or problem.is_soon_solved):
        print_line(f"{title}, which are kept in the cache")
    with Amount(title, quiet, ("% of the digits", 0.01)) as tell:
        return optimum(data, loss, mu, lambda share: tell(share, 1.0))


def follows_seed(spec: RunSpec, problem: Problem) -> bool:
    """True if another seed would give the run other data or another x0."""
    _, _, split, _ = spec.source
    rng = Streams(spec.seed).at(Role.START, 0, 0)
    before = repr(rng.bit_generator.state)
    start_of(spec, problem, rng)
    return split.follows_seed or repr(rng.bit_generator.state) != before


def start_of(spec: RunSpec, problem: Problem, rng: Generator | None = None) -> Vector:
    """x0 (d,), as [start] says; `rng` is the run's stream for it."""
    at, dim, rng = spec.start.at, problem.dim, rng or Streams(spec.seed).at(Role.START, 0, 0)
    if at is None:
        x0: Any = problem.loss.start(rng)
    elif at == "random":
        x0 = spec.start.scale * rng.standard_normal(dim)
    elif at == "optimum":
        x0 = problem.x_star
    else:
        x0 = np.zeros(dim) if spec.start_point is None else spec.start_point
    if x0.shape != (dim,):
        raise UserError(f"start.at: the start at {at or 'the model'} has {x0.size} coordinates; d = {dim}")
    return x0 + spec.start.offset


def solve(spec: RunSpec) -> tuple[Problem, Optimum]:
    """A run's problem with its minimiser, however large it is; in this process."""
    data = open_data(*spec.source)
    problem = problem_of(spec, data, quiet=True)
    return problem, _solved(problem, True)


def _regularizers(spec: RunSpec, sizes: dict[str, float], loss: MeanLoss) -> tuple[float, Penalty | None]:
    """µ, that of an l2 penalty included, and any other penalty."""
    mu, penalty = if_known(_mu, spec, sizes), if_known(_penalty, spec, sizes, loss)
    if penalty is None or penalty is UNKNOWN or penalty.mu is None:
        return mu, penalty
    return if_known(sum, (mu, penalty.mu)), None


def _mu(spec: RunSpec, sizes: dict[str, float]) -> float:
    """µ, from either form of the regulariser; in a formula L is the smoothness of the data part."""
    objective = spec.objective
    key, factor = ("mu", 1.0) if objective.lambda2 is None else ("lambda2", 2.0)
    formula = getattr(objective, key)
    refuse_smoothness(formula, sizes["L"], spec, f"objective.{key}")
    value = checked_at(f"objective.{key}", evaluate, formula or 0.0, sizes)
    if not 0 <= value < math.inf:
        raise UserError(f"objective.{key}: {value:g} is {'negative' if value < 0 else 'no finite number'}; it must be 0 or more")
    return factor * value


def _penalty(spec: RunSpec, sizes: dict[str, float], loss: MeanLoss) -> Penalty | None:
    """The penalty, its weight evaluated, for the blocks of a model."""
    penalty = spec.penalty
    if penalty is None:
        return None
    refuse_smoothness(penalty.weight, sizes["L"], spec, "objective.penalty.weight")
    return checked_at("objective.penalty", lambda: penalty.evaluated(sizes).within_model(loss.blocks))


def refuse_smoothness(formula: Any, L: float, spec: RunSpec, where: str, names: set[str] | None = None) -> None:
    """Refuse a formula in L where there is none; `names` are what it names, if it names more than it says."""
    if L is UNKNOWN:
        return
    named = set() if formula is None else (names_in(formula) if names is None else names) & set(OF_SMOOTHNESS)
    given = spec.objective.smoothness
    unknown = named & {"L_row", *(() if given == "estimate" else OF_WORKERS)}
    if given is not None and not math.isnan(L) and unknown:
        raise UserError(f"{where}: '{formula}' needs {min(unknown)}, and objective.smoothness = {given!r} leaves it unknown")
    if not named or not math.isnan(L):
        return
    loss, more = spec.loss, ""
    if not loss.of_margin:
        why, more = f"the model '{loss.name}' states none", ', or objective.smoothness = … or "estimate"'
    elif given is not None:
        why = "objective.smoothness gives that of f alone, not that of its data part"
    elif not spec.owns(loss):
        why = f"the {loss.name} loss is not smooth, so there is none"
    else:
        why, more = f"the loss '{loss.name}' states no curvature", ", or objective.smoothness = …"
    raise UserError(f"{where}: '{formula}' needs {min(named)}, and {why}; give a number, or a formula in mu, n, d, N{more}")
