"""From a job to its results: problems are prepared first, all of them; then the runs are played one by one."""

import json
import math
import os
import platform
import re
import subprocess
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from mpi_compress import engine
from mpi_compress.algorithms import Algorithm, Setting
from mpi_compress.compressed import Vector
from mpi_compress.datasets.store import DataSet, open_data
from mpi_compress.errors import UserError
from mpi_compress.exchange import Exchange, Local
from mpi_compress.expressions import evaluate
from mpi_compress.job import Job, RunSpec
from mpi_compress.launch import Alone, Team
from mpi_compress.link import Link
from mpi_compress.objective import LOSSES, Objective, Rows
from mpi_compress.observer import Observer, Stop, Verdict
from mpi_compress.progress import Progress, bits_text, tell
from mpi_compress.reference import gram_eigenvalues, optimum
from mpi_compress.results import Recorder, Run, read
from mpi_compress.streams import Streams

SOLVED_UP_TO = 50_000_000  # nonzeros: for larger sets x* is computed only where a job needs it
_SOLVED = 1e-8  # ‖∇f(x)‖/‖∇f(0)‖ from which on f(x) is not called f*


@dataclass(frozen=True)
class Problem:
    """Data, objective and workers of a run, with what their data decide."""

    data: DataSet
    loss: str
    mu: float
    L: float  # smoothness of f, regulariser included
    L_max: float | None  # the largest of the workers' L_i, where the job asks for it
    L_rms: float | None  # √((1/n) Σ L_i²), likewise
    x_star: Vector | None
    f_star: float
    f_star_accuracy: float

    def numbers(self, n: int) -> dict[str, float]:
        """What formulas may name."""
        kappa = self.L / self.mu if self.mu > 0 else math.inf
        sizes = {"n": float(n), "d": float(self.data.dim), "N": float(self.data.n_samples)}
        known = {"L": self.L, "mu": self.mu, "kappa": kappa, **sizes}
        return {**known, **{k: v for k, v in (("L_max", self.L_max), ("L_rms", self.L_rms)) if v is not None}}


@dataclass(frozen=True)
class Prepared:
    """A run that can be played."""

    spec: RunSpec
    run_id: str
    problem: Problem
    algorithm: Algorithm
    x0: Vector


def run(
    job: Job,
    comm: Any = None,
    out: str | Path = "results",
    fresh: bool = False,
    quiet: bool = True,
    team: Alone | Team | None = None,
) -> list[Run]:
    """Run a job: in this process, or on the ranks of an mpi4py communicator.

    Runs whose results are there already are not run again, but with `fresh`.

    Args:
        out: results go to `<out>/<job>/<label>-<run id>.h5`.

    Returns:
        the results in the job's order, at rank 0; nothing elsewhere.
    """
    from mpi_compress.launch import team_of

    team = team or team_of(comm)
    problems: dict[str, Problem] = {}
    prepared = [_prepare(spec, team, problems, quiet) for spec in job.runs]
    files = [result_file(job, p.spec, p.run_id, Path(out)) for p in prepared]
    for i, p in enumerate(prepared):
        if files.index(files[i]) < i:
            raise UserError(f"{p.spec.where}is the same run as another one: label and all settings are equal")
    rows: dict[tuple[Path, int], dict[int, Rows]] = {}
    results = []
    for p, file in zip(prepared, files, strict=True):
        done = team.on_root(partial(_is_done, file, fresh))
        if done and team.is_root and not quiet:
            tell(f"{p.spec.label}: done already, {file}")
        if not done:
            file = _play(p, file, team, rows, quiet)
        if team.is_root:
            results.append(read(file))
    return results


def result_file(job: Job, spec: RunSpec, run_id: str, out: Path) -> Path:
    """Where a run's result goes."""
    label = re.sub(r"[^\w.+=-]+", "-", re.sub(r"\s*=\s*", "=", spec.label)).strip("-")
    return out / job.name / f"{label}-{run_id}.h5"


def _is_done(file: Path, fresh: bool) -> bool:
    return file.exists() and not fresh


def _prepare(spec: RunSpec, team: Alone | Team, problems: dict[str, Problem], quiet: bool) -> Prepared:
    try:
        key = json.dumps([spec.written.get(t) for t in ("data", "objective", "workers", "seed")] + [_wants(spec)], default=str)
        if key not in problems:
            problems[key] = team.on_root(partial(_problem, spec, quiet))
        problem = problems[key]
        x0 = team.on_root(partial(_start, spec, problem))
        run_id = team.on_root(lambda: spec.run_id)
        dim, n = problem.data.dim, spec.workers.count
        if n > problem.data.n_samples:
            raise UserError(f"workers.count: {n} workers are more than the {problem.data.n_samples} samples")
        links = []
        for name, table in (("up", spec.up), ("down", spec.down)):
            if not (name == "up" and spec.algorithm.settles(table.compressor)):
                _checked(partial(table.compressor.check, dim), f"{name}.compressor")
            links.append(Link(table.compressor, table.codec, dim))
        apart = problem.mu if _regularizer(spec) == "master" else 0.0
        setting = Setting(n, dim, links[0], links[1], spec.cost, apart, problem.numbers(n), problem.x_star)
        algorithm = _checked(lambda: spec.algorithm.within(setting), "algorithm")
        return Prepared(spec, run_id, problem, algorithm, x0)
    except UserError as error:
        raise type(error)(f"{spec.where}{error}") from None


def _checked(build: Any, where: str) -> Any:
    try:
        return build()
    except UserError:
        raise
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None


def _regularizer(spec: RunSpec) -> str:
    return getattr(spec.algorithm, "regularizer", None) or spec.objective.regularizer


def _wants(spec: RunSpec) -> tuple[bool, bool]:
    """Whether a run asks for L_max, and whether it cannot do without x*."""
    names = spec.algorithm.names()
    return "L_max" in names or "L_rms" in names, (
        spec.start.at == "optimum" or spec.algorithm.needs_optimum or spec.stop.suboptimality is not None
    )


def _problem(spec: RunSpec, quiet: bool) -> Problem:
    """Parse or find the data, and compute what they decide. At rank 0 only."""
    objective = spec.objective
    loss = LOSSES[objective.loss]
    data = open_data(spec.data, spec.folder, spec.workers.partition, spec.seed, real_labels=objective.loss == "least-squares")
    scale = loss.curvature / data.n_samples
    L_data = scale * gram_eigenvalues(data)[0]
    sizes = {"L": L_data, "N": float(data.n_samples), "d": float(data.dim), "n": float(spec.workers.count)}
    formula = objective.mu if objective.lambda2 is None else objective.lambda2
    mu = _checked(lambda: evaluate(formula or 0.0, sizes), "objective.mu") * (2.0 if objective.lambda2 is not None else 1.0)
    if mu < 0:
        raise UserError(f"objective.mu: {mu:g} is negative; it must be 0 or more")
    if L_data + mu == 0:
        raise UserError("data: all samples are zero, so there is nothing to optimise")
    wants_L_max, wants_optimum = _wants(spec)
    L_max = L_rms = None
    if wants_L_max:
        n = spec.workers.count
        each = [scale * n * eigenvalue + mu for eigenvalue in gram_eigenvalues(data, n)]
        L_max, L_rms = max(each), math.sqrt(sum(L * L for L in each) / n)
    known = Problem(data, objective.loss, mu, L_data + mu, L_max, L_rms, None, math.nan, math.nan)
    if data.nonzeros > SOLVED_UP_TO and not wants_optimum:
        return known
    if not quiet and not data.beside(f"optimum-{objective.loss}-{mu.hex()}.h5").exists():
        tell(f"{data.title}: computing x* and f* (kept beside the data)")
    best = optimum(data, objective.loss, loss, mu)
    if best.reached > _SOLVED:
        if wants_optimum:
            raise UserError(
                f"objective: x* cannot be computed: the gradient falls to {best.reached:.1e} of its start only; set mu > 0"
            )
        return known
    return Problem(data, objective.loss, mu, L_data + mu, L_max, L_rms, best.x, best.f, best.accuracy)


def _start(spec: RunSpec, problem: Problem) -> Vector:
    """x0, as [start] says."""
    at = spec.start.at
    if at == "zero":
        x0 = np.zeros(problem.data.dim)
    elif at == "optimum":
        assert problem.x_star is not None
        x0 = problem.x_star.copy()
    else:
        found = read(spec.folder / at if (spec.folder / at).exists() else at)
        if found.x is None or found.x.size != problem.data.dim:
            raise UserError(f"start.at: {at} has no last point of d = {problem.data.dim} coordinates")
        x0 = found.x
    return x0 + spec.start.offset


def _play(p: Prepared, file: Path, team: Alone | Team, rows: dict[tuple[Path, int], dict[int, Rows]], quiet: bool) -> Path:
    """One run, from its first row to its file."""
    spec, problem = p.spec, p.problem
    n = spec.workers.count
    exchange = team.exchange(n, spec.workers.exchange, spec.workers.master)
    key = (problem.data.file, n)
    if key not in rows:
        rows.clear()  # one problem in memory at a time
        rows[key] = {i: problem.data.shard(i, n) for i in exchange.mine}
    own = {i: rows[key].get(i) or problem.data.shard(i, n) for i in exchange.mine}
    weight, mu = n / problem.data.n_samples, 0.0 if p.algorithm.setting.mu_apart else problem.mu
    objectives = {i: Objective(r, LOSSES[problem.loss], weight, mu) for i, r in own.items()}
    team.first_on_each_host(lambda: _rehearse(p))
    recorder = Recorder(file, _attributes(p, exchange, team)) if team.is_root else None
    with Progress(spec.label, spec.stop.rounds, quiet or not team.is_root) as progress:
        observer = Observer(
            exchange, objectives, problem.data.n_samples, p.algorithm.setting.mu_apart, problem.f_star, spec.cost,
            spec.stop, spec.log.every, recorder.append if recorder else _nothing, progress,
        )  # fmt: skip
        try:
            verdict, x = engine.run(p.algorithm, objectives, exchange, Streams(spec.seed), p.x0, observer)
        except BaseException as error:
            if recorder is not None:
                recorder.abandon("failed" if isinstance(error, Exception) else "stopped", f"{type(error).__name__}: {error}")
            if isinstance(error, Exception) and not isinstance(error, UserError) and team.size == 1:
                tell(f"{spec.label}: failed, the others go on:\n{traceback.format_exc()}")
                return recorder.part if recorder is not None else file
            raise
        finally:
            exchange.close()
    if recorder is not None:
        status = "complete" if verdict is Verdict.COMPLETE else "diverged"
        recorder.finish(status, observer.reason, x, {"mpi_bytes_received_up": exchange.bytes_received_up})
        if not quiet:
            why = f" ({observer.reason})" if observer.reason else ""
            tell(f"{spec.label}: {status}{why}, {bits_text(sum(observer.wire_up))} up, {file}")
    return file


def _rehearse(p: Prepared) -> None:
    """Two rounds on two samples, so that every kernel is compiled, by one rank of a host, before a clock starts."""
    dim, n = p.problem.data.dim, 1
    shard = p.problem.data.read(0, 1)
    dtype = shard.matrix[-1].dtype
    if len(shard.matrix) == 3:
        matrix: tuple[Any, ...] = (np.arange(3, dtype=np.uint64), np.zeros(2, dtype=np.uint32), np.ones(2, dtype=dtype))
    else:
        matrix = (np.full((2, dim), 1.0 / dim, dtype=dtype),)
    f = Objective(Rows(matrix, np.array([1.0, -1.0]), dim), LOSSES[p.problem.loss], 0.5, p.problem.mu)
    observer = Observer(Local(n), {0: f}, 2, 0.0, math.nan, p.spec.cost, Stop(rounds=2), 1, _nothing, _nothing)
    algorithm = p.spec.algorithm.within(p.algorithm.setting)  # one that keeps nothing for the run
    engine.run(algorithm, {0: f}, Local(n), Streams(0), np.full(dim, 1e-3), observer)


def _nothing(*_: Any) -> None:
    pass


def _attributes(p: Prepared, exchange: Exchange, team: Alone | Team) -> Mapping[str, Any]:
    packages = ("mpi-compress", "numpy", "scipy", "numba", "h5py", "mpi4py")
    return {
        "job": p.spec.toml(),
        "label": p.spec.label,
        "run_id": p.run_id,
        "reason": "",
        "data": p.problem.data.title,
        "n_workers": exchange.n,
        "n_ranks": team.size,
        "n_samples": p.problem.data.n_samples,
        "dim": p.problem.data.dim,
        "L": p.problem.L,
        "mu": p.problem.mu,
        "f_star": p.problem.f_star,
        "f_star_accuracy": p.problem.f_star_accuracy,
        "versions": json.dumps({"python": platform.python_version(), **{name: metadata.version(name) for name in packages}}),
        "mpi_library": team.library,
        "host": f"{platform.node()} ({platform.machine()}, {os.cpu_count()} cores)",
        "commit": _commit(),
    }


def _commit() -> str:
    """The commit of this package's own checkout; "" where it is installed from elsewhere."""
    here = Path(__file__).parent
    try:
        out = subprocess.run(
            ["git", "-C", here, "describe", "--always", "--dirty"], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return out.stdout.strip() if (here.parent / ".git").exists() else ""
