"""All jobs on one page: a scorecard of claims, every figure to be explored, and what it took. Written from results alone."""

from mpi_compress.page.outcomes import Outcome, job_files, outcomes
from mpi_compress.page.render import write

__all__ = ["Outcome", "job_files", "outcomes", "write"]
