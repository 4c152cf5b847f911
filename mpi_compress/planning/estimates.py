"""What jobs will take: rounds, time, memory and disk, before anything is run.

A round's time is that of rounds that were seen: of the run itself as far as it has come, or of another result of its label on its
data. If there is none, no time is given; what to ask of SLURM is then by the mean of the job's other labels. Trials of [tune] are
short, and take their time besides rounds, too, as it was seen.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import ceil, fsum, nan
from pathlib import Path
from statistics import median

from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import count_text, time_text
from mpi_compress.evidence.outcomes import loaded
from mpi_compress.job.loading import Job
from mpi_compress.job.runs import RunSpec
from mpi_compress.job.trials import folder_of_trials, label_of, stages_of, trials, tune_of
from mpi_compress.preparing.memory import bytes_of, gib, most
from mpi_compress.preparing.shapes import shape_of, size_of
from mpi_compress.problem.datasets.said import line, line_of
from mpi_compress.problem.datasets.store import cached_file
from mpi_compress.results.files import part_of, result_file
from mpi_compress.results.reader import Run, attributes, read

_BYTES_OF_A_ROW = 8 * 40  # about 40 numbers
_SHORT = 60.0  # seconds of a run for which a task of its own is not worth starting
_BESIDE = 0.3  # seconds that a trial takes besides its rounds, to be set up and to write its result, where none was seen: a guess


@dataclass(frozen=True)
class Estimate:
    """What the runs of a job that are to do will take, at most: a run may stop before its last round."""

    file: Path
    runs: int  # to do
    rounds: int
    trials: int  # of [tune] before them, without those of the best value's neighbours
    rounds_of_trials: int
    seconds: float  # in one process, of trials too; NaN: nothing was measured
    memory: float  # bytes, in one process
    disk: float  # bytes of results, and of data that are not cached; not of downloads

    @property
    def line(self) -> str:
        if not self.runs:
            return f"{self.file}: done"
        time = "a time not measured yet" if self.seconds != self.seconds else f"about {time_text(self.seconds)}"
        room = f"{gib(self.memory)} of memory, {gib(self.disk)} of disk"
        before = f", after {count_text(self.trials, 'trial')} of {self.rounds_of_trials:,} rounds" * bool(self.trials)
        return f"{self.file}: {count_text(self.runs, 'run')}, at most {self.rounds:,} rounds{before}, {time}, {room}"


def estimates(files: Sequence[Path], out: Path, full: bool) -> Iterator[Estimate]:
    """The estimate of each job that can be read; `full`: at full size, where it has one."""
    for file in files:
        with suppress(UserError):
            yield _estimate(file, loaded(file, full), out)


def text(found: Sequence[Estimate]) -> Iterator[str]:
    """A line for each job, and one for all."""
    for each in found:
        yield each.line
    known = [e.seconds for e in found if e.runs and e.seconds == e.seconds]
    unknown = sum(e.runs > 0 for e in found) - len(known)
    time = [f"about {time_text(fsum(known))} in one process"] * bool(known)
    time += [f"{unknown} job{'s' * (unknown > 1)} whose rounds were not measured"] * bool(unknown)
    memory, disk = max((e.memory for e in found if e.runs), default=0.0), fsum(e.disk for e in found)
    room = f"{gib(memory)} of memory at most, {gib(disk)} of disk"
    yield f"together {', '.join([*time, room])}" if time else "all is done"


def trial_files(job: Job, out: Path, stage: int = 0) -> list[Path]:
    """Where the results of the trials of [tune] in a stage are, or would be if all values of the grid come there."""
    found = {trial.toml(): trial for spec in job.runs if spec.tune and not spec.missing for trial in trials(spec, stage)}.values()
    return [result_file(folder_of_trials(job.name, job.runs), trial.label, trial.run_id, out) for trial in found]


def suggestion(job: Job, to_do: Sequence[RunSpec], out: Path, always: bool) -> str:
    """What to ask of SLURM for the runs of a job that are to do, one process each, and their time, by results of one process with
    their labels, or for methods without one by the mean of others; "" where there is none, or where each run, and all trials,
    take less than a minute, unless `always` where one was tried."""
    seen = _seen(job, out)
    mean = fsum(seen.values()) / max(1, len(seen))
    asked = {s.index: _rounds_left(s, job, out) * seen.get(s.label, mean) for s in to_do if s.stop.rounds and seen}
    count, untried = len(to_do), sum(spec.label not in seen for spec in to_do)
    left, beside = _trials_of_runs([spec for spec in to_do if spec.index in asked], job, out)
    before = fsum(trials * beside + rounds * seen.get(spec.label, mean) for spec, trials, rounds in left)
    if not asked or (max(before, *asked.values()) <= _SHORT and not (always and untried < count)):
        return ""
    pack = min(16, count)
    how = f"--pack {pack}" if pack > 1 else "--ntasks 1"
    limits = f"--time {ceil(1.5 * max(asked.values()) / 60) + 5} --sbatch=--mem={ceil(pack * most(to_do) / 2**30)}G"
    are = "is of a method" if count - untried == 1 else "are of methods"
    tried = f"{count - untried} of the {count} runs to do {are}" if count > 1 else f"the run to do was{' not' * untried}"
    by = {0: "what that took", count: "the mean of what was"}.get(untried, f"what that took, its mean for the {untried} not tried")
    takes = f"all {count}, one after another, take" if count > 1 else "it takes"
    guess = f", with a guess of {_BESIDE:g} s beside the rounds of each" * (beside == _BESIDE)
    about = "at most about" if any(spec.stop.targets or spec.stop.own for spec in to_do) else "about"  # before the last round
    trials = f", after {about} {time_text(before)} of trials of [tune]{guess}" if before else ""
    total = count * fsum(asked.values()) / len(asked)  # that of runs without a number of rounds, too
    return f"{tried} tried before; by {by}, `submit {how} {limits}` would do, and {takes} {about} {time_text(total)}{trials}"


def _seen(job: Job, out: Path) -> dict[str, float]:
    """The seconds of a round of each label that was tried."""
    here = {spec.label: spec for spec in job.runs if not spec.missing}  # one for all seeds
    return {label: seconds for label, spec in here.items() if (seconds := _seconds(spec, job, out))}


def _beside(file: Path) -> float:
    """The seconds that a finished trial took besides its rounds."""
    wall = json.loads(attributes(file).get("wall", "{}"))
    return fsum(wall.values()) - wall.get("rounds", 0.0)


def _trials_of_runs(runs: Sequence[RunSpec], job: Job, out: Path) -> tuple[list[tuple[RunSpec, int, int]], float]:
    """How many trials [tune] of these runs still takes, and their rounds, for one of those that share them; and the seconds that a
    trial takes besides its rounds."""
    apart = {trials(spec)[0].toml(): spec for spec in runs if spec.tune}.values()
    seen = [_beside(file) for spec in apart for file in _files_of_trials(spec, job, out)]
    return [(spec, *_trials_left(spec, job, out)) for spec in apart], median(seen or [_BESIDE])


def _trials_left(spec: RunSpec, job: Job, out: Path) -> tuple[int, int]:
    """How many trials a run's [tune] still takes, without those of the best value's neighbours, and their rounds. A longer trial
    goes on from the shorter one."""
    tune, folder = tune_of(spec), folder_of_trials(job.name, job.runs)
    count, left, before = 0, 0.0, 0.0
    for number, stage in enumerate(stages_of(len(tune.grid))):
        each = trials(spec, number)
        done = sum(result_file(folder, trial.label, trial.run_id, out).exists() for trial in each)
        rounds = fsum(trial.stop.rounds or 0 for trial in each) / len(each)  # may be others than the run's, on other data
        to_do = max(0, stage.values * len(each) // len(tune.grid) - done)
        count, left, before = count + to_do, left + to_do * (rounds - before), rounds
    return count, round(left)


def _files_of_trials(spec: RunSpec, job: Job, out: Path) -> list[Path]:
    """The results of trials of a run that are there, on its own problem."""
    tune, folder = tune_of(spec), folder_of_trials(job.name, job.runs)
    places = [result_file(folder, label_of(spec, value), "?" * 12, out) for value in tune.grid]
    return [file for place in places for file in place.parent.glob(place.name)]


def _seconds(spec: RunSpec, job: Job, out: Path) -> float:
    """The seconds of a round, by the last result of one process with a run's label, which may be unfinished, or of a trial of it,
    on its data: of the same set or file, N, d, and, if known, nonzeros; 0.0 where there is none."""
    place = result_file(job.name, spec.label, "?" * 12, out)
    files = [*place.parent.glob(f"{place.name}*"), *(_files_of_trials(spec, job, out) if spec.tune else [])]
    said = line(spec.written["data"], spec.data_kind, "", size := size_of(spec) or (0, 0, 0, 0))
    for file in sorted(files, key=lambda file: -file.stat().st_mtime):
        with suppress(UserError):
            run = read(file)
            same = line_of(run, with_place=False) == said and size[3] in (0, run.attrs.get("nonzeros"))
            if same and (rounds := _last(run)) and run.attrs["n_ranks"] == 1:
                return float(run.column("seconds")[-1]) / rounds
    return 0.0


def _estimate(file: Path, job: Job, out: Path) -> Estimate:
    to_do = [spec for spec in job.runs if not result_file(job.name, spec.label, spec.run_id, out).exists()]
    of_trials, beside = _trials_of_runs(to_do, job, out)
    left, seen = [(spec, 1, _rounds_left(spec, job, out)) for spec in to_do], _seen(job, out)
    trials, each = sum(count for _, count, _ in of_trials), [*left, *of_trials]
    seconds = trials * beside + fsum(rounds * seen.get(spec.label, nan) for spec, _, rounds in each)
    sets = {cached_file(*spec.source): bytes_of(spec, shape) for spec in to_do if (shape := shape_of(spec))}
    disk = fsum(size for cache, size in sets.items() if not cache.exists())
    disk += _BYTES_OF_A_ROW * sum(count + rounds // spec.log.rounds for spec, count, rounds in each)
    rounds, in_all = (sum(rounds for *_, rounds in those) for those in (left, each))
    return Estimate(file, len(to_do), rounds, trials, in_all - rounds, seconds, most(to_do), disk)


def _rounds_left(spec: RunSpec, job: Job, out: Path) -> int:
    done = 0
    with suppress(UserError):
        done = _last(read(part_of(result_file(job.name, spec.label, spec.run_id, out))))
    return max(0, (spec.stop.rounds or 0) - done)


def _last(run: Run) -> int:
    return int(run.trace["round"][-1]) if run.rows else 0
