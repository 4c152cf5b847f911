"""What is said of data before anything else: the set, where it is from, its size, and where that is not what is published."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mpi_compress.core.progress import count_text
from mpi_compress.problem.datasets.known import published_of
from mpi_compress.results.reader import Run
from mpi_compress.results.settings import overridden_of

Size = tuple[int, int, int, int]  # N, d, and how many different labels and nonzeros there are; 0: not known


def line(data: Mapping[str, Any], kind: str, place: object, size: Size | None) -> str:
    """The line of a run's table [data], as it is written: the paper's data or others, in the file `place`, "" for none."""
    shape, differs = f"{size[0]} × {size[1]}" if size else "not read yet", _differs(data, size)
    if size and data.get("generator") == "tridiagonal":
        shape = count_text(size[0], "quadratic")  # each is a row of three numbers, which are no features
    parts = [title_of(data), "other data" if differs else kind, str(place), shape, differs]
    return "data: " + ", ".join(filter(None, dict.fromkeys(parts)))


def line_of(run: Run, with_place: bool = True) -> str:
    """The line of a result's data; "" where it does not say by which job, or on which data, it was made."""
    data, place = run.written.get("data"), run.attrs.get("data_file", "")
    return line(data, run.attrs.get("data_kind", ""), place if with_place else "", _size_of(run)) if data else ""


def captioned(run: Run) -> str:
    """The same for a caption, with µ and the number of workers, and without "other data" where the job names no paper whose data
    they could be."""
    has_paper = run.attrs.get("data_kind") != "other data" or " in place of " in run.attrs["data"]
    data = line_of(run, with_place=False).replace(", other data", ", other data" * has_paper)
    return f"{data}, µ = {run.attrs.get('mu', 0.0):.3g}, {count_text(int(run.attrs['n_workers']), 'worker')}" if data else ""


def elsewhere(run: Run) -> str:
    """What makes a claim that is judged by a result one about other data: another set, or another size; "" for nothing."""
    shown = str(run.attrs.get("data", ""))
    if " in place of " in shown:
        return shown
    return (text := differs(run)) and f"{shown}, {run.attrs['n_samples']} × {run.attrs['dim']}, {text}"


def titles(runs: Sequence[Run], title: str = "") -> list[str]:
    """What the title of a figure says of data that are not the job's and not named in it, not the paper's, or not as published: a
    line for each set."""
    each = [elsewhere(run) or in_place(run) * (str(run.attrs["data"]) not in title) for run in runs]
    return [f"on {text}".replace("differs from", "not") for text in dict.fromkeys(each) if text]


def in_place(run: Run) -> str:
    """The set of a run whose data are set from outside, as by --set; "" for the job's own."""
    is_other = {"data", "data.name", "data.path", "data.generator"} & overridden_of(run).keys()
    return f"{run.attrs['data']} in place of the job's data" if is_other else ""


def differs(run: Run, after: str = "") -> str:
    """That a result's data are not what is published of their name, after some words; these alone where they are."""
    known = "data" in run.written and "n_samples" in run.attrs
    return ", ".join(filter(None, [after, _differs(run.written["data"], _size_of(run)) if known else ""]))


def _size_of(run: Run) -> Size:
    labels = run.split.get("labels", ()) if "positive" not in run.written["data"] else ()  # which makes one of several
    return int(run.attrs["n_samples"]), int(run.attrs["dim"]), len(labels), int(run.attrs.get("nonzeros", 0))


def title_of(data: Mapping[str, Any]) -> str:
    return str(data.get("name") or data.get("generator") or Path(str(data["path"])).name)


def _differs(data: Mapping[str, Any], size: Size | None) -> str:
    known = None if "generator" in data else published_of(title_of(data))
    return known.differs(*size) if known and size else ""
