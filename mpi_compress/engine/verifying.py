"""The verification of a job. As Pigeons.jl's `checked_round`, it runs the first rounds again in other ways, in child processes, and
compares all they send."""

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

from mpi_compress.algorithms import Algorithm
from mpi_compress.core.blame import place_of_class
from mpi_compress.core.ending import EXIT_USER_ERROR, RANK_VARIABLES
from mpi_compress.core.errors import UserError, writing
from mpi_compress.guard.of_algorithms import FAILED, STAGES, Key, Notes, in_other_ways
from mpi_compress.job.loading import Job, load_job
from mpi_compress.job.runs import RunSpec

ROUNDS = 8
_RANKS = 3
OfRuns = list[dict[Key, str]]  # hashes, or an error, of each run


@dataclass(frozen=True)
class Rerun:
    """A way to run rounds."""

    text: str
    hash_seed: int
    ranks: int = 1
    backwards: bool = False
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

    Returns: a line for each run: that all are equal, or the first round and part that differ, or which part keeps
    something from call to call.
    """
    job = job if isinstance(job, Job) else load_job(job)
    if rounds < 2:
        raise UserError(f"--verify {rounds}: at least 2 rounds are required, for a checkpoint in the middle")
    specs = [spec for spec in job.runs if isinstance(spec.algorithm, Algorithm)]
    with tempfile.TemporaryDirectory(prefix="mpi-compress-verify-") as folder:
        first, *others = _ways(rounds)
        plain = _played(first, specs, rounds, Path(folder, "first"))
        found = dict(_in_another_way(way, specs, rounds, Path(folder, str(i))) for i, way in enumerate(others))
    said = [_of_run(spec, rounds, plain[i], {way: notes[i] for way, notes in found.items()}) for i, spec in enumerate(specs)]
    left = (spec for spec in job.runs if not isinstance(spec.algorithm, Algorithm))
    return [*said, *(Verified(s.label, True, f"{s.algorithm.name} has no rounds, and its updates come in any order") for s in left)]


def _ways(rounds: int) -> list[Rerun]:
    half = rounds // 2
    return [
        Rerun("in one process", 1),
        Rerun("with another PYTHONHASHSEED and the workers in the opposite order", 2, backwards=True),
        *([Rerun(f"on {_RANKS} ranks", 3, ranks=_RANKS)] if _mpiexec() else []),
        Rerun(f"on from a checkpoint after {half} rounds", 4, stop_at=half),
    ]


def _in_another_way(way: Rerun, specs: list[RunSpec], rounds: int, folder: Path) -> tuple[str, OfRuns]:
    """The way and what was noted."""
    notes = _played(way, specs, rounds, folder)
    if way.stop_at is not None:
        notes = [before | after for before, after in zip(notes, _played(way, specs, rounds, folder), strict=True)]
    return way.text, notes


def _mpiexec() -> str | None:
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def _played(way: Rerun, specs: list[RunSpec], rounds: int, folder: Path) -> OfRuns:
    """What the ranks of a child process note. Ranks end with the first run that fails, and others go on with the rest; an error of
    all runs where none says which one failed."""
    jobs = [tomli_w.dumps({**spec.written, "run": [{"label": spec.label}]}) for spec in specs]
    plan = {"jobs": jobs, "folder": str(specs[0].folder.resolve()) if specs else "", "rounds": rounds, **vars(way)}
    with writing(folder / "play.json", "--verify"):
        (folder / "play.json").write_text(json.dumps(plan))
    launcher = [str(_mpiexec()), "-n", str(way.ranks)] if way.ranks > 1 else []
    kept = {name: value for name, value in os.environ.items() if name not in RANK_VARIABLES}
    environment = {**kept, "PYTHONHASHSEED": str(way.hash_seed), "MPI_COMPRESS_COMPILING": "silent"}
    command = [*launcher, sys.executable, "-m", "mpi_compress.engine.recording", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    notes: OfRuns = [{} for _ in specs]
    for file in folder.glob("*.jsonl"):
        for line in file.read_text(encoding="utf-8").split("\n")[:-1]:  # a full disk cuts what follows
            number, k, stage, who, held = json.loads(line)
            of_run, key = notes[number], (k, [*STAGES].index(stage), who)
            of_run[key] = held if of_run.get(key, held) == held else f"{of_run[key]} and {held}"  # ranks that differ
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("Abort(")]  # of MPI
        said = lines[-1] if lines else f"exit {done.returncode}"
        if not (failed := [i for i, of_run in enumerate(notes, 1) if FAILED in of_run]):
            if done.returncode == EXIT_USER_ERROR:
                raise UserError(said.removeprefix("mpi-compress: "))
            return [{**of_run, FAILED: said} for of_run in notes]
        notes[failed[0] :] = _played(way, specs[failed[0] :], rounds, folder / "rest")
    return notes


def _of_run(spec: RunSpec, rounds: int, plain: Notes, others: Mapping[str, Notes]) -> Verified:
    found = in_other_ways(f"{rounds} rounds", plain, others, partial(_suspects, spec))
    return Verified(spec.label, found.holds, found.text + "; there is no mpiexec here to start several ranks" * (not _mpiexec()))


def _suspects(spec: RunSpec, stage: str) -> str:
    """The job's own parts that make what differs, with their places; without any, all parts are this package's."""
    up, down = (spec.up.compressor, spec.up.codec), (spec.down.compressor, spec.down.codec)
    makers = {"message": (spec.algorithm, *up, spec.loss, spec.penalty, spec.partition), "answer": (spec.algorithm, *down)}
    own = [part for part in spec.own if any(part is maker for maker in makers.get(stage, spec.own))] or spec.own
    named = [f"{part.name}{place_of_class(type(part))}" for part in own]
    return f"; it comes from {' or '.join(named)}" if named else f"; all parts of {spec.algorithm.name} are this package's"
