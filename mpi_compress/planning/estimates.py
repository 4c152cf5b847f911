"""What jobs will take: rounds, time, memory and disk, before anything is run.

A round's time is measured: by a run's own trace as far as it has come, else by the run of the same label at the job's usual size,
in proportion to the nonzeros of the sets. If neither was run, no time is given.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import ceil, fsum, nan
from pathlib import Path

from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import time_text
from mpi_compress.evidence.outcomes import has_full, loaded
from mpi_compress.job.loading import Job
from mpi_compress.job.runs import RunSpec
from mpi_compress.job.trials import folder_of_trials, trials
from mpi_compress.preparing import memory_needs
from mpi_compress.preparing.shapes import Shape, Shapes
from mpi_compress.problem.datasets.store import cached_file
from mpi_compress.results.files import part_of, result_file
from mpi_compress.results.reader import Run, read

_BYTES_OF_A_ROW = 8 * 40  # about 40 numbers
_MESSAGES = 1e-3  # seconds that a round's messages take between ranks, about: fewer are not worth saving


@dataclass(frozen=True)
class Estimate:
    """What the runs of a job that are to do will take, at most: a run may stop before its last round."""

    file: Path
    runs: int  # to do
    rounds: int
    seconds: float  # on one core; NaN: nothing was measured
    memory: float  # bytes, in one process
    disk: float  # bytes of results, and of data that are not cached; not of downloads

    @property
    def line(self) -> str:
        if not self.runs:
            return f"{self.file}: done"
        time = "a time not measured yet" if self.seconds != self.seconds else f"about {time_text(self.seconds)}"
        memory, disk = memory_needs.gib(self.memory), memory_needs.gib(self.disk)
        return f"{self.file}: {self.runs} runs, at most {self.rounds:,} rounds, {time}, {memory} of memory, {disk} of disk"


def estimates(files: Sequence[Path], out: Path, full: bool) -> Iterator[Estimate]:
    """The estimate of each job that can be read; `full`: at full size, where it has one."""
    for file in files:
        with suppress(UserError):
            yield _estimate(file, loaded(file, full), loaded(file, False) if full and has_full(file) else None, out)


def text(found: Sequence[Estimate]) -> Iterator[str]:
    """A line for each job, and one for all."""
    for each in found:
        yield each.line
    known = [e.seconds for e in found if e.runs and e.seconds == e.seconds]
    unknown = sum(e.runs > 0 for e in found) - len(known)
    time = [f"about {time_text(fsum(known))} on one core"] if known else []
    time += [f"{unknown} job{'s' * (unknown > 1)} whose rounds were not measured, which the usual size does"] if unknown else []
    most, disk = max((e.memory for e in found if e.runs), default=0.0), fsum(e.disk for e in found)
    room = f"{memory_needs.gib(most)} of memory at most, {memory_needs.gib(disk)} of disk"
    yield f"together {', '.join([*time, room])}" if time else "all is done"


def trial_files(job: Job, out: Path) -> list[Path]:
    """Where the results of the trials of [tune] are, or would be, those of the first stage where there are several."""
    found = {trial.toml(): trial for spec in job.runs if spec.tune and not spec.missing for trial in trials(spec)}.values()
    return [result_file(folder_of_trials(job.name, job.runs), trial.label, trial.run_id, out) for trial in found]


def suggestion(job: Job, out: Path) -> str:
    """What to ask of SLURM for the runs of a job, by trials, results of one process with their labels; "" where there is none."""
    asked = [each for spec in job.runs if not spec.missing and (each := _asked(job, spec, out))]
    if not asked:
        return ""
    seconds, ranks, memory = zip(*asked, strict=True)
    limits = f"--time {ceil(1.5 * max(seconds) / 60) + 5} --sbatch=--mem={ceil(max(memory))}G"
    few = "" if max(ranks) > 1 else ", as a round computes less than a millisecond; --pack N puts N such runs on a node"
    found = f"by trials of {len(asked)} of {len(job.runs)} runs, `submit --ntasks {max(ranks)} {limits}` would do"
    return f"{found}{few}; all together take {time_text(fsum(seconds))}"


def _asked(job: Job, spec: RunSpec, out: Path) -> tuple[float, int, float] | None:
    """Seconds, ranks and GiB of a run, by the last trial of its label; None without one."""
    place, n, shape = result_file(job.name, spec.label, "*", out), spec.workers.count, Shapes().of(spec)
    trials = [run for file in place.parent.glob(place.name) if (run := _whole(file)) and _last(run) and run.attrs["n_ranks"] == 1]
    if not trials or shape is None:
        return None
    last = max(trials, key=lambda run: run.file.stat().st_mtime)
    saved = float(sum(last.timing[part][-1] for part in ("compute", "pack"))) / _last(last) * (1 - 1 / n)
    ranks = n + 1 if saved > _MESSAGES else 1
    memory = fsum(memory_needs.needs(spec, shape, ranks)) + ranks * memory_needs.PROCESS
    return (spec.stop.rounds or _last(last)) * (_seconds(last) - saved * (ranks > 1)), ranks, memory / 2**30


def _whole(file: Path) -> Run | None:
    with suppress(UserError):
        return read(file)
    return None


def _estimate(file: Path, job: Job, usual: Job | None, out: Path) -> Estimate:
    shapes, measured = Shapes(), _Measured(usual, out)
    to_do = [spec for spec in job.runs if not result_file(job.name, spec.label, spec.run_id, out).exists()]
    own = {spec.run_id: _begun(job, spec, out) for spec in to_do}
    left = {spec.run_id: max(0, (spec.stop.rounds or 0) - _last(own[spec.run_id])) for spec in to_do}
    seconds = fsum(left[s.run_id] * measured.round_seconds(s, own[s.run_id], shapes.of(s)) for s in to_do)
    memory = 0.0
    sets: dict[Path, float] = {}
    for spec in to_do:
        if shape := shapes.of(spec):
            memory = max(memory, memory_needs.PROCESS + memory_needs.needs(spec, shape, 1)[0])
            cache = cached_file(spec.data, spec.folder, spec.split, spec.labels)
            sets[cache] = 0.0 if cache.exists() else shape.bytes(spec.data.dtype)
    rows = sum((s.stop.rounds or 0) // s.log.every + 1 for s in to_do)
    return Estimate(file, len(to_do), sum(left.values()), seconds, memory, fsum(sets.values()) + rows * _BYTES_OF_A_ROW)


class _Measured:
    """The seconds of a round at a job's usual size, by label."""

    def __init__(self, usual: Job | None, out: Path):
        self._shapes = Shapes()
        self._found: dict[str, tuple[RunSpec, Run]] = {}
        if usual is None:
            return
        for spec in usual.runs:
            with suppress(UserError):
                self._found.setdefault(spec.label, (spec, read(result_file(usual.name, spec.label, spec.run_id, out))))

    def round_seconds(self, spec: RunSpec, begun: Run | None, shape: Shape | None) -> float:
        """NaN where nothing was measured, or a set's size is not known."""
        if begun is not None:
            return _seconds(begun)
        if spec.label not in self._found or shape is None:
            return nan
        small, run = self._found[spec.label]
        usual = self._shapes.of(small)
        return nan if usual is None else _seconds(run) * max(1.0, shape.nonzeros / usual.nonzeros)


def _begun(job: Job, spec: RunSpec, out: Path) -> Run | None:
    """What a run has done so far, if that is a round or more."""
    with suppress(UserError):
        run = read(part_of(result_file(job.name, spec.label, spec.run_id, out)))
        return run if _last(run) > 0 else None
    return None


def _last(run: Run | None) -> int:
    return int(run.trace["round"][-1]) if run is not None and run.rows else 0


def _seconds(run: Run) -> float:
    return float(run.column("seconds")[-1]) / last if (last := _last(run)) else nan
