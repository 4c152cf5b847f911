"""Plays a job, and says what its sentences come to."""

from dataclasses import replace
from pathlib import Path

import mpi_compress as mc
from mpi_compress.evidence.outcomes import Outcome
from mpi_compress.evidence.sentences import scorecard
from mpi_compress.evidence.verdicts import answerable, check
from mpi_compress.job.loading import load_job


def sentences(file, short=None, only=(), out="results"):
    """The verdict on each sentence of a job by its text, of those that are about the runs of `only` alone."""
    job = load_job(Path(file), short, list(only) or None)
    job = replace(job, claims=answerable(job))
    found = Outcome(Path(file), job.name, "", job, verdicts=check(job, mc.run(job, out=out, quiet=True)))
    return {sentence.text: sentence.verdict for group in scorecard([found]).values() for sentence in group}
