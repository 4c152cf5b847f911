"""From a job to its results: what all runs need is prepared first; then they are played one by one."""

import json
import math
import os
import pickle
import platform
import re
import subprocess
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from mpi_compress import asynchronous, engine
from mpi_compress.algorithms import Algorithm, Setting
from mpi_compress.algorithms.async_sgd import AsyncSGD
from mpi_compress.checkpoint import Header, Keeper, header_of, path_of, remove_checkpoint
from mpi_compress.compressed import Vector
from mpi_compress.compressors.hard_threshold import HardThreshold
from mpi_compress.datasets.store import DataSet, open_data
from mpi_compress.errors import UserError, nearest
from mpi_compress.exchange import Exchange, Local
from mpi_compress.footprint import Shape, refuse_what_cannot_fit, shape_of
from mpi_compress.guard import GuardedLink, GuardedObjective, check_cost, check_logs, watched
from mpi_compress.held_out import HeldOut
from mpi_compress.interrupts import Interrupts, Stopped
from mpi_compress.job import Job
from mpi_compress.kernels.vectors import norm
from mpi_compress.launch import Alone, Team, at_root, team_of
from mpi_compress.link import Link
from mpi_compress.objective import LOSSES, Objective, Rows
from mpi_compress.observer import Observer, Stop, Verdict
from mpi_compress.problem import Problem, checked_at, is_large, key_of, problem_of, refuse_idle_workers, refuse_smoothness
from mpi_compress.progress import Progress, bits_text, tell
from mpi_compress.recorder import BeingWritten, LostRows, Mark, Recorder, part_of
from mpi_compress.reference import eigenvalues_file, gradient_noise
from mpi_compress.registry import is_ours
from mpi_compress.results import Run, read
from mpi_compress.run_spec import RunSpec
from mpi_compress.steps import formulas_in
from mpi_compress.streams import Streams
from mpi_compress.theory import Theory


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
    force: bool = False,
    interrupts: Interrupts | None = None,
) -> list[Run]:
    """Run a job: in this process, or on the ranks of an mpi4py communicator.

    Runs whose results are there already are not run again, but with `fresh`.

    Args:
        out: results go to `<out>/<job>/<label>-<run id>.h5`.
        force: try also what needs more memory than there is.
        interrupts: what may ask a run to end before it is done.

    Returns:
        the results in the job's order, at rank 0; nothing elsewhere.

    Raises:
        Stopped: a run was asked to end; it is saved, and the same call goes on.
    """
    own = team or team_of(comm)
    runs = _run(job, Path(out), _How(own, fresh, quiet, force, interrupts or Interrupts()))
    if team is None:
        own.close()
    return runs


@dataclass(frozen=True)
class _How:
    """How runs are played."""

    team: Alone | Team
    fresh: bool
    quiet: bool
    force: bool
    interrupts: Interrupts
    shared: bool = False  # with other processes, as the trials of [tune] are: what another is at is waited for


def _run(job: Job, out: Path, how: _How) -> list[Run]:
    team, fresh, quiet, force = how.team, how.fresh, how.quiet, how.force
    files = team.on_root(partial(_files_of, job, out))
    done = team.on_root(lambda: [file.exists() and not fresh for file in files])
    specs = {i: spec for i, spec in enumerate(job.runs) if not done[i]}
    wins: dict[int, Mapping[str, Any]] = {}
    trials = {
        t.toml(): t for spec in specs.values() if spec.tune is not None for t in spec.trials
    }  # runs of several seeds share them
    if trials:
        tried = _run(replace(job, name=f"{job.name}/tuning", runs=[*trials.values()]), out, replace(how, shared=True))
        found = dict(zip(trials, tried, strict=False))  # at rank 0
        for i, spec in specs.items():
            if spec.tune is not None:
                wins[i] = team.on_root(partial(_best, spec, found))
                specs[i] = spec.tuned(wins[i]["value"])
    problems: dict[str, Problem] = {}
    prepared = {i: _prepare(spec, team, problems, quiet, force) for i, spec in specs.items()}
    if prepared:
        team.on_root(partial(_writable, out / job.name))
    if prepared and team.crowded and len(team.ranks_here) > 1 and team.is_root and not quiet:
        tell(f"{len(team.ranks_here)} ranks share the cores of this host; fewer ranks give the same numbers, and mostly sooner")
    rows: dict[Any, dict[int, Rows]] = {}
    results = []
    for i, file in enumerate(files):
        if i in prepared:
            file = _play(prepared[i], file, how, rows, wins.get(i))
        elif team.is_root and not quiet:
            tell(f"{job.runs[i].label}: done already, {file}")
        if team.is_root:
            results.append(read(file))
    return results


def _best(spec: RunSpec, found: Mapping[str, Run]) -> Mapping[str, Any]:
    """Which value of a parameter came furthest, and how far each came; one that diverged came nowhere. At rank 0 only.

    Those that came down to a level of [stop] ended there: of these the one that took the fewest rounds.
    """
    assert spec.tune is not None
    merits: list[float] = []
    ranked: list[tuple[float, float, int]] = []
    for i, trial in enumerate(spec.trials):
        run = found[trial.toml()]
        if not run.has(spec.tune.merit):
            raise UserError(f"{spec.where}tune.merit: {nearest(spec.tune.merit, [*run.trace, *run.timing], 'column')}")
        merit = float(run.column(spec.tune.merit)[-1])
        merits.append(merit if run.status == "complete" and math.isfinite(merit) else math.inf)
        ranked.append((-math.inf, run.trace["round"][-1], i) if _came_down(run, trial.stop) else (merits[i], 0.0, i))
    best = min(ranked)[-1]
    if merits[best] == math.inf:
        raise UserError(f"{spec.where}tune: no value of {spec.tune.parameter} gives a run that ends at a finite {spec.tune.merit}")
    return {"parameter": spec.tune.parameter, "value": spec.tune.values[best], "merit": spec.tune.merit,
            "tried": [[value, merit] for value, merit in zip(spec.tune.values, merits, strict=True)]}  # fmt: skip


def _came_down(run: Run, stop: Stop) -> bool:
    """Whether a run ended at a level of its [stop]."""
    loss, suboptimality, distance = (run.trace.get(name, [math.nan]) for name in ("loss", "suboptimality", "distance"))
    return run.status == "complete" and stop.is_met(loss[-1], suboptimality[-1], distance[-1], distance[0])


def _files_of(job: Job, out: Path) -> list[Path]:
    """The results' files, no two of them the same."""
    files: list[Path] = []
    for spec in job.runs:
        try:
            file = result_file(job, spec, spec.run_id, out)
            if file in files:
                raise UserError("is the same run as another one: label and all settings are equal")
        except UserError as error:
            raise type(error)(f"{spec.where}{error}") from None
        files.append(file)
    return files


def result_file(job: Job, spec: RunSpec, run_id: str, out: Path) -> Path:
    """Where a run's result goes."""
    label = re.sub(r"[^\w.+=-]+", "-", re.sub(r"\s*=\s*", "=", spec.label)).strip("-.") or "run"
    return out / job.name / f"{label[:60]}-{run_id}.h5"


def _writable(folder: Path) -> None:
    """Refuse a results folder before the first round, not after the last."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(f"{folder}: results cannot be written there: {error.strerror or error}") from None


def _prepare(spec: RunSpec, team: Alone | Team, problems: dict[str, Problem], quiet: bool, force: bool) -> Prepared:
    try:
        key = key_of(spec)
        if key not in problems:
            shape = None if force or spec.data.generator is None else team.on_root(partial(shape_of, spec))
            if shape is not None:
                team.each(partial(refuse_what_cannot_fit, spec, shape, team.size, team.ranks_here, solve=False))
            data = open_data(spec.data, spec.folder, spec.workers.partition, spec.seed, spec.real_labels, team)
            team.on_root(partial(refuse_idle_workers, spec, data))
            if not force:
                solve = not is_large(data) or not eigenvalues_file(data).exists()
                shape = Shape(data.n_samples, data.dim, data.nonzeros)
                team.each(partial(refuse_what_cannot_fit, spec, shape, team.size, team.ranks_here, solve))
            problems[key] = team.on_root(partial(problem_of, spec, data, quiet))
        problem = problems[key]
        x0 = team.on_root(partial(_start, spec, problem))
        spec = team.on_root(partial(_with_settled_threshold, spec, problem, x0))
        run_id = team.on_root(lambda: spec.run_id)
        numbers = team.on_root(partial(_numbers, spec, problem, x0))
        at_root(team, partial(_algorithm, spec, problem, numbers))  # what is wrong is told once
        return Prepared(spec, run_id, problem, _algorithm(spec, problem, numbers), x0)
    except UserError as error:
        raise type(error)(f"{spec.where}{error}") from None


def _with_settled_threshold(spec: RunSpec, problem: Problem, x0: Vector) -> RunSpec:
    """A hard threshold that goes by the gradients' noise gets it from x0, where M = 0: all noise counts as σ². At rank 0 only."""
    compressor = spec.up.compressor
    if not (isinstance(compressor, HardThreshold) and compressor.estimate):
        return spec
    batch = getattr(spec.algorithm, "batch", None)
    zeta2, sigma2 = gradient_noise(problem.data, LOSSES[problem.loss], problem.mu, spec.workers.count, batch, x0)
    settled = checked_at("up.compressor", lambda: compressor.with_noise(zeta2, sigma2, problem.data.dim))
    return replace(spec, up=replace(spec.up, compressor=settled))


def _numbers(spec: RunSpec, problem: Problem, x0: Vector) -> dict[str, float]:
    """What formulas may name; ‖∇f(x0)‖ where one does. At rank 0 only."""
    known = problem.numbers(spec.workers.count)
    if "g0" in spec.algorithm.names():
        f = Objective(problem.data.read(0, problem.data.n_samples), LOSSES[problem.loss], 1 / problem.data.n_samples, problem.mu)
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


def _play(
    p: Prepared,
    file: Path,
    how: _How,
    rows: dict[Any, dict[int, Rows]],
    tuned: Mapping[str, Any] | None,
) -> Path:
    """One run, from its first row or its checkpoint to its file."""
    spec, problem, team, quiet = p.spec, p.problem, how.team, how.quiet
    n = spec.workers.count
    exchange = team.exchange(n, spec.workers.exchange, spec.workers.master)
    key = (problem.data.file, n, spec.workers.exchange, spec.workers.master)
    if key not in rows:
        rows.clear()  # one problem in memory at a time
        rows[key] = _rows(problem.data, n, exchange, team)
    weight, mu = n / problem.data.n_samples, 0.0 if p.algorithm.setting.mu_apart else problem.mu
    objectives = {i: _objective_of(p)(r, LOSSES[problem.loss], weight, mu) for i, r in rows[key].items()}
    sample = team.on_root(lambda: problem.data.read(0, 1))
    also = _columns_of(problem) if team.is_root else None
    theory = Theory.of(p.algorithm) if spec.log.theory else None
    attributes = {**_attributes(p, exchange, team), **(theory.attributes(p.algorithm) if theory else {})}
    if tuned is not None:
        attributes["tuned"] = json.dumps(tuned)
    begun = at_root(team, partial(_begin_in_turn, file, p, attributes, how))
    recorder, saved, instead = begun or (None, None, "")
    instead = team.on_root(lambda: instead)
    if instead:
        exchange.close()
        if instead == _DONE:
            return file
        raise Stopped(f"{spec.label}: stopped by {instead} while another process plays it; run the same command again to go on")
    with Progress(spec.label, spec.stop.rounds, quiet or not team.is_root) as progress, how.interrupts.in_rounds():
        observer = Observer(
            exchange, objectives, problem.data.n_samples, p.algorithm.setting.mu_apart, problem.f_star, spec.cost,
            spec.stop, spec.log.every, recorder.append if recorder else _nothing, progress, also, theory,
        )  # fmt: skip
        keeper = Keeper(
            path_of(file), p.run_id, team.on_root(lambda: saved), spec.checkpoint, exchange, objectives, observer, recorder,
            how.interrupts.wish,
        )  # fmt: skip
        try:
            team.first_on_each_host(lambda: _rehearse(p, sample))
            algorithm = p.algorithm if is_ours(p.algorithm) else watched(p.algorithm)
            verdict, x = _engine(algorithm)(algorithm, objectives, exchange, Streams(spec.seed), p.x0, observer, keeper)
            if recorder is not None:
                _end(recorder, verdict, keeper, x)
        except BaseException as error:
            if recorder is not None:
                recorder.abandon("failed" if isinstance(error, Exception) else "stopped", f"{type(error).__name__}: {error}")
            if isinstance(error, Exception) and not isinstance(error, UserError) and team.size == 1:
                tell(f"{spec.label}: failed, the others go on:\n{traceback.format_exc()}")
                return part_of(file)
            if isinstance(error, UserError) and not is_ours(p.algorithm):
                raise type(error)(f"{spec.where}{error}") from None
            raise
    exchange.close()  # not after an error, for then the other ranks are elsewhere
    if verdict is Verdict.STOPPED:
        raise Stopped(f"{spec.label}: stopped by {keeper.reason}, and saved; run the same command again to go on")
    if team.is_root and not quiet:
        why = f" ({observer.reason})" if observer.reason else ""
        tell(f"{spec.label}: {verdict.name.lower()}{why}, {bits_text(sum(observer.wire_up))} up, {file}")
    return file


_DONE = "done"
_LOOK_SECONDS = (0.1, 5.0)  # between two looks at what another process is at: at first, and at most


def _begin_in_turn(file: Path, p: Prepared, attributes: Mapping[str, Any], how: _How) -> tuple[Recorder | None, Header | None, str]:
    """What `_begin` gives, and ""; or, of a run that others may be at, that it is done, or why to stop waiting. At rank 0."""
    pause, most = _LOOK_SECONDS
    waited = False
    while True:
        if how.shared and file.exists() and (waited or not how.fresh):
            return None, None, _DONE
        try:
            return *_begin(file, p, attributes, how.fresh, how.quiet), ""
        except BeingWritten:
            if not how.shared:
                raise
        if not waited and not how.quiet:
            tell(f"{p.spec.label}: another process plays this trial; waiting for it")
        waited = True
        if how.interrupts.wish():
            return None, None, how.interrupts.wish()
        time.sleep(pause)
        pause = min(1.5 * pause, most)


def _begin(file: Path, p: Prepared, attributes: Mapping[str, Any], fresh: bool, quiet: bool) -> tuple[Recorder, Header | None]:
    """The result's recorder, and the checkpoint to go on from; at rank 0."""
    checkpoint = path_of(file)
    saved: Header | None = None

    def mark() -> Mark | None:
        nonlocal saved
        if not fresh and checkpoint.exists():
            saved = header_of(checkpoint, p.run_id)
            if saved is None:
                tell(f"{p.spec.label}: begins again, for {checkpoint} is damaged, or of another version")
        return saved.mark if saved else None

    try:
        recorder = Recorder(file, attributes, mark)
    except LostRows as lost:
        tell(f"{p.spec.label}: begins again, for {part_of(file)} does not go with its checkpoint ({lost.__cause__})")
        recorder, saved = Recorder(file, attributes), None
    if saved is None:
        remove_checkpoint(checkpoint)
    elif not quiet:
        tell(f"{p.spec.label}: goes on from round {saved.k}")
    return recorder, saved


def _end(recorder: Recorder, verdict: Verdict, keeper: Keeper, x: Vector) -> None:
    """Complete the result, and remove the checkpoint; or keep both. At rank 0."""
    if verdict is Verdict.STOPPED:
        recorder.abandon("stopped", f"stopped by {keeper.reason}")
        return
    attributes = {"mpi_bytes_received_up": keeper.exchange.bytes_received_up}
    recorder.finish(verdict.name.lower(), keeper.observer.reason, x, attributes)
    remove_checkpoint(keeper.file)


def _rows(data: DataSet, n: int, exchange: Exchange, team: Alone | Team) -> dict[int, Rows]:
    """The rows of the workers hosted here: each rank reads its own, or gets them from rank 0 where not all see its cache."""
    if len(team.that_see(data.file)) == team.size:
        return dict(zip(exchange.mine, data.shards(exchange.mine, n), strict=True))
    shards = (np.frombuffer(pickle.dumps(rows), dtype=np.uint8) for rows in (data.shards(range(n), n) if team.is_root else ()))
    return {i: pickle.loads(frame.data) for i, frame in zip(exchange.mine, exchange.deal(shards), strict=True)}


def _columns_of(problem: Problem) -> Callable[[Vector], dict[str, float]]:
    """The columns that every run has from its point alone: ‖x − x*‖ where x* is known, those of a test set where there is one."""
    x_star, test = problem.x_star, problem.test
    held_out = HeldOut(test.read(0, test.n_samples), LOSSES[problem.loss]) if test is not None else None

    def columns(x: Vector) -> dict[str, float]:
        distance = {} if x_star is None else {"distance": norm(x - x_star)}
        return {**distance, **(held_out.columns(x) if held_out else {})}

    return columns


def _engine(algorithm: Algorithm) -> Any:
    """What plays it: rounds, or workers without rounds."""
    return asynchronous.run if isinstance(algorithm, AsyncSGD) else engine.run


def _objective_of(p: Prepared) -> type[Objective]:
    return Objective if is_ours(p.algorithm) else GuardedObjective


def _rehearse(p: Prepared, shard: Rows) -> None:
    """Two rounds on two samples, so that every kernel is compiled, by one rank of a host, before a clock starts.

    An algorithm of the user's own may need more samples, or workers: what is wrong with it the run itself will tell.

    Raises:
        UserError: another part of the user's own gives what cannot be sent.
    """
    dim, n = p.problem.data.dim, 1
    dtype = shard.matrix[-1].dtype
    if len(shard.matrix) == 3:
        matrix: tuple[Any, ...] = (np.arange(3, dtype=np.uint64), np.zeros(2, dtype=np.uint32), np.ones(2, dtype=dtype))
    else:
        matrix = (np.full((2, dim), 1.0 / dim, dtype=dtype),)
    f = _objective_of(p)(Rows(matrix, np.array([1.0, -1.0]), dim), LOSSES[p.problem.loss], 0.5, p.problem.mu)
    observer = Observer(Local(n), {0: f}, 2, 0.0, math.nan, p.spec.cost, Stop(rounds=2), 1, _nothing, _nothing)
    algorithm = p.spec.algorithm.within(p.algorithm.setting)  # one that keeps nothing for the run
    try:
        _engine(algorithm)(algorithm, {0: f}, Local(n), Streams(0), np.full(dim, 1e-3), observer)
    except UserError as error:
        if is_ours(algorithm):
            raise type(error)(f"{p.spec.where}{error}") from None
    except Exception:
        if is_ours(algorithm):
            raise


def _nothing(*_: Any) -> None:
    pass


def _attributes(p: Prepared, exchange: Exchange, team: Alone | Team) -> Mapping[str, Any]:
    packages = ("mpi-compress", "numpy", "scipy", "numba", "h5py", "mpi4py")
    return {
        "job": p.spec.toml(),
        "label": p.spec.label,
        "run_id": p.run_id,
        "reason": "",
        "data": p.spec.data.shown,
        "n_workers": exchange.n,
        "n_ranks": team.size,
        "n_samples": p.problem.data.n_samples,
        "dim": p.problem.data.dim,
        "L": p.problem.L,
        **({} if p.problem.L_max is None else {"L_max": p.problem.L_max}),
        "mu": p.problem.mu,
        "f_star": p.problem.f_star,
        "f_star_accuracy": p.problem.f_star_accuracy,
        "settled": json.dumps({k: v for k in p.algorithm.formulas() if isinstance(v := getattr(p.algorithm, k), float)}),
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
