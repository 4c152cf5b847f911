"""Checks of a part against what it states, for `mpi-compress check-part` and for tests of one's own: `mc.testing.check(part)`."""

from contextlib import suppress
from typing import Any

from mpi_compress.algorithms.product import heard_by
from mpi_compress.algorithms.vocabulary import Algorithm, Downlink, Server, algorithms
from mpi_compress.guard.checks import Subject, everything
from mpi_compress.guard.findings import Finding, NeedsAJob
from mpi_compress.guard.hidden_state import contents
from mpi_compress.guard.of_algorithms import Problem
from mpi_compress.guard.of_data import made_up_view
from mpi_compress.guard.of_functions import made_up_rows
from mpi_compress.guard.of_messages import links_in_runs, usual
from mpi_compress.guard.random_problems import made_up_problem
from mpi_compress.messages.codecs import Codec
from mpi_compress.messages.compressors import Compressor
from mpi_compress.problem.metrics import Metric
from mpi_compress.problem.models import Model
from mpi_compress.problem.rows import Rows

__all__ = ["Finding", "check", "findings"]


def check(part: Any, rows: Rows | None = None) -> list[Finding]:
    """Check a part against what it states.

    Args:
        part: any part but a format, or its class. `mc.verify` compares the rounds of a method on ranks of a job.
        rows: data for a model that made-up rows do not suit.

    Raises:
        AssertionError: something does not hold; a line for each.
    """
    found = findings(part, rows)
    if wrong := [str(each) for each in found if not each.holds]:
        raise AssertionError("\n".join(wrong))
    return found


def findings(part: Any, rows: Rows | None = None, dim: int = 0, codec: Codec | None = None) -> list[Finding]:
    """What checks of a part find by data that are made up for it, at a job's d `dim` and by its `codec`; NeedsAJob if these do not
    suit it."""
    if isinstance(part, type):
        part = usual(part) if issubclass(part, Compressor) else part()
    found = everything(_subject(part, rows, dim, codec))
    if all(each.by in ("memory", "draws") for each in found):
        raise NeedsAJob(f"{getattr(part, 'name', part)}: nothing of it can be checked by itself")
    return found


def _subject(part: Any, rows: Rows | None, dim: int, codec: Codec | None) -> Subject:
    if isinstance(part, Model) and rows is None:
        try:
            part, rows = made_up_rows(part)
        except ValueError as error:
            raise NeedsAJob(f"{part.name}: {error}") from None
    s, gd = Subject(part, rows=rows, dim=dim), algorithms["gd"]
    match part:
        case Compressor():
            with suppress(Exception):  # the check `compress` says why
                s.links = links_in_runs(part, dim, codec)
                s.held = [*s.held, *contents(link.compressor for link in s.links)]
        case Algorithm():
            s.problems = _problems(part)
        case Server():
            s.problems = _problems(gd(server=part, step="0.1/L"))
        case Downlink():
            s.problems = _problems(heard_by(gd(step="0.1/L"), part))
        case Metric():
            s.view = made_up_view()
    return s


def _problems(method: Algorithm) -> list[Problem]:
    return [made_up_problem(method, n) for n in (1, 3)]
