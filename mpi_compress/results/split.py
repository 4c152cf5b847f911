"""What a split gave each worker, as text."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mpi_compress.core.tables import plain

if TYPE_CHECKING:
    from mpi_compress.results.reader import Run

_WORKERS, _LABELS = 8, 10  # a table shows no more; a line sums up the other workers


def name(run: "Run") -> str:
    """The partition as the job has it, such as "dirichlet, alpha = 0.3"."""
    given: Any = run.written.get("workers", {}).get("partition", "contiguous")
    if isinstance(given, str):
        return given
    settings = {key: value for key, value in given.items() if key != "name"}
    if isinstance(sizes := settings.get("sizes"), list) and len(sizes) > _WORKERS:
        settings["sizes"] = f"{len(sizes)} shares"
    return ", ".join([str(given.get("name")), *(f"{key} = {value}" for key, value in settings.items())])


def summary(run: "Run") -> Iterator[str]:
    """A table of rows and label counts, a line a worker; nothing for one worker, or for a result that does not say."""
    rows = run.split.get("rows")
    if rows is None or rows.size < 2:
        return
    labels, counts = run.split.get("labels", rows[:0]), run.split.get("counts", rows[:, None])
    yield f"  partition {name(run)}: {_from_to(rows)} samples a worker" + (", of each label:" if labels.size else "")
    lines = [["worker", "samples"], *([str(i), str(m)] for i, m in enumerate(rows))]
    if labels.size:
        lines[0] += [*(f"{label:g}" for label in labels[:_LABELS]), "others"]
        for line, own in zip(lines[1:], counts, strict=True):
            line += [*map(str, own[:_LABELS]), str(own[_LABELS:].sum())]
    if 0 < labels.size <= _LABELS:
        lines = [line[:-1] for line in lines]
    shown = _WORKERS if len(rows) <= _WORKERS else _WORKERS - 2
    yield from plain(lines[0], lines[1 : shown + 1], "r", indent=" " * 12)
    if len(rows) > shown:
        yield f"            … and {len(rows) - shown} workers more, of {_from_to(rows[shown:])} samples"


def _from_to(rows: Any) -> str:
    low, high = min(rows), max(rows)
    return f"{low}" if low == high else f"{low} to {high}"
