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
from mpi_compress.core.progress import count_text, time_text
from mpi_compress.evidence.outcomes import has_full, loaded
from mpi_compress.job.loading import Job
from mpi_compress.job.runs import RunSpec
from mpi_compress.job.trials import folder_of_trials, trials
from mpi_compress.preparing import memory_needs
from mpi_compress.preparing.shapes import Shape, Shapes, size_of
from mpi_compress.problem.datasets.said import line, line_of
from mpi_compress.problem.datasets.store import cached_file
from mpi_compress.results.files import part_of, result_file
from mpi_compress.results.reader import Run, read

_BYTES_OF_A_ROW = 8 * 40  # about 40 numbers
_MESSAGES = 1e-3  # seconds that a round's messages take between ranks, about: fewer are not worth saving
_SHORT = 60.0  # seconds of a run for which ranks of its own are not worth starting


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


def suggestion(job: Job, out: Path, always: bool) -> str:
    """What to ask of SLURM for the runs of a job, and their time, by trials, results of one process with their labels; "" where
    there is none, or, unless `always`, where each run takes less than a minute."""
    here = {spec.label: spec for spec in job.runs if not spec.missing}  # one for all seeds
    last = {label: _last_trial(spec, result_file(job.name, label, "?" * 12, out)) for label, spec in here.items()}
    asked = {spec.index: each for spec in job.runs if not spec.missing and (each := _asked(spec, last[spec.label]))}
    if not asked or not (always or max(asked.values())[0] > _SHORT):
        return ""
    seconds, ranks, memory = zip(*asked.values(), strict=True)
    names, count = {spec.index: spec.algorithm.name for spec in job.runs}, len(job.runs)
    of_method = {name: [asked[i][0] for i in asked if names[i] == name] or seconds for name in names.values()}
    whole = fsum(fsum(of_method[name]) / len(of_method[name]) for name in names.values())
    pack = min(16, count) if max(ranks) == 1 else 1
    how = f"--pack {pack}" if pack > 1 else f"--ntasks {max(ranks)}"
    limits = f"--time {ceil(1.5 * max(seconds) / 60) + 5} --sbatch=--mem={ceil(pack * max(memory))}G"
    tried = f"{len(asked)} of the {count} runs to do were" if count > 1 else "the run to do was"
    takes = f"all {count}, one after another, take" if count > 1 else "it takes"
    would = f"by what that took, `submit {how} {limits}` would do"
    return f"{tried} tried before; {would}, and {takes} about {time_text(whole)} on {count_text(max(ranks), 'rank')}"


def _last_trial(spec: RunSpec, place: Path) -> Run | None:
    """The last result of one process at a pattern on a run's data: of the same set or file, N, d, and, if known, nonzeros."""
    said = line(spec.written["data"], spec.data_kind, "", size := size_of(spec) or (0, 0, 0, 0))
    for file in sorted(place.parent.glob(place.name), key=lambda file: -file.stat().st_mtime):
        with suppress(UserError):
            run = read(file)
            same = line_of(run, with_place=False) == said and size[3] in (0, run.attrs.get("nonzeros"))
            if same and _last(run) and run.attrs["n_ranks"] == 1:
                return run
    return None


def _asked(spec: RunSpec, last: Run | None) -> tuple[float, int, float] | None:
    """Seconds, ranks and GiB of a run, by the last trial of its label; None without one."""
    n, shape = spec.workers.count, Shapes().of(spec)
    if last is None or shape is None:
        return None
    rounds = spec.stop.rounds or _last(last)
    saved = float(sum(last.timing[part][-1] for part in ("compute", "pack"))) / _last(last) * (1 - 1 / n)
    ranks = n + 1 if saved > _MESSAGES and rounds * _seconds(last) > _SHORT else 1
    memory = fsum(memory_needs.needs(spec, shape, ranks)) + ranks * memory_needs.PROCESS
    return rounds * (_seconds(last) - saved * (ranks > 1)), ranks, memory / 2**30


def _estimate(file: Path, job: Job, usual: Job | None, out: Path) -> Estimate:
    shapes, at_usual_size = Shapes(), _results(usual, out) if usual else {}
    to_do = [spec for spec in job.runs if not result_file(job.name, spec.label, spec.run_id, out).exists()]
    own = {spec.run_id: _begun(job, spec, out) for spec in to_do}
    left = {spec.run_id: max(0, (spec.stop.rounds or 0) - _last(own[spec.run_id])) for spec in to_do}
    seconds = fsum(left[s.run_id] * _round_seconds(own[s.run_id], at_usual_size.get(s.label), shapes.of(s)) for s in to_do)
    memory, sets = 0.0, dict[Path, float]()
    for spec in to_do:
        if shape := shapes.of(spec):
            memory = max(memory, memory_needs.PROCESS + memory_needs.needs(spec, shape, 1)[0])
            cache = cached_file(spec.data, spec.folder, spec.split, spec.labels)
            sets[cache] = 0.0 if cache.exists() else shape.bytes(spec.data.dtype)
    rows = sum((s.stop.rounds or 0) // s.log.every + 1 for s in to_do)
    return Estimate(file, len(to_do), sum(left.values()), seconds, memory, fsum(sets.values()) + rows * _BYTES_OF_A_ROW)


def _results(job: Job, out: Path) -> dict[str, tuple[RunSpec, Run]]:
    """The runs of a job that have a result, the first of each label."""
    found: dict[str, tuple[RunSpec, Run]] = {}
    for spec in job.runs:
        with suppress(UserError):
            found.setdefault(spec.label, (spec, read(result_file(job.name, spec.label, spec.run_id, out))))
    return found


def _round_seconds(begun: Run | None, usual: tuple[RunSpec, Run] | None, shape: Shape | None) -> float:
    """The seconds of a round, as far as a run has come or at its usual size; NaN: that is not known."""
    if begun is not None or usual is None:
        return nan if begun is None else _seconds(begun)
    size = Shapes().of(usual[0])
    return nan if size is None or shape is None else _seconds(usual[1]) * max(1.0, shape.nonzeros / size.nonzeros)


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
