"""Parts checked against what they state, by their names or as the runs of a job have them; and the verification of a job.
As Pigeons.jl's `checked_round`, it runs the first rounds again in other ways, in child processes, and compares all they send."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import tomli_w

from mpi_compress.algorithms.contract import Method
from mpi_compress.core.blame import place_of_class
from mpi_compress.core.ending import RANK_VARIABLES
from mpi_compress.core.errors import UserError, checked_at, nearest
from mpi_compress.core.plugins import parts_of_plugins
from mpi_compress.core.registry import Registry, registries, with_inner
from mpi_compress.engine.hosting import objectives_of, to_be_rehearsed, view_of
from mpi_compress.exchange.ranks import Ranks
from mpi_compress.guard.checks import Subject, asked, everything
from mpi_compress.guard.findings import Finding
from mpi_compress.guard.of_algorithms import FAILED, STAGES, Key, Notes, in_other_ways
from mpi_compress.guard.of_messages import usual
from mpi_compress.guard.testing import findings
from mpi_compress.guard.theorem import theorem as of_theorem
from mpi_compress.job.loading import Job, load_job
from mpi_compress.job.runs import RunSpec
from mpi_compress.messages.codecs import Codec
from mpi_compress.messages.compressors import Compressor
from mpi_compress.preparing.problems import within
from mpi_compress.preparing.runs import Prepared, prepare
from mpi_compress.problem.datasets.formats import Format
from mpi_compress.problem.datasets.store import open_data
from mpi_compress.problem.metrics import Metric
from mpi_compress.problem.models import Model, dim_of

ROUNDS = 8
_RANKS = 3
OfRuns = list[dict[Key, str]]  # hashes, or an error, of each run


@dataclass(frozen=True)
class Rerun:
    """A way to run rounds."""

    text: str
    hash_seed: int
    ranks: int = 1
    turn: str = ""
    stop_at: int | None = None


@dataclass(frozen=True)
class Verified:
    """What a verification says of a run."""

    label: str
    holds: bool
    text: str

    def __str__(self) -> str:
        return f"{self.label}: {self.text}"


def verify(job: Job | Mapping[str, Any] | str | Path, rounds: int = ROUNDS) -> list[Verified]:
    """Run the first rounds of each run of a job again, and compare all messages and states.

    They are run with other hashes of texts, with the workers in another order, on several ranks where there is an mpiexec, and
    on from a checkpoint in the middle.

    Args:
        job: a job, or what `load_job` takes. Parts of its own stand in modules that `plugins` names.

    Returns: a line for each run: that all are equal, or the first round and part that differ.
    """
    job = job if isinstance(job, Job) else load_job(job)
    if rounds < 2:
        raise UserError(f"--verify {rounds}: at least 2 rounds are required, for a checkpoint in the middle")
    specs = [spec for spec in job.runs if not spec.algorithm.shares_memory]
    with tempfile.TemporaryDirectory(prefix="mpi-compress-verify-") as folder:
        first, *others = _ways(rounds)
        plain = _played(first, specs, rounds, Path(folder, "first"))
        found = dict(_in_another_way(way, specs, rounds, Path(folder, str(i))) for i, way in enumerate(others))
    said = [_of_run(spec, rounds, plain[i], {way: notes[i] for way, notes in found.items()}) for i, spec in enumerate(specs)]
    left = (spec for spec in job.runs if spec.algorithm.shares_memory)
    return [*said, *(Verified(s.label, True, f"{s.algorithm.name} has no rounds, and its updates come in any order") for s in left)]


def _ways(rounds: int) -> list[Rerun]:
    half = rounds // 2
    return [
        Rerun("in one process", 1),
        Rerun("with another PYTHONHASHSEED and the workers in the opposite order", 2, turn="backwards"),
        Rerun(f"on {_RANKS} ranks", 3, ranks=_RANKS),
        Rerun(f"on from a checkpoint after {half} rounds", 4, stop_at=half),
    ]


def _in_another_way(way: Rerun, specs: list[RunSpec], rounds: int, folder: Path) -> tuple[str, OfRuns]:
    """The way and what was noted; where no ranks can be started, workers in a third order stand in for them."""
    if way.ranks > 1 and _mpiexec() is None:
        text = "with the odd workers first, since there is no mpiexec here to start ranks"
        way = Rerun(text, way.hash_seed, turn="odd ones first")
    notes = _played(way, specs, rounds, folder)
    if way.stop_at is not None:
        notes = [before | after for before, after in zip(notes, _played(way, specs, rounds, folder), strict=True)]
    return way.text, notes


def _mpiexec() -> str | None:
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def _played(way: Rerun, specs: list[RunSpec], rounds: int, folder: Path) -> OfRuns:
    """What the ranks of a child process note; an error of all runs where it fails."""
    folder.mkdir(exist_ok=True)
    jobs = [tomli_w.dumps({**spec.written, "run": [{"label": spec.label}]}) for spec in specs]
    plan = {"jobs": jobs, "folders": [str(spec.folder.resolve()) for spec in specs], "rounds": rounds}
    (folder / "play.json").write_text(json.dumps({**plan, "ranks": way.ranks, "turn": way.turn, "stop_at": way.stop_at}))
    launcher = [str(_mpiexec()), "-n", str(way.ranks)] if way.ranks > 1 else []
    kept = {name: value for name, value in os.environ.items() if name not in RANK_VARIABLES}
    environment = {**kept, "PYTHONHASHSEED": str(way.hash_seed), "MPI_COMPRESS_COMPILING": "silent"}
    command = [*launcher, sys.executable, "-m", "mpi_compress.engine.recording", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    notes: OfRuns = [{} for _ in specs]
    for file in folder.glob("*.jsonl"):
        for line in file.read_text(encoding="utf-8").splitlines():
            number, k, stage, who, held = json.loads(line)
            of_run, key = notes[number], (k, [*STAGES].index(stage), who)
            of_run[key] = held if of_run.get(key, held) == held else f"{of_run[key]} and {held}"  # ranks that differ
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
        notes = [{**of_run, FAILED: said} for of_run in notes]
    return notes


def _of_run(spec: RunSpec, rounds: int, plain: Notes, others: Mapping[str, Notes]) -> Verified:
    compare = partial(in_other_ways, f"{rounds} rounds", plain, others, partial(_suspects, spec))
    (found,) = asked(Subject(spec.algorithm, ways=compare), "ways")
    return Verified(spec.label, found.holds, found.text)


def _suspects(spec: RunSpec, stage: str) -> str:
    """The job's own parts that make what differs, with their places; without any, all parts are this package's."""
    up, down = (spec.up.compressor, spec.up.codec), (spec.down.compressor, spec.down.codec)
    makers = {"message": (spec.algorithm, *up, spec.loss, spec.penalty, spec.partition), "answer": (spec.algorithm, *down)}
    own = [part for part in spec.own if any(part is maker for maker in makers.get(stage, spec.own))] or spec.own
    named = [f"{part.name}{place_of_class(type(part))}" for part in own]
    return f"; it comes from {' or '.join(named)}" if named else f"; all parts of {spec.algorithm.name} are this package's"


_ROWS = 200  # of a job's data, at most, on which a model is checked
_COORDINATES = 4_000_000  # of all workers, up to which a method's rounds are compared

Found = dict[str, list[Finding]]


def findings_by_name(name: str, parameters: Mapping[str, Any], theorem: bool = False) -> Found:
    """What checks find of every part of a name, by its kind, or what is found of its `theorem`; UserError if there is none."""
    known = [r for r in registries if name in r] or [r for r in registries if r.knows(name)]
    if not known:
        here = nearest(name, {each for registry in registries for each in registry}, "part")
        raise UserError(f"{here}; --job JOB knows those of its plugins, too")
    known = [r for r in known if theorem and issubclass(r[name], Method)] or known  # a server may have a method's name
    return {registry.kind: _asked(_built(registry, name, parameters), theorem) for registry in known}


def _asked(part: Any, theorem: bool, spec: RunSpec | None = None) -> list[Finding]:
    """What checks find of a part by itself, at the d of a run, or of its theorem."""
    if theorem and not isinstance(part, Method):
        raise UserError(f"--theorem: {part.name} is no method, and V is a method's")
    return [*of_theorem(part)] if theorem else findings(part, dim=_dim(part, spec) if spec else 0)


def _dim(part: Any, spec: RunSpec) -> int:
    """d of a run, for a compressor or a codec; 0 if the run's data are not here."""
    try:
        data = open_data(spec.data, spec.folder, spec.split, spec.labels) if isinstance(part, Compressor | Codec) else None
        return dim_of(within(spec, data), data.dim) if data else 0
    except UserError:
        return 0


def _built(registry: Registry[Any], name: str, parameters: Mapping[str, Any]) -> Any:
    """A part with these parameters; of a compressor without any, with those that tests use."""
    if parameters or not issubclass(registry[name], Compressor):
        return registry.build({"name": name, **parameters}, name)
    return checked_at(name, lambda: usual(registry[name]))


def findings_in_job(name: str, job: Job, parameters: Mapping[str, Any] | None = None, theorem: bool = False) -> Found:
    """What checks find of every part of a name in a job's runs, by the run, or of the `theorem` of a method; of a plugin's part
    that no run has, with these parameters. UserError if there is none; it names all that plugins have."""
    found: dict[str, list[Finding]] = {}
    seen: list[Any] = []
    for spec in job.runs:
        for part in (each for each in _parts_of(spec) if each.name == name and (not theorem or isinstance(each, Method))):
            if part not in seen:
                seen.append(part)
                links = (spec.up.compressor, spec.down.compressor)
                found[f"{spec.label} ({type(part).__name__})"] = [*of_theorem(part, own=links)] if theorem else _in_run(part, spec)
    if found and parameters:
        raise UserError(f"{name}: its parameters are those of the job's runs; leave {', '.join(parameters)} out")
    return found or _of_plugins(name, job, parameters or {}, theorem)


def _of_plugins(name: str, job: Job, parameters: Mapping[str, Any], theorem: bool) -> Found:
    """What checks find of a part that plugins define and no run has."""
    plugins = {each for spec in job.runs for each in spec.written.get("plugins", [])}
    parts = parts_of_plugins(plugins, job.runs[0].folder)
    known = [registry for registry in registries if name in parts[registry.kind]]
    if not known:
        has = {part.name for spec in job.runs for part in _parts_of(spec)}.union(*parts.values())
        own = [f"{each} ({kind})" for kind, members in parts.items() for each in sorted(members)]
        told = f"; its plugins have {', '.join(own)}" if own else ""
        raise UserError(nearest(name, has, "part in this job") + told)
    return {f"no run has it ({r[name].__name__})": _asked(_built(r, name, parameters), theorem, job.runs[0]) for r in known}


def _parts_of(spec: RunSpec) -> list[Any]:
    links = (part for table in (spec.up, spec.down) for part in (table.compressor, table.codec))
    data = spec.data.build_generator() if spec.data.generator is not None else spec.data.build_format(spec.folder)
    asked = (*spec.metrics, *spec.stop.own)
    return [*with_inner((spec.algorithm, *links, spec.cost, spec.loss, spec.penalty, spec.partition, *asked, data))]


def _in_run(part: Any, spec: RunSpec) -> list[Finding]:
    if isinstance(part, Format):
        return everything(Subject(part, file=(spec.data.file(spec.folder), spec.data.known_dim)))
    if not isinstance(part, Model | Metric | Method):
        return findings(part, dim=_dim(part, spec))
    p = prepare(spec, Ranks(), {}, quiet=True, force=True)
    if isinstance(part, Model):
        return findings(p.problem.loss, p.problem.data.read(0, min(p.problem.data.n_samples, _ROWS)))
    return everything(Subject(part, view=view_of(p.problem, spec.data.test_rows)) if isinstance(part, Metric) else _of_method(p))


def _of_method(p: Prepared) -> Subject:
    """A run's method, its rounds compared if all of its workers fit."""
    data, n = p.problem.data, p.spec.workers.count
    s = to_be_rehearsed(p, data.read(0, 1))
    if not p.algorithm.shares_memory and n * p.problem.dim <= _COORDINATES:
        s.problems = [(p.algorithm, objectives_of(p, dict(enumerate(data.shards(range(n), n)))), p.x0)]
    return s
