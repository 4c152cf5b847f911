"""What results say of their data."""

from mpi_compress.problem.datasets import said
from mpi_compress.results.reader import Run


def size_of(run: Run) -> said.Size:
    """N, d, and the number of labels, unless some of them count as one."""
    labels = run.split.get("labels", ()) if "positive" not in run.written["data"] else ()
    return int(run.attrs["n_samples"]), int(run.attrs["dim"]), len(labels)


def line_of(run: Run) -> str:
    """The line that says which data a result has; "" where it does not say by which job it was made."""
    return "" if "job" not in run.attrs else said.line(run.written["data"], run.attrs.get("data_file", ""), size_of(run))


def elsewhere(run: Run) -> str:
    """What makes a claim that is judged by this result one about other data; ""."""
    return said.elsewhere(run.written["data"], size_of(run)) if "job" in run.attrs else ""
