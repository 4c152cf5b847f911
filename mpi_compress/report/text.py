"""Outcomes of jobs as lines of text, and as a table in Markdown."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from mpi_compress.core.errors import UserError
from mpi_compress.figures.outcomes import Outcome

_HEAD = (
    "# Figures and claims",
    "",
    "Written by `mpi-compress report --table` from results, not by hand. *stand-in*: another set takes the place of the paper's;",
    "*generated*: the data are made as the paper, or the job, says. `mpi-compress check JOB` prints a job's claims in full.",
    "",
)


def summary(found: Sequence[Outcome]) -> Iterator[str]:
    """A line for each job, one for each claim that does not hold, and how many claims hold."""
    width = max(len(o.key) for o in found)
    for o in found:
        yield f"{o.key:{width}s}  {o.status}" + (f"; claims: {o.counted}" if o.verdicts else "")
    for o in found:
        for v in o.verdicts:
            if v.holds is False:
                yield f"{o.key}: {v}"
    hold, fail, open_ = (sum(o.count(holds) for o in found) for holds in (True, False, None))
    yield (
        f"{hold} {'claim holds' if hold == 1 else 'claims hold'}, {fail} {'does' if fail == 1 else 'do'} not, "
        f"{open_} {'is' if open_ == 1 else 'are'} not run"
    )


def write_table(found: Sequence[Outcome], target: Path) -> None:
    """Write `table` to a file, whose job column links to the jobs.

    Raises:
        UserError: it cannot be written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(table(found, target.parent), encoding="utf-8")
    except OSError as error:
        raise UserError(f"--table {target}: cannot be written: {error.strerror}") from None


def table(found: Sequence[Outcome], folder: Path = Path()) -> str:
    """Figure, job, data, status and claims as Markdown; links are relative to the folder of the page."""
    lines = [*_HEAD, "| figure | job | data | | status | claims |", "| --- | --- | --- | --- | --- | --- |"]
    for o in found:
        job = f"[{o.key}]({Path(os.path.relpath(o.file, folder)).as_posix()})"
        cells = (o.paper or o.title, job, o.data, o.kind, o.status, o.counted)
        lines.append("| " + " | ".join(" ".join(c.replace("|", "\\|").split()) for c in cells) + " |")
    return "\n".join(lines) + "\n"
