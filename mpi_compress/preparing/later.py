"""f* after a run, where nothing asked for it before."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import print_line
from mpi_compress.job.loading import load_job
from mpi_compress.job.runs import RunSpec
from mpi_compress.preparing.problems import Problem, problem_of
from mpi_compress.preparing.wanted import key_of
from mpi_compress.problem.datasets.store import open_data
from mpi_compress.results.columns import LEFT_OUT
from mpi_compress.results.reader import Run, Runs
from mpi_compress.results.targets import Columns


def with_suboptimality(runs: Iterable[Run], of_jobs: Iterable[RunSpec] = (), quiet: bool = True) -> Runs:
    """The results, each with f* and the column `suboptimality` where they were left out; the files stay as they are.

    Where f* cannot be computed, as without the data, a line says so, and the result is as it was.

    Args:
        of_jobs: the runs of the jobs that the results belong to; of others, files that they name are looked for here.
    """
    specs, problems = list(of_jobs), dict[str, Problem]()
    return Runs(_with_f_star(run, specs, problems, quiet) if run.attrs.get("f_star_source") == LEFT_OUT else run for run in runs)


def _with_f_star(run: Run, specs: Sequence[RunSpec], problems: dict[str, Problem], quiet: bool) -> Run:
    try:
        spec = next((spec for spec in specs if spec.run_id == run.attrs["run_id"]), None) or load_job(run.written).runs[0]
        spec = replace(spec.as_played(run.tuned), asked=frozenset(["suboptimality"]))
        if (key := key_of(spec)) not in problems:
            problems[key] = problem_of(spec, open_data(spec.data, spec.folder, spec.split, spec.labels), quiet)
    except UserError as error:
        print_line(f"{run.label}: f* cannot be computed: {error}")
        return run
    return _changed(run, problems[key])


def _changed(run: Run, p: Problem) -> Run:
    found = {key: getattr(p, key) for key in ("f_star", "f_star_accuracy", "f_star_source")}
    is_whole = "loss" in run.trace and "evaluate" not in run.attrs  # a sample of the rows says nothing about the gap
    gap = {"suboptimality": run.trace["loss"] - p.f_star} if is_whole else {}
    return replace(run, attrs={**run.attrs, **found}, trace=Columns({**run.trace, **gap}))
