"""A run that can be played: its data, its algorithm bound to them, the point where it starts."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mpi_compress.algorithms import Algorithm, Setting
from mpi_compress.algorithms.async_sgd import AsyncSGD
from mpi_compress.algorithms.steps import formulas_in
from mpi_compress.core.errors import UserError
from mpi_compress.core.registry import is_ours
from mpi_compress.engine.guards import check_logs
from mpi_compress.engine.memory_needs import Shape, refuse_what_cannot_fit, shape_of
from mpi_compress.engine.problems import Problem, checked_at, is_large, key_of, problem_of, refuse_idle_workers, refuse_smoothness
from mpi_compress.exchange.ranks import Ranks, at_root
from mpi_compress.job.runs import RunSpec
from mpi_compress.kernels.vectors import norm
from mpi_compress.messages.costs.base import check_cost
from mpi_compress.messages.guarded_link import GuardedLink
from mpi_compress.messages.kinds import Vector
from mpi_compress.messages.link import Link
from mpi_compress.problem.constants import eigenvalues_file, gradient_noise
from mpi_compress.problem.datasets.store import open_data
from mpi_compress.problem.losses import losses
from mpi_compress.problem.objective import Objective


@dataclass(frozen=True)
class Prepared:
    """A run that can be played."""

    spec: RunSpec
    run_id: str
    problem: Problem
    algorithm: Algorithm
    x0: Vector


def prepare(spec: RunSpec, ranks: Ranks, problems: dict[str, Problem], quiet: bool, force: bool) -> Prepared:
    """Open a run's data, solve its problem and bind its algorithm; `problems` keeps what several runs share.

    Args:
        force: leave out the look at how much memory there is.

    Raises:
        UserError: what does not go together, or does not fit, with the place in the job.
    """
    try:
        key = key_of(spec)
        if key not in problems:
            shape = None if force or spec.data.generator is None else ranks.on_root(partial(shape_of, spec))
            if shape is not None:
                ranks.each(partial(refuse_what_cannot_fit, spec, shape, ranks.size, ranks.ranks_here, solve=False))
            data = open_data(spec.data, spec.folder, spec.workers.partition, spec.seed, spec.real_labels, ranks)
            ranks.on_root(partial(refuse_idle_workers, spec, data))
            if not force:
                solve = not is_large(data) or not eigenvalues_file(data).exists()
                shape = Shape(data.n_samples, data.dim, data.nonzeros)
                ranks.each(partial(refuse_what_cannot_fit, spec, shape, ranks.size, ranks.ranks_here, solve))
            problems[key] = ranks.on_root(partial(problem_of, spec, data, quiet))
        problem = problems[key]
        x0 = ranks.on_root(partial(_start, spec, problem))
        spec = ranks.on_root(partial(_with_settled_threshold, spec, problem, x0))
        run_id = ranks.on_root(lambda: spec.run_id)
        numbers = ranks.on_root(partial(_numbers, spec, problem, x0))
        at_root(ranks, partial(_algorithm, spec, problem, numbers))  # what is wrong is told once
        return Prepared(spec, run_id, problem, _algorithm(spec, problem, numbers), x0)
    except UserError as error:
        raise type(error)(f"{spec.where}{error}") from None


def _with_settled_threshold(spec: RunSpec, problem: Problem, x0: Vector) -> RunSpec:
    """A hard threshold that goes by the gradients' noise gets it from x0, where M = 0: all noise counts as σ². At rank 0 only."""
    compressor = spec.up.compressor
    if not (compressor.needs_noise):
        return spec
    batch = getattr(spec.algorithm, "batch", None)
    zeta2, sigma2 = gradient_noise(problem.data, losses[problem.loss](), problem.mu, spec.workers.count, batch, x0)
    settled = checked_at("up.compressor", lambda: compressor.with_noise(zeta2, sigma2, problem.data.dim))
    return replace(spec, up=replace(spec.up, compressor=settled))


def _numbers(spec: RunSpec, problem: Problem, x0: Vector) -> dict[str, float]:
    """What formulas may name; ‖∇f(x0)‖ where one does. At rank 0 only."""
    known = problem.numbers(spec.workers.count)
    if "g0" in spec.algorithm.names():
        f = Objective(problem.data.read(0, problem.data.n_samples), losses[problem.loss](), 1 / problem.data.n_samples, problem.mu)
        known["g0"] = norm(f.value_and_gradient(x0)[1])
    return known


def _algorithm(spec: RunSpec, problem: Problem, numbers: dict[str, float]) -> Algorithm:
    """The run's algorithm, bound to its setting."""
    dim, n = problem.data.dim, spec.workers.count
    links = []
    for name, table in (("up", spec.up), ("down", spec.down)):
        if not spec.algorithm.settles(table.compressor, name):
            checked_at(f"{name}.compressor", partial(table.compressor.check, dim))
        trusted = all(is_ours(part) for part in (spec.algorithm, table.compressor, table.codec))
        links.append((Link if trusted else GuardedLink)(table.compressor, table.codec, dim))
    if not is_ours(spec.cost):
        checked_at("cost", partial(check_cost, spec.cost))
    apart = problem.mu if _regularizer(spec) == "master" else 0.0
    for key in spec.algorithm.formulas():
        for formula in formulas_in(getattr(spec.algorithm, key)):
            refuse_smoothness(formula, spec, f"algorithm.{key}")
    if isinstance(spec.algorithm, AsyncSGD) and spec.stop.wire_bits_up is not None:
        raise UserError("stop.wire_bits_up: async-sgd shares memory and counts no bits; give rounds or seconds")
    if not is_ours(spec.algorithm):
        checked_at("algorithm", partial(check_logs, spec.algorithm))
    setting = Setting(n, dim, links[0], links[1], spec.cost, apart, numbers, problem.x_star)
    return checked_at("algorithm", lambda: spec.algorithm.within(setting))


def _regularizer(spec: RunSpec) -> str:
    return getattr(spec.algorithm, "regularizer", None) or spec.objective.regularizer


def _start(spec: RunSpec, problem: Problem) -> Vector:
    """x0, as [start] says."""
    at = spec.start.at
    if at == "zero":
        x0 = np.zeros(problem.data.dim)
    elif at == "optimum":
        assert problem.x_star is not None
        x0 = problem.x_star.copy()
    else:
        found = spec.start_point
        assert found is not None
        if found.size != problem.data.dim:
            raise UserError(f"start.at: the last point of {at} has {found.size} coordinates; d = {problem.data.dim}")
        x0 = found
    return x0 + spec.start.offset
