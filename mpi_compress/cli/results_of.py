"""Results by what a command is given: job files, or result files."""

import shlex
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpi_compress.cli.parsing import load_one
from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import print_line

if TYPE_CHECKING:
    from mpi_compress.results.reader import Run


def found(what: Sequence[str], options: Namespace) -> "list[Run]":
    """The results of jobs, or those in files; --set, --only and --full are about jobs. What has no result is one line on stderr.

    Raises:
        UserError: there are none, or both kinds are given.
    """
    from mpi_compress.figures.outcomes import readable, readable_results_of
    from mpi_compress.results.files import part_of, result_file

    jobs = [name for name in what if name.endswith(".toml")]
    if not jobs:
        if options.set or options.only or options.full:
            raise UserError(f"{shlex.join(what)}: --set, --only and --full are about a job, and results were given")
        return readable([Path(name) for name in what])
    if len(jobs) < len(what):
        raise UserError(f"{shlex.join(what)}: jobs are wanted, or results, not both")
    runs: list[Run] = []
    for file in jobs:
        job = load_one(file, options)
        runs += readable_results_of(job, Path(options.out))
        files = [result_file(job.name, spec.label, spec.run_id, Path(options.out)) for spec in job.runs]
        if missing := sum(not (f.exists() or part_of(f).exists()) for f in files):
            n = len(files)
            print_line(f"mpi-compress: {file}: {missing} of {n} runs have no result; `mpi-compress plan` lists them")
    return runs


def warn_of_mixtures(runs: "Sequence[Run]") -> None:
    """One line on stderr where results are of several data sets, or several are of one run with one seed."""
    sets = list(dict.fromkeys(str(run.attrs.get("data", "")) for run in runs))
    if len(sets) > 1:
        print_line(f"mpi-compress: results of {len(sets)} data sets are compared: {'; '.join(sets)}")
    for run_id, count in Counter(str(run.attrs.get("run_id", "")) for run in runs).items():
        if run_id and count > 1:
            labels = dict.fromkeys(run.label for run in runs if run.attrs.get("run_id") == run_id)
            print_line(f"mpi-compress: {count} results are of one run and seed: {', '.join(labels)} ({run_id})")
