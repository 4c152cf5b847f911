"""Outcomes of jobs: the results that are there, and the verdicts on the jobs' claims."""

import json
import os
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from mpi_compress.core.errors import UserError
from mpi_compress.core.patterns import Choice, each_of
from mpi_compress.core.progress import count_text
from mpi_compress.evidence.verdicts import Verdict, answerable, check
from mpi_compress.job.dotted import plain
from mpi_compress.job.loading import Job, NoSuchLabel, load_job, with_own_labels
from mpi_compress.job.runs import RunSpec, inputs_of, outdated
from mpi_compress.job.trials import folder_of_trials, possible
from mpi_compress.problem.datasets.said import differs
from mpi_compress.results.catalogue import Entry, entries
from mpi_compress.results.files import JOBS, job_name, part_of, result_file
from mpi_compress.results.reader import Run, attributes, read, result_of_run
from mpi_compress.results.status import State, status_of_run


@dataclass(frozen=True, eq=False)
class Outcome:
    """A job file with its results and verdicts."""

    file: Path
    key: str  # its name on the page, which no other job has
    text: str
    job: Job | None  # None: it cannot be read
    full: bool = False  # True: it was read at full size
    runs: list[Run] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    problem: str = ""  # why runs are missing, if it is known
    begun: list[Run] = field(default_factory=list)  # what runs have written so far that are stopped, failed or under way
    missing: list[tuple[RunSpec, str]] = field(default_factory=list)  # runs without a finished result, those begun too, and why
    out: Path = Path("results")  # where its results are
    shown: list[Run] = field(default_factory=list)  # all that have a row, in the job's order: what figures and tables show
    only: Sequence[str] = ()  # the labels that were asked for, as far as it has them; (): all

    @property
    def title(self) -> str:
        return self.job.title if self.job else self.file.stem

    @property
    def paper(self) -> str:
        """What it shows of which paper, or where it shows none, what else its job says of that."""
        return self.job.paper.removeprefix("none: ") if self.job else ""

    @cached_property
    def data(self) -> str:
        """The data sets that it ran on, and where they are not as published, or that it would run on."""
        ran = [differs(run, str(run.attrs["data"])) for run in (*self.runs, *self.begun)]
        return "; ".join(dict.fromkeys(ran or (spec.data_shown for spec in (self.job.runs if self.job else ()))))

    @property
    def kind(self) -> str:
        """Whether the data are the paper's: those of all runs, else "other data"."""
        kinds = {spec.data_kind for spec in self.job.runs} if self.job else {""}
        return "other data" if "other data" in kinds else kinds.pop()

    @property
    def status(self) -> str:
        """Its state in a few words."""
        if not self.job or not self.runs:
            return f"not run: {self.problem}" if self.problem else "not run"
        wanted, changes = len(self.job.runs), f", with {self.job.changes}" if self.job.changes else ""
        done = ("done" if len(self.runs) == wanted else f"{len(self.runs)} of {wanted} runs") + changes
        others = Counter(f"'{r.label}' {r.status}" for r in self.runs if r.status != "complete")
        others.update(f"'{r.label}' {state}" for r in self.begun if (state := status_of_run(r).state) is not State.RUNNING)
        counts = [text if n == 1 else f"{text} with {n} seeds" for text, n in others.items()]
        return "; ".join(filter(None, [done, *counts, self.problem]))

    @property
    def counted(self) -> str:
        """How many claims have each outcome."""
        return counted(v.outcome for v in self.verdicts)

    def group(self, verdict: Verdict) -> str:
        """Where a claim stands on the scorecard: a key of `GROUPS`."""
        if verdict.claim.basis == "ours":
            return "ours"
        if verdict.changed:
            return "changed"
        if verdict.claim.read == "abstract":
            return "abstract"
        in_place = self.job and any(spec.data_shown != spec.data.title for spec in self.job.runs)
        return "elsewhere" if in_place or verdict.is_elsewhere else "paper"


GROUPS = {
    "paper": "The papers' claims, in the papers' setting",
    "elsewhere": "The papers' claims, on other data",
    "abstract": "Claims of which the abstract alone was read",
    "changed": "The papers' claims, on other data or with other settings",
    "ours": "Lines of our own",
}
_NAMED = 4  # settings of results that a line names
_NO_SET = "the job without --set, as it was, or with --full"
_WORDS = {
    "holds": "hold", "holds in part": "hold in part", "does not hold": "do not",
    **{word: word for word in ("undecided", "not judged", "not tested", "not run")},
}  # fmt: skip


def counted(outcomes: Iterable[str], what: str = "") -> str:
    """How many verdicts, or sentences, have each of these outcomes, such as "2 of 3 hold, 1 does not"; a dash if there are none.
    `what` they are, such as a "case", is said after their number."""
    counts = Counter(outcomes)
    each = [(n, outcome, several) for outcome, several in _WORDS.items() if (n := counts[outcome])]
    said = [f"{n} {outcome.removesuffix(' hold') if n == 1 else several}" for n, outcome, several in each]
    noun = what and f"{what}{'s' * (counts.total() != 1)} "
    return re.sub(" ", f" of {counts.total()} {noun}", ", ".join(said), count=1) or "–"


def job_files(names: Sequence[str]) -> list[Path]:
    """Job files by their names, and those in folders; without names, those in ./jobs; UserError where there is none."""
    found: dict[Path, None] = {}
    for place in map(Path, names or [JOBS]):
        if not place.exists():
            raise UserError(f"{place}: there is no such job file or folder; a job is named by its file here, jobs/NAME.toml")
        below = (file for file in place.rglob("*.toml") if file.is_file() and not file.name.startswith("."))
        files = sorted(below, key=lambda file: file.with_suffix("").parts) if place.is_dir() else [place]
        if not files:
            raise UserError(f"{place}: there is no job in this folder")
        found.update(dict.fromkeys(files))
    return list(found)


def outcomes(
    files: Sequence[Path], out: Path, full: bool = False, overrides: Mapping[str, Any] | None = None, only: Choice = None
) -> list[Outcome]:
    """The outcome of each job; with `full`, at full size where the job has one; `overrides` and `only` as `load_job` takes them.
    Jobs that have no run of the label `only` are left out; UserError for one that no job has."""
    names, root = Counter(map(job_name, files)), os.path.commonpath([os.path.abspath(file.parent) for file in files])

    def read_one(file: Path, own: Choice) -> Outcome:
        is_alone = names[key := job_name(file)] == 1
        key = key if is_alone else Path(os.path.relpath(file, root)).with_suffix("").as_posix()
        found = _outcome(file, key, out, full, partial(loaded, full=full, overrides=overrides, only=own))
        return found if own is None else replace(found, only=each_of(own))

    return [*with_own_labels(files, read_one, only).values()]


def only_words(labels: Sequence[str]) -> list[str]:
    """The options of a command that takes the runs of these labels of a job, all for ()."""
    return [f"--only={label}" for label in labels]


def loaded(file: Path, full: bool, overrides: Mapping[str, Any] | None = None, only: Choice = None) -> Job:
    """A job; with `full`, at full size where it has one; UserError if it cannot be read."""
    job = load_job(file, overrides, only)
    return load_job(file, overrides, only, full=True) if full and has_full(file) else job


def has_full(file: Path) -> bool:
    """True if a job has a table [full]."""
    return "full" in tomllib.loads(file.read_text(encoding="utf-8-sig"))


def _outcome(file: Path, key: str, out: Path, full: bool, read_job: Callable[[Path], Job]) -> Outcome:
    text = ""
    try:
        text = file.read_text(encoding="utf-8-sig", errors="replace")
        job = read_job(file)
    except NoSuchLabel:
        raise
    except (UserError, OSError) as error:
        problem = f"cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error).removeprefix(f"{file}: ")
        return Outcome(file, key, text, None, problem=problem)
    each = [*each_result(job, out)]
    both = [found for _, found in each if isinstance(found, Run)]
    begun = [run for run in both if run.file.suffix == ".part"]
    runs = [run for run in both if run not in begun]
    missing = [(s, s.missing or (str(found) if isinstance(found, UserError) else "")) for s, found in each if found not in runs]
    claims = answerable(job)
    left_out = [f"{n} of {len(job.claims)} claims left out by --only"] if (n := len(job.claims) - len(claims)) else []
    problem = "; ".join([*[why for _, why in missing if why][:1], *changed_inputs(job, out), *old_metrics(both), *left_out])
    shown, is_full = [run for run in both if run.rows], full and has_full(file)
    verdicts = check(replace(job, claims=claims), runs)
    return Outcome(file, key + job.on, text, job, is_full, runs, verdicts, problem, begun, missing, out, shown)


def changed_inputs(job: Job, out: Path) -> list[str]:
    """Lines that name the files of data and of users' code that have changed since runs finished, which are to do again."""
    to_do = [spec for spec in job.runs if not (spec.missing or result_file(job.name, spec.label, spec.run_id, out).exists())]
    files = sorted((out / job.name).glob("*.h5"), key=lambda file: file.stat().st_mtime_ns) if to_do else []
    finished = filter(None, map(attributes, files))  # the newest ones last, which stay
    then = {attrs.get("job"): json.loads(attrs.get("inputs", "{}")).values() for attrs in finished}
    others = Counter[str]()
    for spec in to_do:
        if before := then.get(spec.toml()):
            pairs = zip(inputs_of(spec).items(), before, strict=False)
            others.update(file for (file, digest), earlier in pairs if digest != earlier)
    said = "{}: changed since {} finished; with it as it is now each is to do again"
    return [said.format(file, count_text(count, "run")) for file, count in others.items()]


Found = Run | UserError | None
"""A result, or what its run has written so far of it; else why it cannot be read, if there is one."""


def each_result(job: Job, out: Path) -> Iterator[tuple[RunSpec, Found]]:
    """What there is of each run of a job."""
    for spec in job.runs:
        found = None if spec.missing else _tried(_come_to, result_file(job.name, spec.label, spec.run_id, out))
        if isinstance(found, Run):
            found.attrs.update(outdated=outdated(spec, found.attrs), overridden=json.dumps(spec.overridden))
        yield spec, found


def old_metrics(runs: Sequence[Run]) -> list[str]:
    """Lines that name the metrics of a job's results whose code has changed since."""
    columns = dict.fromkeys(column for run in runs for column in run.attrs.get("outdated", ()))
    return [f"{column} by code that has changed since; `mpi-compress run` computes it again" for column in columns]


def _tried(read: Callable[[Path], Run | None], file: Path) -> Found:
    try:
        return read(file)
    except UserError as error:
        return error


def results_of(job: Job, out: Path) -> list[Run]:
    """The results of a job; UserError if there are none, or if one cannot be read: claims are about all of them."""
    runs, problems = readable_results_of(job, out)
    if problems:
        raise problems[0]
    return [run for run in runs if run.file.suffix != ".part"] or _refuse_none(job, out)


def readable_results_of(job: Job, out: Path) -> tuple[list[Run], list[UserError]]:
    """The results of a job, and what other runs have written so far; and why some cannot be read. UserError if there are none."""
    runs, problems = _readable([found for _, found in each_result(job, out)])
    return runs or _refuse_none(job, out), problems


def readable(files: Sequence[Path]) -> tuple[list[Run], list[UserError]]:
    """The results in files, and why some cannot be read. UserError: none can be."""
    return _readable([_tried(read, file) for file in files])


def _readable(found: Sequence[Found]) -> tuple[list[Run], list[UserError]]:
    runs, problems = [each for each in found if isinstance(each, Run)], [each for each in found if isinstance(each, UserError)]
    if problems and not runs:
        raise problems[0]
    return runs, problems


def _refuse_none(job: Job, out: Path) -> list[Run]:
    absent = next((spec.missing for spec in job.runs if spec.missing), "") or "; ".join(changed_inputs(job, out))
    if not absent and (others := [*result_file(job.name, "*", "*", out).parent.glob("*.h5")]):
        absent = f"there are results of {_settings_of(others)}; name the one that is meant"
    if not absent and any((out / folder_of_trials(job.name, job.runs)).glob("*.h5*")):
        absent = "only trials of [tune] are there: `mpi-compress run` goes on with them, `watch` shows those that are under way"
    raise UserError(f"no results of '{job.name}' in {out}; {absent or '`mpi-compress run` makes them'}")


def _settings_of(files: Sequence[Path]) -> str:
    """By which settings results were made: "--set stop.rounds=100 (5), none, or the job was changed since (3)"."""
    made = [Entry(file, "").overridden for file in files]
    each = Counter(shlex.join(word for key, value in own.items() for word in ("--set", f"{key}={plain(value)}")) for own in made)
    counts = [f"{options or _NO_SET} ({n})" for options, n in sorted(each.items())]
    return ", ".join([*counts[:_NAMED], *["others"] * (len(counts) > _NAMED)])


def _come_to(file: Path) -> Run | None:
    """The result of a run; where there is none, what the run has written so far of it, once there is a row."""
    if file.exists():
        return result_of_run(file)
    with suppress(UserError):  # there is nothing, or it was completed meanwhile
        part = read(part_of(file))
        if part.rows:
            return part
    return None


def unnamed(files: Sequence[Path], out: Path) -> list[Entry]:
    """The results in a folder that are of no run, or trial, of these jobs, at small or full size. UserError: a job cannot be read,
    or a set that it names is not here: what it names cannot be said."""
    named: set[Path] = set()
    for file in files:
        try:
            for full in (False, True):
                named |= _named(loaded(file, full), out)
        except UserError as error:
            text = str(error).removeprefix(f"{file}: ")
            raise UserError(f"{file}: what it names cannot be said, and nothing is removed: {text}") from None
    return [entry for entry in entries(out) if entry.result.resolve() not in named]


def _named(job: Job, out: Path) -> set[Path]:
    runs = [(job.name, spec) for spec in job.runs]
    runs += [(folder_of_trials(job.name, job.runs), trial) for spec in job.runs if spec.tune for trial in possible(spec)]
    return {result_file(name, spec.label, spec.run_id, out).resolve() for name, spec in runs}
