"""A run that is ready: its data, its algorithm bound to them, the point where it starts, and where it comes from."""

import json
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any

from mpi_compress.algorithms import Estimator, Method
from mpi_compress.algorithms.product import other_parts
from mpi_compress.algorithms.steps import formulas_of, named_by, takes_theorem_step
from mpi_compress.algorithms.theorem import has_theory, is_of_another
from mpi_compress.algorithms.tuning.sizes import follows_link
from mpi_compress.core.errors import UserError, checked_at, placed
from mpi_compress.core.installed import package_of
from mpi_compress.core.progress import print_line
from mpi_compress.exchange import Exchange
from mpi_compress.exchange.host import available
from mpi_compress.exchange.ranks import Ranks, at_root
from mpi_compress.job.runs import RunSpec, inputs_of
from mpi_compress.job.trials import trials
from mpi_compress.kernels.vectors import norm
from mpi_compress.messages.kinds import Dense, Vector
from mpi_compress.preparing.memory import from_disk, most, refuse_what_cannot_fit
from mpi_compress.preparing.needs import algorithm_of
from mpi_compress.preparing.problems import Problem, key_of, problem_of, start_of
from mpi_compress.preparing.shapes import is_soon_parsed, shape_of
from mpi_compress.problem.constants import gradient_noise
from mpi_compress.problem.datasets.store import open_data
from mpi_compress.problem.partitions import refuse_idle_workers
from mpi_compress.results.reader import LABEL, NUMBERS


@dataclass(frozen=True)
class Prepared:
    """A run that is ready."""

    spec: RunSpec
    run_id: str
    problem: Problem
    algorithm: Method
    x0: Vector


def prepare(spec: RunSpec, ranks: Ranks, problems: dict[str, Problem], quiet: bool, force: bool, soon: bool = False) -> Prepared:
    """Open a run's data, solve its problem and bind its algorithm; UserError with the place in the job if that is not possible.
    `problems` keeps those that several runs share; `force`: do not check how much memory is free; `soon`: as in `problem_of`."""
    with placed(spec.where):
        key = key_of(spec)
        if key not in problems:
            problems[key] = _problem(spec, ranks, quiet, force, soon)
        problem = problems[key]
        x0 = ranks.on_root(partial(start_of, spec, problem))
        spec = ranks.on_root(partial(_with_noise, spec, problem, x0))
        run_id = ranks.on_root(lambda: spec.run_id)
        numbers = ranks.on_root(partial(_numbers, spec, problem, x0))
        at_root(ranks, partial(algorithm_of, spec, problem, numbers))  # so that what is wrong is reported once
        if not quiet:
            at_root(ranks, lambda: [*map(_say, _remarks(spec, problem))])
        return Prepared(spec, run_id, problem, algorithm_of(spec, problem, numbers), x0)


def _problem(spec: RunSpec, ranks: Ranks, quiet: bool, force: bool, soon: bool) -> Problem:
    """A run's problem, once it is clear that there is memory for its data."""
    here = len(ranks.ranks_here), ranks.size
    if not force and spec.data.generator is not None and (generated := ranks.on_root(partial(shape_of, spec))) is not None:
        ranks.each(partial(refuse_what_cannot_fit, spec, generated, *here))
    data = open_data(*spec.source, ranks, quiet)
    if not data.shared:
        ranks.on_root(partial(refuse_idle_workers, spec.workers.count, data.n_samples))
    if not force:
        seen = len(ranks.that_see(data.file)) == ranks.size
        ranks.each(partial(refuse_what_cannot_fit, spec, data, *here, seen))
        if not quiet:
            at_root(ranks, lambda: _say(from_disk(spec, data, *here), str(data.file)))
    return ranks.on_root(partial(problem_of, spec, data, quiet, soon))


def _with_noise(spec: RunSpec, problem: Problem, x0: Vector) -> RunSpec:
    """The run, its uplink's compressor set by the gradients' noise at x0 if it needs that (M = 0); at rank 0."""
    compressor = spec.up.compressor
    if compressor.follows != "noise":
        return spec
    n = spec.workers.count
    noise = gradient_noise(problem.objectives(n), n, spec.algorithm.batch, x0)
    own = checked_at("up.compressor", compressor.in_run, problem.dim, noise=noise)
    return replace(spec, up=replace(spec.up, compressor=own))


def _numbers(spec: RunSpec, problem: Problem, x0: Vector) -> dict[str, float]:
    """The quantities that formulas may name, ‖∇f(x0)‖ only if one does. At rank 0."""
    known = problem.numbers(spec.workers.count)
    if "g0" in named_by(spec.algorithm):
        f = problem.objective(problem.data.read(0, problem.data.n_samples), 1, problem.mu)
        known["g0"] = norm(f.value_and_gradient(x0)[1])
    return known


def foreseen_refusal(spec: RunSpec, problems: dict[str, Problem]) -> str | None:
    """Why a run would be refused, "" if it would not be: it is prepared as far as that takes a moment. None where that
    is not known before its data are parsed, or what takes long is computed. `problems` keeps those that several runs share."""
    spec = replace(trials(spec)[0] if spec.tune else spec, where="")
    try:
        if spec.objective.smoothness == "estimate" or not is_soon_parsed(spec):
            return None
        if most([spec], spec.workers.count) > available():
            return None  # `memory.refuse_what_fits_nowhere` says so
        prepare(spec, Ranks(), problems, quiet=True, force=True, soon=True)
    except UserError as error:
        return str(error)
    except Exception:  # NotYetKnown; or a fault of a user's part, which the run reports
        return None
    return ""


_warned: set[str] = set()


def _say(line: str, of: str = "") -> None:
    """Say what is not empty, once, or once `of` something."""
    if line and (of or line) not in _warned:
        _warned.add(of or line)
        print_line(line)


def _remarks(spec: RunSpec, problem: Problem) -> Iterator[str]:
    """What users may not expect: a compressor of theirs that is charged for d floats, though its theorem says that it compresses; a
    step that has no theorem here."""
    for c, bits in ((table.compressor, table.codec.float_format.bits) for table in (spec.up, spec.down)):
        dim, whole = problem.dim, spec.owns(c) and c.makes is Dense
        if whole and not {c.omega(dim), c.variance(dim), 1.0 - (c.delta(dim) or 1.0)} <= {None, 0.0}:
            yield (
                f"{c.name}: makes Dense, so each message counts as {dim} floats of {bits} bits; a kind and a codec of its own are "
                "charged for what they write: docs/own-compressor.md"
            )
    if said := condition_not_met(spec, problem):
        yield f"{spec.algorithm.name}: {said}"


def condition_not_met(spec: RunSpec, problem: Problem | None) -> str:
    """What the theorem of the run's step takes for granted and the problem, if it is known, does not state, or that it is about
    another method; "" if there is no such thing."""
    method = spec.algorithm
    if not takes_theorem_step(method):
        return ""
    others = other_parts(method) if isinstance(method, Estimator) else ""
    if others or is_of_another(type(method)):
        by = has_theory(type(method))
        states = f"that of {by.__name__}'s theorem" if not spec.owns(by) else f"by the formula that {by.__name__} states"
        return f"its step is {states}, and no theorem is known for {method.name}" + f" with {others}" * bool(others)
    if problem is None or not method.theorem.convex:
        return ""
    penalty = problem.penalty
    is_convex = problem.loss.convex and (penalty is None or penalty.λ * penalty.lowest + problem.mu >= 0)
    said = f"its step follows {method.name}'s theorem, which is about convex f_i; these are not known to be convex"
    return "" if is_convex else said


def attributes_of(p: Prepared, exchange: Exchange, ranks: Ranks) -> Mapping[str, Any]:
    """Attributes from the job, the problem and the machine; `reason` is written when the run ends."""
    spec, problem, method = p.spec, p.problem, p.algorithm
    found = {
        "job": spec.toml(),
        "built": json.dumps(spec.built),
        LABEL: spec.label,
        "run_id": p.run_id,
        "reason": "",
        "overridden": json.dumps(spec.overridden) if spec.overridden else None,
        **_of_data(spec),
        "n_workers": exchange.n,
        "n_ranks": ranks.size,
        "evaluate": spec.log.evaluate,
        "n_samples": problem.data.n_samples,
        "dim": problem.dim,
        "nonzeros": problem.data.entries or None,
        "L": problem.L,
        "L_max": max(problem.smoothness.each) if problem.smoothness.each else None,
        "mu": problem.mu,
        "f_star": problem.f_star,
        "f_star_accuracy": problem.f_star_accuracy,
        "L_source": problem.smoothness.source,
        "f_star_source": problem.f_star_source,
        "settled": json.dumps({k: v for k in formulas_of(type(method)) if isinstance(v := getattr(method, k), float)}),
        "links": spec.cost.links or None,
        "follows_link": follows_link(method) or method.setting.rule is not None if spec.cost.clock else None,
        "rising": json.dumps(spec.rising) if spec.metrics else None,
        "numbers": NUMBERS,
        "versions": json.dumps(_versions() | _packages(spec)),
        **problem.loss.provenance,
        "mpi_library": ranks.library,
        "host": f"{platform.node()} ({platform.machine()}, {os.cpu_count()} cores)",
        "cores": os.cpu_count() or 0,
        "commit": _commit(),
        "condition": condition_not_met(spec, problem) or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _of_data(spec: RunSpec) -> dict[str, Any]:
    return {
        "data": spec.data_shown,
        "data_kind": spec.data_kind,
        "data_file": None if spec.data.generator else os.fsencode(spec.data.file(spec.folder).absolute()).decode(errors="replace"),
        "inputs": json.dumps(inputs_of(spec)),
    }


@cache
def _versions() -> dict[str, str]:
    packages = ("mpi-compress", "numpy", "scipy", "numba", "h5py", "mpi4py")
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in packages}}


def _packages(spec: RunSpec) -> dict[str, str]:
    """The versions of the installed packages that the user's own parts are from, by name."""
    used = [*spec.own, *([spec.data.build_generator()] if spec.data.generator else [])]
    return dict(found.split(" ", 1) for part in used if (found := package_of(type(part).__module__)))


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
