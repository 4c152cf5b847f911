"""Checks of a part against what it states, for `mpi-compress check-part` and for tests of one's own: `mc.testing.check(part)`."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from mpi_compress.algorithms import Algorithm, algorithms
from mpi_compress.algorithms.parts import Downlink, Server
from mpi_compress.core import global_draws
from mpi_compress.core.errors import UserError
from mpi_compress.guard import hidden_state
from mpi_compress.guard.findings import IN_A_JOB, Finding, tried
from mpi_compress.guard.of_algorithms import of_algorithm
from mpi_compress.guard.of_data import made_up_view, of_generator, of_metric, of_partition
from mpi_compress.guard.of_functions import made_up_rows, of_loss, of_model, of_penalty
from mpi_compress.guard.of_messages import of_codec, of_compressor, usual
from mpi_compress.guard.of_stops import of_stop
from mpi_compress.job.stops import StopRule
from mpi_compress.messages.codecs import Codec
from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.costs import CostModel
from mpi_compress.messages.costs.base import check_cost
from mpi_compress.problem.datasets.generators import Generator
from mpi_compress.problem.losses import Loss
from mpi_compress.problem.metrics import Metric
from mpi_compress.problem.models import Model
from mpi_compress.problem.partitions import Partition
from mpi_compress.problem.penalties import Penalty
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


def findings(part: Any, rows: Rows | None = None) -> list[Finding]:
    """What checks of a part find, each property once: what is wrong first found, or else what was tried last."""
    if isinstance(part, type):
        part = usual(part) if issubclass(part, Compressor) else part()
    before, drawn = hidden_state.contents([part]), global_draws.states()
    with global_draws.restored():
        found = list(_of(part, rows))
        moved = global_draws.states() != drawn
    said = hidden_state.changed(before)
    found += [Finding("memory", not said, said or "nothing is kept from call to call")]
    found += [Finding("draws", not moved, "come from the global random or np.random" if moved else "none are global")]
    kept: dict[str, Finding] = {}
    for each in found:
        if each.what not in kept or kept[each.what].holds:
            kept[each.what] = each
    return list(kept.values())


def _of(part: Any, rows: Rows | None) -> Iterator[Finding]:
    match part:
        case Compressor():
            yield from of_compressor(part)
        case Codec():
            yield from of_codec(part)
        case CostModel():
            yield from tried("cost", partial(_cost, part))
        case Loss():
            yield from of_loss(part)
        case Penalty():
            yield from of_penalty(part)
        case Model():
            yield from of_model(*((part, rows) if rows is not None else _with_rows(part)))
        case Algorithm():
            yield from of_algorithm(part)
        case Server():
            yield from of_algorithm(algorithms.shipped("gd")(server=part, step="0.1/L"))
        case Downlink():
            yield from of_algorithm(algorithms.shipped("gd")(step="0.1/L").heard_by(part))
        case Partition():
            yield from tried("rows", partial(of_partition, part))
        case Metric():
            yield from of_metric(part, *made_up_view())
        case StopRule():
            yield from tried("answers", partial(of_stop, part))
        case Generator():
            yield from tried("rows", partial(of_generator, part))
        case _:
            raise UserError(f"{getattr(part, 'name', part)}: nothing of it can be checked by itself; {IN_A_JOB}")


def _with_rows(model: Model) -> tuple[Model, Rows]:
    try:
        return made_up_rows(model)
    except ValueError as error:
        raise UserError(f"{model.name}: {error}; {IN_A_JOB}") from None


def _cost(cost: CostModel) -> Iterator[Finding]:
    check_cost(cost)
    yield Finding("cost", True, "a number from 0 on, which does not fall as payloads grow, and the same for numbers and arrays")
