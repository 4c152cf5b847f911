"""What a run needs of its parts, in one place: preparing asks it, and `plan` does before data are read, as far as it is known."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from mpi_compress.algorithms import Algorithm, Method, Setting, algorithms
from mpi_compress.algorithms.steps import formulas_in, formulas_of, names_of, theorems_of
from mpi_compress.algorithms.theorem import unproved
from mpi_compress.algorithms.tuning.sizes import tuned
from mpi_compress.core.errors import NotMet, UserError, checked_at, placed
from mpi_compress.job.runs import RunSpec
from mpi_compress.job.tables import LinkTable
from mpi_compress.job.trials import trials
from mpi_compress.messages.compressors.base import AmongWorkers
from mpi_compress.messages.costs.base import check_cost
from mpi_compress.messages.link import Link
from mpi_compress.preparing.problems import Problem, refuse_left_out, refuse_smoothness, start_of, unsolved_of
from mpi_compress.preparing.shapes import Shape, Shapes
from mpi_compress.preparing.wanted import Wanted
from mpi_compress.problem.constants import Smoothness
from mpi_compress.problem.datasets.store import DataSet
from mpi_compress.problem.partitions import refuse_idle_workers

NOTHING_RUN = "; nothing was run: --only takes the runs of other labels"
Numbers = tuple[float, float, float]  # L, the L_i, and L_row
_FAR_APART: Sequence[Numbers] = (1.0, 1.0, 1.0), (1e-9, 2e-9, 5e-9), (1e9, 3e9, 4e9)


def _with(trait: str) -> str:
    """The methods that have a trait."""
    return ", ".join(name for name in algorithms if getattr(algorithms[name], trait))


def _refusals(spec: RunSpec, method: Method) -> Iterator[str]:
    """What is refused of the tables of a run and its method, in sentences for users; `Method.needs` says what the method needs."""
    workers, name, as_set = spec.workers, method.name, f"{method.name}, as it is set here,"
    if not isinstance(method, Algorithm):
        for key in ("cost_up", "wire_bits_up"):
            if key in spec.stop.columns:
                yield f"stop.{key}: {name} shares memory and counts no bits; give rounds or seconds"
        if spec.cost.clock is not None:
            yield f"cost.model = {spec.cost.name}: {name} shares memory and sends no messages; leave it out"
        if spec.log.count:
            yield f"log.count: {name} shares memory and sends no messages; leave it out"
    if "lyapunov" in spec.asked and spec.log.theory and (why := unproved(method)):
        yield f"log.theory: the job asks for lyapunov, and {why}"
    if workers.participants is not None and not method.partial_mean:
        enough = f"some of them are enough for {_with('partial_mean')}"
        own = '; partial_mean = "over participants" or "over all" says so of one of your own'
        yield f"workers.participate = {workers.participate}: {as_set} needs all workers in every round; {enough}{own}"


def algorithm_of(spec: RunSpec, problem: Problem, numbers: Mapping[str, float]) -> Method:
    """The run's algorithm, bound to its setting; NotMet if a need is not met, UserError with its place in the job for what else is
    wrong."""
    return _bound(spec, problem, _setting_of(spec, problem, numbers))


def refuse_runs(specs: Sequence[RunSpec], of_job: Sequence[RunSpec]) -> None:
    """UserError with what is known already to refuse the first of these runs; it says whether others of the job can be run."""
    shapes = Shapes()
    for spec in specs:
        if spec.missing:
            with placed(spec.where):
                spec.data.file(spec.folder)
        if why := refusal(spec, shapes.of(spec)):
            others = (o for o in of_job if o.label != spec.label and not (o.missing or refusal(o, shapes.of(o))))
            raise UserError(f"{spec.where}{why}{'' if next(others, None) is None else NOTHING_RUN}")


def refusal(spec: RunSpec, shape: Shape | None) -> str:
    """Why a run on data of this size is refused, whatever else the data are; "" if nothing is known that speaks against it. Numbers
    that are far apart stand for those of the data that are not known, such as L, and for N and d where there is no shape: what is
    refused alike with all of them does not depend on them. No data are read, and nothing is solved or compiled."""
    spec = trials(spec)[0] if spec.tune else spec
    if not spec.loss.of_margin or spec.up.compressor.follows == "noise":
        return ""  # settled by the data themselves
    shapes = [shape] if shape else [Shape(10**9, spec.data.known_dim or dim, 1e10) for dim in (1000, 100_000)]
    said = ""
    for numbers, each in product(_FAR_APART, shapes):
        try:
            why = _refused_with(spec, each, numbers)
        except Exception:  # a user's part may fail for the numbers that stand for the data's
            why = ""
        if not why or said not in ("", why):
            return ""
        said = why
    return said


def _refused_with(spec: RunSpec, shape: Shape, numbers: Numbers) -> str:
    try:
        refuse_idle_workers(spec.workers.count, shape.samples)
        problem = _of_unknown_data(spec, shape, numbers)
        refuse_left_out(spec, problem.penalty)
        start_of(spec, problem)
        setting = _setting_of(spec, problem, {**problem.numbers(spec.workers.count), "g0": 1 / numbers[0]})
        _bound(spec, problem, setting)
    except UserError as error:
        return str(error)
    return ""


def algorithm_on(spec: RunSpec, shape: Shape) -> Method:
    """The run's algorithm bound to a setting of this size, with 1 for the numbers of the data; any error where that cannot be."""
    spec = spec.tuned(spec.tune.grid[0]) if spec.tune else spec
    problem = _of_unknown_data(spec, shape, _FAR_APART[0])
    return _bound(spec, problem, _setting_of(spec, problem, {**problem.numbers(spec.workers.count), "g0": 1.0}))


def _of_unknown_data(spec: RunSpec, shape: Shape, numbers: Numbers) -> Problem:
    """The problem on data of this size, of which no more is known: these numbers stand for L, the L_i and L_row, 0 for x*."""
    loss, n, wanted = spec.loss, spec.workers.count, Wanted.by(spec)
    data = DataSet(Path(), spec.data.title, shape.samples, shape.dim, int(shape.nonzeros))
    is_known = not getattr(loss, "smooth", True) or isinstance(spec.objective.smoothness, float | int)  # without the data
    L, L_i, L_row = numbers
    of_data = Smoothness(np.nan) if is_known else Smoothness(L, [L_i] * n if wanted.each else None, L_row if wanted.row else None)
    return replace(unsolved_of(spec, data, loss, of_data), x_star=np.zeros(shape.dim), f_star=0.0)


def _setting_of(spec: RunSpec, problem: Problem, numbers: Mapping[str, float]) -> Setting:
    """What the run fixes for its algorithm; UserError where that does not go together."""
    algorithm = spec.algorithm
    up, down = (_link(spec, way, table, problem) for way, table in (("up", spec.up), ("down", spec.down)))
    checked_at("cost", partial(check_cost, spec.cost))
    regularizer, penalty = algorithm.regularizer or spec.objective.regularizer, problem.penalty
    if penalty is not None and regularizer == "worker" and penalty.smooth:
        penalty = None  # in the f_i
    if penalty is not None and not algorithm.proximal:
        why = "is at the master" if penalty.smooth else "is not smooth"
        raise UserError(
            f"objective.penalty: '{penalty.name}' {why}, and {algorithm.name} has no step that applies it; these have one: "
            + _with("proximal")
        )
    apart, shapes = problem.mu if regularizer == "master" else 0.0, problem.block_shapes
    whole = partial(problem.objective, n=1, mu=problem.mu) if problem.loss.of_margin else None
    n, participants = spec.workers.count, spec.workers.participants
    numbers = numbers if spec.stop.rounds is None else {**numbers, "rounds": float(spec.stop.rounds)}
    return Setting(
        n=n, dim=problem.dim, up=up, down=down, cost=spec.cost, numbers=numbers, mu_apart=apart, x_star=problem.x_star,
        penalty_apart=penalty, participants=participants, whole=whole, shapes=shapes, f_star=problem.f_star,
    )  # fmt: skip


def _bound(spec: RunSpec, problem: Problem, setting: Setting) -> Method:
    """The algorithm in its setting, its formulas evaluated."""
    algorithm = spec.algorithm
    for key in formulas_of(type(algorithm)):
        for formula in formulas_in(getattr(algorithm, key)):
            refuse_smoothness(formula, problem.L, spec, f"algorithm.{key}", names_of(formula, theorems_of(algorithm)))
    try:
        method = checked_at("algorithm", partial(algorithm.bind, setting))
    except NotMet as error:
        raise NotMet(f"algorithm: {error}", error.of) from None
    for sentence in _refusals(spec, method):
        raise NotMet(sentence)
    return method


def _link(spec: RunSpec, way: str, table: LinkTable, problem: Problem) -> Link:
    """The link of a direction, "up" or "down"."""
    compressor, dim = table.compressor, problem.dim
    sizes = [math.prod(shape) for shape in problem.block_shapes]
    compressor = checked_at(f"{way}.compressor", partial(compressor.in_run, dim, sizes=sizes))
    if isinstance(compressor, AmongWorkers):
        compressor = checked_at(f"{way}.compressor", partial(compressor.among, spec.workers.count))
    sets = spec.algorithm.sets_compressor and (way == "up" or way in spec.algorithm.links)
    follows = way == "up" and compressor.follows == "step" and hasattr(spec.algorithm, "in_round")  # error feedback sets it
    if not (table.budget or sets or follows):
        checked_at(f"{way}.compressor", partial(compressor.check, dim))
    link = Link(compressor, table.codec, dim)
    return checked_at(f"{way}.budget", partial(tuned, link, spec.cost)) if table.budget else link
