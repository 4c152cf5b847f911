"""A job: one TOML file, or dict = one figure = some runs, checked whole before anything runs."""

import copy
import re
import shutil
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path, PurePath
from typing import Any

from mpi_compress.core.errors import UserError, nearest, placed
from mpi_compress.core.patterns import Choice, each_of, is_chosen
from mpi_compress.core.plugins import freeze_plugin, import_plugins
from mpi_compress.core.progress import count_text, print_line
from mpi_compress.core.registry import checked
from mpi_compress.core.shipped import like, named
from mpi_compress.job import dotted
from mpi_compress.job.claims import Record, claims_of, records_of
from mpi_compress.job.named_columns import refuse_unlogged, unanswered
from mpi_compress.job.protocol import OF_DATA, Protocol
from mpi_compress.job.runs import RunSpec, run_spec
from mpi_compress.job.tables import NOT_OF_A_RUN, OF_A_RUN, Claim, FigureTable, PanelTable, Tables
from mpi_compress.job.trials import check_trials, forget_shared
from mpi_compress.job.tuning import for_the_question, untuned
from mpi_compress.problem.datasets.said import title_of
from mpi_compress.results.files import job_name, refuse_archive

FROZEN_JOB = "job.toml"
Changed = Callable[[Sequence[str], int], Tables]
"""Gives what is set from outside in a run, by its names and its number."""


class NoSuchLabel(UserError):
    """A job has no run of `labels` that were asked for."""

    labels: Sequence[str] = ()


@dataclass(frozen=True, repr=False)
class Job:
    """A job file, read and checked. It prints as one line."""

    name: str  # its path below a folder called `jobs`, else its stem: the folder of its results
    title: str
    paper: str
    runs: list[RunSpec]
    figure: FigureTable = field(default_factory=FigureTable)
    claims: list[Claim] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    protocol: Protocol | None = None
    on: str = ""  # what its name lacks where other data are set from outside: "-on-w1a"

    def __repr__(self) -> str:
        labels = dict.fromkeys(spec.label for spec in self.runs)
        shown = textwrap.shorten(", ".join(labels), 100, placeholder=" …")
        return f"Job({self.name!r}, {count_text(len(self.runs), 'run')}: {shown})"

    @property
    def changes(self) -> str:
        """What is set from outside in its runs, such as "stop.rounds = 300" by --set; "" for nothing."""
        each = (value for r in self.runs for value in dotted.leaves(r.overridden, parts=True))
        return ", ".join(dict.fromkeys(f"{key} = {dotted.plain(value)}" for key, value in each))

    @property
    def titled_figure(self) -> FigureTable:
        """The figure under its title, or the job's."""
        return replace(self.figure, title=self.figure.title or self.title)

    def only(self, label: Choice = None, index: int | None = None) -> "Job":
        """The same job with the runs of one label or several, or one run; UserError if there is no such run. A label may be a
        pattern, ``"top-*"``."""
        labels = [r.label for r in self.runs]
        if lacking := [pattern for pattern in each_of(label) if not any(is_chosen(r.names, pattern) for r in self.runs)]:
            several = f"; '{lacking[0]}*' takes all that begin so" if any(known.startswith(lacking[0]) for known in labels) else ""
            meant = [r.index for r in self.runs if f"{r.label}, seed {r.seed}" == lacking[0]]
            several += f"; --index {meant[0]} takes that seed" if meant else ""
            error = NoSuchLabel(f"--only: {nearest(lacking[0], labels, 'run', quoted=True)}{several}")
            error.labels = lacking
            raise error
        if index is not None and not 0 <= index < len(labels):
            raise UserError(f"--index: {index} was given; the runs of '{self.name}' go from 0 to {len(labels) - 1}")
        chosen = [r for i, r in enumerate(self.runs) if is_chosen(r.names, label) and index in (None, i)]
        if index is not None and not chosen:
            only = ", ".join(each_of(label))
            raise UserError(f'--only {only} and --index {index} leave no run: run {index} is "{labels[index]}"; leave one out')
        return replace(self, runs=chosen)


def with_own_labels(files: Collection[Any], read: Callable[[Any, Choice], Any], only: Choice) -> dict[Any, Any]:
    """What `read` makes of each job and those of the labels `only` that it has; a line says which jobs are left out, for they have
    none. UserError for a label that no job has."""
    found, lacking = dict[Any, Any](), Counter[str]()
    for file in files:
        try:
            found[file] = read(file, only)
        except NoSuchLabel as error:
            if len(files) == 1:
                raise
            lacking.update({*error.labels})
            if own := [label for label in each_of(only) if label not in error.labels]:
                found[file] = read(file, own)
    if nowhere := [label for label, count in lacking.items() if count == len(files)]:
        raise NoSuchLabel(f"--only: no job has a run called {nowhere[0]!r}")
    if others := [str(file) for file in files if file not in found]:
        shown = textwrap.shorten(", ".join(others), 200, placeholder=" …")
        print_line(f"mpi-compress: --only leaves out {count_text(len(others), 'job')} without such a run: {shown}")
    return found


def load_job(
    job: str | Path | Tables, overrides: Tables | None = None, only: Choice = None,
    index: int | None = None, full: bool = False, name: str | None = None, frozen: Path | None = None,
) -> Job:  # fmt: skip
    """Read a job, and build every part of every run.

    Args:
        job: a job file; one of the package's by its name, such as "cat/fig1"; or a dict of the same tables, where `run` and
            `claim` are lists of dicts. Files that a dict names are looked for in the current folder.
        overrides: values by dotted key, such as {"stop.rounds": 100}, put into every run that is taken.
        only: take the runs of this label, or of these; a label may be a pattern, ``"top-*"``.
        index: take the run of this number.
        full: with the values by dotted key of the job's table [full].
        name: the folder of its results. None: a file's path below `jobs`, else its stem; a dict's `name`, or its title in hyphens
        frozen: the folder into which `freeze` has copied the job and its plugins; `job`, where it was, is not read.

    Raises:
        UserError: one line with the file, the place in it, what was given, and what would do; without the file for a dict.
    """

    def parsed(tables: Tables, name: str, folder: Path) -> Job:
        values = {key: dotted.as_toml(value, key) for key, value in (overrides or {}).items()}
        job = parse_job(_at_full_size(tables) if full else tables, name, folder, values, only, index, frozen).only(only, index)
        once = dict[tuple[str, str], RunSpec]()  # an override may make runs equal, such as those of a grid of seeds
        for run in job.runs:
            if once.setdefault((run.label, dotted.text_of(run.written)), run) is not run and not overrides:
                what = f'run "{run.label}", seed {run.seed}, is there twice, label and all settings equal'
                raise UserError(f"{what}; give it another label, or leave it out")
        return replace(job, runs=[*once.values()])

    if isinstance(job, Mapping):
        return parsed(*dotted.named_tables(job, name), Path())
    if not isinstance(job, str | Path):
        raise UserError(f"load_job: {job!r:.60} was given; it should be a job file or a dict of its tables")
    path = Path(named(str(job)))
    tables = _toml(frozen / FROZEN_JOB if frozen else path)
    with placed(f"{path}: "):
        found = parsed(tables, job_name(path) if name is None else dotted.named_tables({}, name)[1], path.parent)
    return replace(found, runs=[replace(r, where=f"{path}: {r.where}") for r in found.runs])  # for errors that only the data show


def _toml(path: Path) -> Tables:
    refuse_archive(path)
    try:
        return dotted.tables_in(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such job file{like(path)}") from None
    except IsADirectoryError:
        raise UserError(f"{path}: is a folder; a job file is required (`report --run` takes a folder)") from None
    except ValueError as error:
        is_result = "is a result; a job file is required (`show` prints a result, mc.problem(mc.read(file)) is its problem)"
        raise UserError(f"{path}: {is_result if path.suffix == '.h5' else f'is no TOML: {error}'}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None


def parse_job(
    tables: Tables, name: str, folder: Path, overrides: Tables, only: Choice = None,
    index: int | None = None, frozen: Path | None = None,
) -> Job:  # fmt: skip
    """A job from its tables, as TOML gives them; `overrides` reach the runs that `Job.only` takes. UserError as in `load_job`."""
    dotted.refuse_unknown(tables, (*NOT_OF_A_RUN, *OF_A_RUN), "")
    title, paper = tables.get("title", "") or PurePath(name).name, tables.get("paper", "")
    if not isinstance(title, str) or not isinstance(paper, str):
        raise UserError("title and paper should be text in quotes")

    def changed(names: Sequence[str], number: int) -> Tables:
        return overrides if is_chosen(names, only) and index in (None, number) else {}

    runs, protocol = list[RunSpec](), checked(Protocol, tables["protocol"], "protocol") if "protocol" in tables else None
    of_job = protocol.of_run if protocol else dict[str, Any]
    written = [(of_job(tables), of_job(own)) for own in dotted.list_of_tables(tables, "run") or [{"label": title}]]
    if "plugins" in tables:
        import_plugins(tables["plugins"], folder, frozen)
    forget_shared()
    for own in written:
        runs += _right_runs(*own, len(runs), folder, changed, overrides if (only, index) != (None, None) else {})
    _refuse_one_label_for_two([run for run in runs if index is None or not run.overridden])  # with an index it stands alone
    if protocol:
        protocol.check(runs)
    claims, labels = dotted.list_of_tables(tables, "claim"), [r.label for r in runs]
    shown = [tables.get("figure"), [claim.get("value") for claim in claims], tables.get("record")]
    shown += [run.tune.to for run in runs if run.tune]
    asked = frozenset(re.findall(r"[A-Za-z_]\w*", repr(shown)))
    stated = claims_of(claims, labels, lambda question: unanswered(question, runs))
    sets = {run.papers_data: run.data.title for run in runs if run.papers_data != run.data.title}
    runs = [replace(run, asked=asked, papers_data=_papers_data(tables, paper, stated, run.papers_data)) for run in runs]
    records = records_of(dotted.list_of_tables(tables, "record"), labels)
    figure = _figure(tables.get("figure", {}), runs)
    panels = [replace(panel, title=_renamed(panel.title, sets)) for panel in figure.panel]
    figure, title = replace(figure, title=_renamed(figure.title, sets), panel=panels), _renamed(title, sets)
    on = "+".join(dict.fromkeys(sets.values()))
    job = Job(name, title, paper, runs, figure, stated, records, protocol, on and f"-on-{on}")
    if tables.get("full", {}) != {}:
        _check_full_size(tables, name, folder, overrides, only, index, frozen)
    return job


def _right_runs(tables: Tables, own: Tables, first: int, folder: Path, changed: Changed, overrides: Tables) -> list[RunSpec]:
    """`_runs`; where a run that is not taken is wrong, what is set from outside for others may be right for it."""
    try:
        return _runs(tables, own, first, folder, changed)
    except UserError:
        if not overrides:
            raise
        with suppress(UserError):
            return _runs(tables, own, first, folder, lambda *_: overrides)
        raise


def _runs(tables: Tables, own: Tables, first: int, folder: Path, changed: Changed) -> list[RunSpec]:
    """The runs of one [[run]] table, one for each point of its grid, numbered from `first` on, each with what `changed` gives."""
    label, tables_of_run, grid = _whole(tables, own)
    several, points = len(tables.get("run", [])) > 1, dotted.points_of(grid)
    shared = [label] * (dotted.labelled(label, points[0]) != label)  # where no run has it as its own

    def one(written: Tables, point: Tables, label: str, beside: bool = False) -> RunSpec:
        number, names = first + len(runs), [label, *shared]
        asked, of_job = changed(names, number), dotted.with_values(written, point)
        overridden = _differing(untuned(asked) if beside else asked, of_job)
        dotted.refuse_labelled(label, point, overridden)
        run: Tables = dotted.with_values(of_job, overridden)
        run = untuned(run) if run.get("tune") == {} else run
        with placed(f'run "{label}": ' if several else ""):
            run = for_the_question(run, tables.get("figure"), grid)
        rounds = inf if (given := dotted.value_at(of_job, "stop.rounds")) is None else given
        spec = run_spec(label, number, run, folder, several)
        if spec.tune is not None and (tuned := overridden.keys() & {*spec.tune.keys}):
            why = "is tuned, so another value of it changes nothing; tune = {} beside it takes the job's [tune] away"
            raise UserError(f'run "{label}": {min(tuned)} {why}')
        return replace(spec, names=names, overridden=overridden, rounds_of_job=rounds, papers_data=title_of(of_job["data"]))

    runs, besides = list[RunSpec](), list[Tables]()
    for point in points:
        runs.append(spec := one(tables_of_run, point, dotted.labelled(label, point)))
        if spec.tune is not None:
            check_trials(spec)
            at = untuned({**point, spec.tune.parameter: (beside := spec.tune.beside)})
            if beside is not None and at not in besides:  # one for all questions of a grid over tune.by
                besides.append(at)
                name = f"{dotted.labelled(label, untuned(point))}, {spec.tune.parameter.split('.')[-1]} = {dotted.plain(beside)}"
                runs.append(one(untuned(tables_of_run), at, name, beside=True))
    return runs


def _whole(tables: Tables, own: Tables) -> tuple[str, Tables, Tables]:
    """The label of a [[run]] table, its tables with those that the job's runs share, and its grid likewise."""
    label = own.get("label")
    if not isinstance(label, str) or not label:
        dotted.refuse_unknown(own, ("label", "grid", *OF_A_RUN), "[[run]]")
        raise UserError('run: every [[run]] needs a label = "…", its name in figures')
    if not label.isprintable():
        key = "run: label" if "run" in tables else "title"
        raise UserError(f"{key} = {label!r} has characters that cannot be printed; write it without them, in one line")
    where = f'run "{label}"'
    dotted.refuse_unknown(own, ("label", "grid", *OF_A_RUN), where)
    grid: Tables = {**dotted.grid_of(tables, ""), **dotted.grid_of(own, f"{where}: ")}
    grid = untuned(grid) if own.get("tune") == {} else grid
    tables_of_run = {k: v for k, v in {**tables, **own}.items() if k in ("plugins", *OF_A_RUN) and (k, v) != ("tune", {})}
    return label, tables_of_run, grid


def _differing(values: Tables, run: Tables) -> Tables:
    """The values that a run does not have as it is written."""
    own = {key: dotted.value_at({"seed": 0, **run}, key) for key in values}
    return {key: v for key, v in values.items() if own[key] != v or isinstance(own[key], bool) != isinstance(v, bool)}


def _papers_data(tables: Tables, paper: str, claims: Sequence[Claim], own: str) -> str:
    """The set of a job's paper: that of its table [full], if it names one, else its own, of which claims are the paper's; or ""."""
    full = dict(dotted.leaves(tables["full"])) if isinstance(tables.get("full"), Mapping) else {}
    if named := {key: full[f"data.{key}"] for key in OF_DATA if f"data.{key}" in full}:
        return title_of(named)
    is_own = not claims or any(claim.basis == "paper" for claim in claims)
    return own if paper and not paper.startswith(("none", "after")) and is_own else ""


def _refuse_one_label_for_two(runs: Sequence[RunSpec]) -> None:
    """UserError if two runs of one label differ in more than their seed: figures and tables could not tell them apart."""
    first: dict[str, dict[str, str]] = {}
    for run in runs:
        own = {key: dotted.text_of(value) for key, value in dotted.leaves(run.written) if key != "seed"}
        other = first.setdefault(run.label, own)
        if differing := [key for key in {**other, **own} if other.get(key) != own.get(key)]:
            what = f'run "{run.label}": two runs have this label, and differ in {differing[0]}'
            raise UserError(f"{what}; give each run a label of its own")


def _figure(table: Any, runs: Sequence[RunSpec]) -> FigureTable:
    """[figure] with its [[figure.panel]] tables, each of which shows a run, and columns that runs log."""
    if not isinstance(table, Mapping):
        raise UserError(f"figure: {table!r} was given; it should be a table, [figure]")
    tables, labels = dotted.list_of_tables(table, "panel", "figure."), [run.label for run in runs]
    panels = [checked(PanelTable, panel, f"figure.panel {i + 1}") for i, panel in enumerate(tables)]
    for i, panel in enumerate(panels):
        for pattern in panel.runs:
            if not any(is_chosen(label, pattern) for label in labels):
                raise UserError(f"figure.panel {i + 1}.runs: {nearest(pattern, labels, 'run')}")
    own = {key: value for key, value in table.items() if key != "panel"}
    if "at" in own:  # what it took to come there; the loss there is the target's
        own = {"y": own.get("by", FigureTable.by), **own}
    figure = replace(checked(FigureTable, own, "figure"), panel=panels)
    refuse_unlogged(figure, runs)
    methods = list[str]()
    for name in figure.methods:  # a label, without the values of a grid too, or a pattern
        if not (taken := [label for label in labels if is_chosen(label, [name, f"{name}, *"])]):
            raise UserError(f"figure.methods: {nearest(name, labels, 'run', quoted=True)}")
        methods += taken
    return replace(figure, methods=methods or labels)


def _renamed(title: str | None, sets: Mapping[str, str]) -> str:
    """A title with the names of the sets that are in place of its own."""
    for own, other in sets.items():
        title = other.join(re.split(rf"(?<![\w-]){re.escape(own)}(?![\w-])", title or "", flags=re.IGNORECASE))
    return title or ""


def _check_full_size(tables: Tables, name: str, folder: Path, *overriding: Any) -> None:
    """Refuse a wrong [full], also where --full was not given."""
    at_full_size = _at_full_size(tables)
    try:
        parse_job(at_full_size, name, folder, {}, frozen=overriding[-1])
    except UserError as error:
        try:  # what is left out may be set from outside
            parse_job(at_full_size, name, folder, *overriding)
        except UserError:
            raise UserError(f"full: {error}") from None


def _at_full_size(tables: Tables) -> dict[str, Any]:
    """A job's tables with the values of its [full] in all runs, and with its [[full.run]] and [[full.claim]] tables."""
    full = tables.get("full", {})
    if not isinstance(full, Mapping):
        raise UserError(f'full: {full!r} was given; it should be a table, [full], of values such as "stop.rounds" = 1000')
    if not full:
        raise UserError('--full: the job has no table [full] that says what its full size is, such as "stop.rounds" = 1000')
    found = copy.deepcopy({k: v for k, v in tables.items() if k != "full"})
    for key in ("run", "claim"):
        if key in full:
            found[key] = [*dotted.list_of_tables(found, key), *dotted.list_of_tables(full, key, "full.")]
    for key, value in dotted.leaves({k: v for k, v in full.items() if k not in ("run", "claim")}, parts=True):
        if why := dotted.no_key_of_a_run(key):
            raise UserError(f"full: {why}")
        for table in (found, *(own for own in dotted.list_of_tables(found, "run") if key.partition(".")[0] in own)):
            dotted.put_part(table, key, value)
    return found


def freeze(file: Path, job: Job, folder: Path) -> None:
    """Copy a job's file and the modules of its plugins into a folder, for `load_job(…, frozen=folder)`. Data and other files that a
    job names are not copied: their content is in the ids of its runs, and a task whose run has another id than what was submitted
    refuses to run it."""
    shutil.copyfile(file, folder / FROZEN_JOB)
    for name in dict.fromkeys(name for spec in job.runs for name in spec.written.get("plugins", [])):
        freeze_plugin(name, folder)
