"""Finds the results of what a command is given, job files, or result files and folders of these."""

import shlex
from argparse import Namespace
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from mpi_compress.cli.parsing import load_all
from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import print_line
from mpi_compress.evidence.lines import tuned_to
from mpi_compress.evidence.notes import said_of
from mpi_compress.evidence.outcomes import changed_inputs, old_metrics, readable, readable_results_of
from mpi_compress.job.loading import Job
from mpi_compress.job.runs import RunSpec
from mpi_compress.results.columns import LEFT_OUT
from mpi_compress.results.files import files_in
from mpi_compress.results.reader import Run
from mpi_compress.results.settings import of_several_inputs


def axes_of(options: Namespace) -> dict[str, str]:
    """The columns that are asked for, by axis; UserError if a name is blank."""
    asked = {axis: column for axis in ("x", "y") if (column := getattr(options, axis)) is not None}
    for axis, column in asked.items():
        if not column.strip():
            raise UserError(f"--{axis}: a column's name is required, such as loss")
    return asked


def ask_for_results_alone(options: Namespace) -> None:
    """UserError if, beside results, an option about a job is given."""
    if options.set or options.only or options.full:
        raise UserError(f"{shlex.join(options.what)}: --set, --only and --full are about a job, and results were given")


def jobs_of(options: Namespace) -> dict[str, Job]:
    """The jobs that a command is given, by their files; none where it is given results, UserError for both kinds."""
    jobs = [name for name in options.what if name.endswith(".toml")]
    if not jobs:
        ask_for_results_alone(options)
    elif len(jobs) < len(options.what):
        raise UserError(f"{shlex.join(options.what)}: jobs are required, or results, not both")
    return load_all(jobs, options)


def found(options: Namespace, jobs: Mapping[str, Job], columns: Collection[str] = ()) -> list[Run]:
    """The results of jobs, or those in files where there is no job; UserError without any. What has no result is a line on stderr.
    `columns`: what is asked of them; f* is computed for a suboptimality that was left out."""
    if not jobs:
        runs, problems = readable([Path(file) for what in options.what for file in files_in(what)])
        _tell(problems, "; the others go on")
        return with_gaps(runs, columns, with_plugins=options.with_plugins)
    runs, problems = [], []
    for file, job in jobs.items():
        try:
            new, unread = readable_results_of(job, options.out)
        except UserError as error:
            problems.append(error)
            continue
        runs += new
        _tell(unread, "; the others go on")
        if missing := len(job.runs) - len(new) - len(unread):
            print_line(f"mpi-compress: {file}: {missing} of {len(job.runs)} runs have no record; `mpi-compress plan` lists them")
            for line in changed_inputs(job, options.out):
                print_line(f"mpi-compress: {line}")
    if problems and not runs:
        raise problems[0]
    _tell(problems)
    return with_gaps(runs, columns, [spec for job in jobs.values() for spec in job.runs])


def absent(jobs: Mapping[str, Job], runs: Sequence[Run]) -> list[str]:
    """Lines on methods of which seeds have no record yet, and so are not in a table or a figure."""
    there, said, labels = {run.attrs.get("run_id") for run in runs}, list[str](), list[str]()
    for job in jobs.values():
        for label, to in {spec.label: spec.tune and spec.tune.to for spec in job.runs}.items():
            each = [not spec.missing and spec.run_id in there for spec in job.runs if spec.label == label]
            so_far = "not run yet" if len(each) == 1 else f"{sum(each)} of {len(each)} seeds here so far"
            said.append("" if all(each) else so_far)
            labels.append(tuned_to(label, to))
    return [*said_of(said, labels).values()]


def with_gaps(runs: list[Run], columns: Collection[str], specs: Sequence[RunSpec] = (), with_plugins: bool = False) -> list[Run]:
    """The results; if their suboptimality is among these columns, and was left out, with it."""
    if "suboptimality" not in columns or all(run.attrs.get("f_star_source") != LEFT_OUT for run in runs):
        return runs
    from mpi_compress.preparing.alone import with_suboptimality  # which imports all that runs need

    return with_suboptimality(runs, specs, quiet=False, with_plugins=with_plugins)


def _tell(problems: Sequence[UserError], then: str = "") -> None:
    for problem in problems:
        print_line(f"mpi-compress: {problem}{then}")


def warn_of_mixtures(runs: Sequence[Run]) -> None:
    """A line on stderr where several results are of one run with one seed or of changed data or code, or where metrics are old."""
    for line in old_metrics(runs):
        print_line(f"mpi-compress: {line}")
    if several := ", ".join(of_several_inputs(runs)):
        what = "results of several versions of data or code, each version in rows and curves of its own"
        print_line(f"mpi-compress: {what}: {several}; by its job `table` takes today's")
    for run_id, count in Counter(str(run.attrs.get("run_id", "")) for run in runs).items():
        if run_id and count > 1:
            labels = dict.fromkeys(run.label for run in runs if run.attrs.get("run_id") == run_id)
            print_line(f"mpi-compress: {count} results are of one run and seed: {', '.join(labels)} ({run_id})")
