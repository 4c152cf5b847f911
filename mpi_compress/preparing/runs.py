"""A run that can be played: its data, its algorithm bound to them, the point where it starts, and where it comes from."""

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any

from mpi_compress.algorithms import Algorithm, Setting, algorithms
from mpi_compress.algorithms.formulas import names_of
from mpi_compress.algorithms.steps import formulas_in
from mpi_compress.algorithms.tuning.links import follows_link, tuned
from mpi_compress.core.errors import UserError, checked_at
from mpi_compress.core.progress import print_line
from mpi_compress.core.registry import is_ours
from mpi_compress.exchange import Exchange
from mpi_compress.exchange.ranks import Ranks, at_root
from mpi_compress.guard.verbs import check_logs
from mpi_compress.job.runs import RunSpec
from mpi_compress.job.tables import LinkTable
from mpi_compress.kernels.vectors import norm
from mpi_compress.messages.compressors.base import AmongWorkers, Composed
from mpi_compress.messages.costs import Clocked
from mpi_compress.messages.costs.base import check_cost
from mpi_compress.messages.guarded import GuardedLink
from mpi_compress.messages.kinds import Dense, Vector
from mpi_compress.messages.link import Link
from mpi_compress.preparing.memory_needs import Shape, refuse_what_cannot_fit, shape_of
from mpi_compress.preparing.problems import Problem, is_large, key_of, problem_of, refuse_smoothness, start_of
from mpi_compress.problem.constants import eigenvalues_file, gradient_noise
from mpi_compress.problem.datasets.store import open_data
from mpi_compress.problem.own_parts import checked_penalty
from mpi_compress.problem.partitions import refuse_idle_workers


@dataclass(frozen=True)
class Prepared:
    """A run that can be played."""

    spec: RunSpec
    run_id: str
    problem: Problem
    algorithm: Algorithm
    x0: Vector


def prepare(spec: RunSpec, ranks: Ranks, problems: dict[str, Problem], quiet: bool, force: bool) -> Prepared:
    """Open a run's data, solve its problem and bind its algorithm; UserError with the place in the job if that is not possible.

    Args:
        problems: keeps the problems that several runs share.
        force: do not check how much memory is free.
    """
    try:
        key = key_of(spec)
        if key not in problems:
            problems[key] = _problem(spec, ranks, quiet, force)
        problem = problems[key]
        x0 = ranks.on_root(partial(start_of, spec, problem))
        spec = ranks.on_root(partial(_with_noise, spec, problem, x0))
        run_id = ranks.on_root(lambda: spec.run_id)
        numbers = ranks.on_root(partial(_numbers, spec, problem, x0))
        at_root(ranks, partial(algorithm_of, spec, problem, numbers))  # so that what is wrong is reported once
        if not quiet:
            at_root(ranks, partial(_warn_of_whole_floats, spec, problem.dim))
        return Prepared(spec, run_id, problem, algorithm_of(spec, problem, numbers), x0)
    except UserError as error:
        raise type(error)(f"{spec.where}{error}") from None


def _problem(spec: RunSpec, ranks: Ranks, quiet: bool, force: bool) -> Problem:
    """A run's problem, once it is clear that there is memory for its data."""

    def refuse(shape: Shape, solve: bool) -> None:
        ranks.each(partial(refuse_what_cannot_fit, spec, shape, ranks.size, ranks.ranks_here, solve))

    shape = None if force or spec.data.generator is None else ranks.on_root(partial(shape_of, spec))
    if shape is not None:
        refuse(shape, solve=False)
    data = open_data(spec.data, spec.folder, spec.split, spec.labels, ranks)
    ranks.on_root(partial(refuse_idle_workers, spec.workers.count, data.n_samples))
    if not force:
        shape = Shape(data.n_samples, data.dim, data.nonzeros, data.classes, data.dealt, data.sizes)
        refuse(shape, solve=not is_large(data) or not eigenvalues_file(data).exists())
    return ranks.on_root(partial(problem_of, spec, data, quiet))


def _with_noise(spec: RunSpec, problem: Problem, x0: Vector) -> RunSpec:
    """The run, its uplink's compressor settled by the gradients' noise at x0 if it needs that (M = 0); at rank 0."""
    compressor = spec.up.compressor
    if not compressor.needs_noise:
        return spec
    n, batch = spec.workers.count, spec.algorithm.batch
    fs = (problem.objective(rows, n, problem.mu) for rows in problem.data.shards(range(n), n))
    zeta2, sigma2 = gradient_noise(fs, n, batch, x0)
    settled = checked_at("up.compressor", lambda: compressor.with_noise(zeta2, sigma2, problem.dim))
    return replace(spec, up=replace(spec.up, compressor=settled))


def _numbers(spec: RunSpec, problem: Problem, x0: Vector) -> dict[str, float]:
    """The quantities that formulas may name, ‖∇f(x0)‖ only if one does. At rank 0."""
    known = problem.numbers(spec.workers.count)
    if "g0" in spec.algorithm.names():
        f = problem.objective(problem.data.read(0, problem.data.n_samples), 1, problem.mu)
        known["g0"] = norm(f.value_and_gradient(x0)[1])
    return known


def algorithm_of(spec: RunSpec, problem: Problem, numbers: Mapping[str, float]) -> Algorithm:
    """The run's algorithm, bound to its setting."""
    algorithm, dim = spec.algorithm, problem.dim
    _check_participation(spec, algorithm)
    up, down = (_link(spec, way, table, problem) for way, table in (("up", spec.up), ("down", spec.down)))
    if not is_ours(spec.cost):
        checked_at("cost", partial(check_cost, spec.cost))
    for key in algorithm.formulas():
        for formula in formulas_in(getattr(algorithm, key)):
            refuse_smoothness(formula, problem.L, spec, f"algorithm.{key}", names_of(formula, algorithm.theory))
    if algorithm.shares_memory and spec.stop.wire_bits_up is not None:
        raise UserError(f"stop.wire_bits_up: {algorithm.name} shares memory and counts no bits; give rounds or seconds")
    if algorithm.shares_memory and isinstance(spec.cost, Clocked):
        raise UserError(f"cost.model = {spec.cost.name}: {algorithm.name} shares memory and sends no messages; leave it out")
    if algorithm.shares_memory and spec.log.count:
        raise UserError(f"log.count: {algorithm.name} shares memory and sends no messages; leave it out")
    if not is_ours(algorithm):
        checked_at("algorithm", partial(check_logs, algorithm))
    regularizer = algorithm.regularizer or spec.objective.regularizer
    apart = problem.mu if regularizer == "master" else 0.0
    penalty = problem.penalty if problem.penalty is not None and not (regularizer == "worker" and problem.penalty.smooth) else None
    if penalty is not None and not algorithm.proximal:
        why = "is at the master" if penalty.smooth else "is not smooth"
        raise UserError(
            f"objective.penalty: '{penalty.name}' {why}, and {algorithm.name} has no step that applies it; these have one: "
            + ", ".join(name for name in algorithms if algorithms[name].proximal)
        )
    applied = None if penalty is None else checked_penalty(penalty)
    participants = spec.workers.participants
    shapes = problem.block_shapes
    setting = Setting(spec.workers.count, dim, up, down, spec.cost, apart, numbers, problem.x_star, applied, participants, shapes)
    method = checked_at("algorithm", lambda: algorithm.within(setting))
    _check_participation(spec, method)
    _check_fold(spec, method)
    return method


def _check_participation(spec: RunSpec, algorithm: Algorithm) -> None:
    """UserError where some of the workers take part, and the algorithm needs all of them."""
    if spec.workers.participants is not None and not algorithm.partial_mean:
        raise UserError(
            f"workers.participate = {spec.workers.participate}: {algorithm.name}, as it is set here, needs all workers in every "
            "round; some of them are enough for " + ", ".join(name for name in algorithms if algorithms[name].partial_mean)
        )


def _check_fold(spec: RunSpec, algorithm: Algorithm) -> None:
    """UserError where a tree folds messages that the algorithm does not send, or uses one by one."""
    if spec.workers.fold == "tree" and (algorithm.shares_memory or algorithm.needs_each):
        why = "shares memory and sends no messages" if algorithm.shares_memory else "needs each message, not their mean alone"
        raise UserError(f'workers.fold = "tree": {algorithm.name}, as it is set here, {why}; fold = "order" would do')


_warned: set[str] = set()


def _warn_of_whole_floats(spec: RunSpec, dim: int) -> None:
    """Say once of each of a user's compressors that it is charged for d floats, though its theorem says that it compresses."""
    for table in (spec.up, spec.down):
        compressor = table.compressor
        if is_ours(compressor) or compressor.makes is not Dense or compressor.name in _warned:
            continue
        stated = {compressor.omega(dim), compressor.variance(dim), 1.0 - (compressor.delta(dim) or 1.0)}
        if not stated <= {None, 0.0}:
            _warned.add(compressor.name)
            print_line(
                f"{compressor.name}: makes Dense, so each message counts as {dim} floats of {table.codec.float_format.bits} bits; "
                "a kind and a codec of its own are charged for what they write: docs/own-compressor.md"
            )


def _link(spec: RunSpec, way: str, table: LinkTable, problem: Problem) -> Link:
    """The link of a direction, "up" or "down"; one that checks every message if a part is the user's."""
    compressor, dim = table.compressor, problem.dim
    if isinstance(compressor, Composed):
        compressor = checked_at(f"{way}.compressor", partial(compressor.within_model, problem.block_sizes))
    if isinstance(compressor, AmongWorkers):
        compressor = checked_at(f"{way}.compressor", partial(compressor.among, spec.workers.count))
    if not (table.budget or spec.algorithm.settles(compressor, way)):
        checked_at(f"{way}.compressor", partial(compressor.check, dim))
    trusted = all(is_ours(part) for part in (spec.algorithm, compressor, table.codec))
    link = (Link if trusted else GuardedLink)(compressor, table.codec, dim)
    return checked_at(f"{way}.budget", partial(tuned, link, spec.cost)) if table.budget else link


def attributes_of(p: Prepared, exchange: Exchange, ranks: Ranks) -> Mapping[str, Any]:
    """Attributes from the job, the problem and the machine; `reason` is written when the run ends."""
    return {
        "job": p.spec.toml(),
        "label": p.spec.label,
        "run_id": p.run_id,
        "reason": "",
        **({"overridden": json.dumps(p.spec.overridden)} if p.spec.overridden else {}),
        "data": p.spec.data.shown,
        "n_workers": exchange.n,
        "n_ranks": ranks.size,
        **({} if p.spec.log.evaluate is None else {"evaluate": p.spec.log.evaluate}),
        "n_samples": p.problem.data.n_samples,
        "dim": p.problem.dim,
        "L": p.problem.L,
        **({} if p.problem.L_max is None else {"L_max": p.problem.L_max}),
        "mu": p.problem.mu,
        "f_star": p.problem.f_star,
        "f_star_accuracy": p.problem.f_star_accuracy,
        "L_source": p.problem.smoothness.source,
        "f_star_source": p.problem.f_star_source,
        "settled": json.dumps({k: v for k in p.algorithm.formulas() if isinstance(v := getattr(p.algorithm, k), float)}),
        **({"links": p.spec.cost.shown, "follows_link": follows_link(p.algorithm)} if isinstance(p.spec.cost, Clocked) else {}),
        "versions": _versions(),
        **p.problem.loss.provenance,
        "mpi_library": ranks.library,
        "host": f"{platform.node()} ({platform.machine()}, {os.cpu_count()} cores)",
        "cores": os.cpu_count() or 0,
        "commit": _commit(),
    }


@cache
def _versions() -> str:
    """The versions of Python and of the packages that decide a number, as JSON text."""
    packages = ("mpi-compress", "numpy", "scipy", "numba", "h5py", "mpi4py")
    return json.dumps({"python": platform.python_version(), **{name: metadata.version(name) for name in packages}})


@cache
def _commit() -> str:
    """The commit of this package's own checkout as this process began; "" where it is installed from elsewhere."""
    checkout = Path(__file__).parents[2]
    if not (checkout / ".git").exists():
        return ""
    describe = ["git", "-C", str(checkout), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(describe, capture_output=True, text=True, timeout=5, check=False).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""
