"""Records that a job claims, beside what its runs took when they were played again."""

from collections.abc import Iterator, Sequence

import numpy as np

from mpi_compress.job.loading import Job
from mpi_compress.job.records import Record
from mpi_compress.results.reader import Run


def check(job: Job, runs: Sequence[Run]) -> Iterator[tuple[bool, str]]:
    """For each number of each record of these runs whether they need no more, and a line that says so.

    Of several seeds the median counts.
    """
    for record in job.records:
        those = [run for run in runs if run.label == record.run]
        for column, claimed in record.claimed.items() if those else ():
            played = took(those, record, column)
            if played == np.inf:
                yield False, f"{_name(record)}: {claimed:,} {column} claimed; not reached: does not hold"
            else:
                verdict = "equal" if played == claimed else "fewer" if played < claimed else "more: does not hold"
                yield played <= claimed, f"{_name(record)}: {claimed:,} {column} claimed, {played:,.0f} played: {verdict}"


def took(runs: Sequence[Run], record: Record, column: str) -> float:
    """What the runs of a record, one a seed, took to its level: the median; infinite where half of them do not reach it."""
    rows = [record.target.row_of(run) for run in runs]
    return float(np.median([np.inf if row is None else run.column(column)[row] for run, row in zip(runs, rows, strict=True)]))


def _name(record: Record) -> str:
    return f"{record.run}, {record.target}"
