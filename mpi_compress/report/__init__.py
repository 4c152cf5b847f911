"""All jobs on one page: a scorecard of claims, figures to explore, and what the runs took. Written from results alone."""

from mpi_compress.evidence.outcomes import Outcome, job_files, outcomes
from mpi_compress.report.render import TITLE, write
from mpi_compress.report.text import summary, write_gallery, write_table

__all__ = ["TITLE", "Outcome", "job_files", "outcomes", "summary", "write", "write_gallery", "write_table"]
