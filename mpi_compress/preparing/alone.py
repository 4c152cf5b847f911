"""Problems apart from runs: their functions, rows and constants, for programs of one's own; and f* after a run that left it out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mpi_compress.core.errors import UserError
from mpi_compress.core.patterns import Choice
from mpi_compress.core.progress import print_line
from mpi_compress.core.sums import added
from mpi_compress.job.loading import Job, load_job
from mpi_compress.job.runs import RunSpec
from mpi_compress.messages.kinds import Vector
from mpi_compress.preparing.problems import Problem, key_of, problem_of, start_of, with_optimum
from mpi_compress.problem.datasets.store import open_data
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.rows import Rows
from mpi_compress.results.columns import LEFT_OUT
from mpi_compress.results.reader import Run, Runs


@dataclass(frozen=True, eq=False)
class Functions:
    """f = (1/n) Σ f_i of a job's first run, with its regulariser and a smooth penalty in each f_i."""

    problem: Problem
    f_i: Sequence[Objective]  # of the n workers: `f_i[0].value_and_gradient(x)`, whose gradient is valid until the next call
    x0: Vector  # (d,), as [start] says
    L_i: Sequence[float] | None  # the smoothness of each f_i; None where it is not known

    @property
    def dim(self) -> int:
        """d."""
        return self.problem.dim

    @property
    def L(self) -> float:
        """The smoothness of f; NaN where it is not known."""
        return self.problem.L

    @property
    def mu(self) -> float:
        return self.problem.mu

    @property
    def x_star(self) -> Vector | None:
        """(d,) the minimiser; None where no solver is known."""
        return self._solved.x_star

    @property
    def f_star(self) -> float:
        """f(x*); NaN where it is not known."""
        return self._solved.f_star

    @cached_property
    def _solved(self) -> Problem:
        return with_optimum(self.problem) if self.problem.f_star_source == LEFT_OUT else self.problem

    @cached_property
    def rows(self) -> Rows:
        """All training samples, in the order of the workers."""
        return self.problem.data.read(0, self.problem.data.n_samples)

    @cached_property
    def held_out(self) -> Rows | None:
        """The rows of [data] test; None without it."""
        test = self.problem.test
        return None if test is None else test.read(0, test.n_samples)

    def value(self, x: Vector) -> float:
        """f(x), x (d,)."""
        return added(f.value_and_gradient(x)[0] for f in self.f_i) / len(self.f_i)

    def gradient(self, x: Vector) -> Vector:
        """∇f(x) as a new array (d,)."""
        total = np.zeros(self.dim)
        for f in self.f_i:
            total += f.value_and_gradient(x)[1]
        return total / len(self.f_i)


def problem(job: Job | Run | Mapping[str, Any] | str | Path, only: Choice = None, with_plugins: bool = False) -> Functions:
    """The problem of a job's first run, in this process.

    Args:
        job: a job, or what `load_job` takes; or a result, whose problem it is.
        only: the label of a run, where runs have several problems.
        with_plugins: import the plugins that a result names.

    Raises:
        UserError: as `load_job`; data that cannot be read; a result that names plugins, without `with_plugins`.
    """
    job, tuned = (_written(job, with_plugins), job.tuned) if isinstance(job, Run) else (job, None)
    spec = (job.only(only) if isinstance(job, Job) else load_job(job, only=only)).runs[0].as_played(tuned)
    data, n = open_data(*spec.source), spec.workers.count
    of_run = problem_of(spec, data, quiet=True, each=True)
    each = of_run.smoothness.each if of_run.smoothness.source == "computed" else None
    return Functions(of_run, [*of_run.objectives(n)], start_of(spec, of_run), each)


def _written(run: Run, with_plugins: bool) -> dict[str, Any]:
    """The tables of a result's run: nobody knows whose they are, so plugins that they name are imported only if that is asked."""
    if (names := run.written.get("plugins")) and not with_plugins:
        raise UserError(f"{run.file} names plugins, {', '.join(map(str, names))}; --with-plugins (with_plugins=True) imports them")
    return run.written


def with_suboptimality(
    runs: Iterable[Run], of_jobs: Iterable[RunSpec] = (), quiet: bool = True, with_plugins: bool = False
) -> Runs:
    """The results, each with f* and the column `suboptimality` where they were left out; the files stay as they are.

    Where f* cannot be computed, as without the data, a line says so, and the result is as it was.

    Args:
        of_jobs: the runs of the jobs that the results belong to; of others, files that they name are looked for here.
        with_plugins: import the plugins that those others name.
    """
    specs, problems, found = list(of_jobs), dict[str, Problem](), Runs()
    for run in runs:
        found.append(run)
        if run.attrs.get("f_star_source") != LEFT_OUT:
            continue
        try:
            of_job = next((spec for spec in specs if spec.run_id == run.attrs["run_id"]), None)
            spec = of_job or load_job(_written(run, with_plugins)).runs[0]
            spec = replace(spec.as_played(run.tuned), asked=frozenset(["suboptimality"]))
            if (key := key_of(spec)) not in problems:
                problems[key] = problem_of(spec, open_data(*spec.source), quiet)
        except UserError as error:
            print_line(f"{run.label}: f* cannot be computed: {error}")
            continue
        p = problems[key]
        known = {"f_star": p.f_star, "f_star_accuracy": p.f_star_accuracy, "f_star_source": p.f_star_source}
        is_whole = "loss" in run.trace and "evaluate" not in run.attrs  # a sample of the rows says nothing about the gap
        gap = {"suboptimality": run.trace["loss"] - p.f_star} if is_whole else {}
        found[-1] = replace(run, attrs={**run.attrs, **known}, trace={**run.trace, **gap})
    return found
