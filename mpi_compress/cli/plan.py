"""`mpi-compress plan JOB…`"""

import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import which

from mpi_compress.cli.parsing import load_all
from mpi_compress.cluster.submission import statuses
from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import print_line
from mpi_compress.core.tables import plain, shown
from mpi_compress.core.terminal import say
from mpi_compress.evidence.lines import with_seeds
from mpi_compress.job.loading import Job
from mpi_compress.job.runs import RunSpec
from mpi_compress.planning.estimates import suggestion, trial_files
from mpi_compress.preparing import memory_needs
from mpi_compress.preparing.needs import refuse_runs
from mpi_compress.preparing.shapes import Shapes, said_of
from mpi_compress.results.status import State

_HEADS = ["index", "label", "run id", "memory", "state"]


def act(options: Namespace) -> int:
    jobs, shapes, refused = load_all(options.jobs, options, options.index), Shapes(), []
    for file, job in jobs.items():
        if len(jobs) > 1:
            print(f"{file}:")
        refused.append((_tell(job, options, shapes), job.runs))
    for those, of_job in refused:
        refuse_runs(those, of_job)
    for job in [] if options.force else jobs.values():
        here = [spec for spec in job.runs if not spec.missing]
        memory_needs.refuse_what_fits_nowhere(replace(job, runs=here), options.ranks, shapes)
    return 0


def _tell(job: Job, options: Namespace, shapes: Shapes) -> list[RunSpec]:
    """Print the states of a job's runs; those that would be refused."""
    rows, left, refused = list[list[str]](), list[RunSpec](), list[RunSpec]()
    labels = with_seeds([spec.label for spec in job.runs], [spec.seed for spec in job.runs])
    found = list(statuses(job, Path(options.out), shapes))
    for spec, label, status in zip(job.runs, labels, found, strict=True):
        run_id, memory = "–", "–"
        if not spec.missing:
            memory = memory_needs.text(spec, options.ranks, shapes) if options.ranks else memory_needs.short_text(spec, shapes)
            run_id = spec.run_id
            left += [] if status.state.has_ended else [spec]
        elif any(spec.missing in row[4] for row in rows):  # is said already
            status = replace(status, reason="")
        refused += [spec] if status.state is State.REFUSED or (spec.missing and spec.data.path is not None) else []
        rows.append([str(spec.index), label, run_id, memory, str(status)])
    heads, *rows = (row[:3] + row[4:] + row[3:4] if options.ranks else row for row in [_HEADS, *rows])  # then it is a sentence
    table = plain(heads, rows, "rlcl") if options.ranks else shown(sys.stdout, heads, rows, ("memory", "run id"), "rlcrl")
    say(*said_of(job.runs), *table)
    if any(row[3] == memory_needs.UNKNOWN for row in rows):
        say(f"{memory_needs.UNKNOWN}: not known before the data are parsed, which `mpi-compress run` does first")
    for spec in {str(spec.data): spec for spec in job.runs if not spec.missing}.values():
        if line := memory_needs.from_disk(spec, shapes.of(spec), options.ranks or 1, range(options.ranks or 1)):
            say(line)
    if first := trial_files(replace(job, runs=left), Path(options.out)):
        done = sum(file.exists() for file in first)
        print(f"before them: {len(first)} trials of [tune] in the first stage, {done} of them done")
    if asked := suggestion(replace(job, runs=left), Path(options.out), which("sbatch") is not None):
        say(asked)
    _warn_of_what_is_missing(left)
    counts = Counter(status.state for status in found)
    if len(found) > 1:
        others = [f", {counts[state]} {state.planned}" for state in State if state is not State.COMPLETE and counts[state]]
        print(f"{counts[State.COMPLETE]} of {len(found)} runs done{''.join(others)}")
    return refused


def _warn_of_what_is_missing(runs: Sequence[RunSpec]) -> None:
    missing: dict[str, str] = {}
    for spec in runs:
        try:
            _ = spec.loss.provenance
        except UserError as error:
            missing.setdefault(str(error), spec.where)
    for text, where in missing.items():
        print_line(f"mpi-compress: {where}{text}")
