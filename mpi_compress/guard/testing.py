"""Checks of a part against what it states, for `mpi-compress check-part` and for tests of one's own: `mc.testing.check(part)`."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from mpi_compress.core import global_draws
from mpi_compress.core.errors import UserError
from mpi_compress.guard import hidden_state
from mpi_compress.guard.findings import Finding, tried
from mpi_compress.guard.of_functions import made_up_rows, of_loss, of_model, of_penalty
from mpi_compress.guard.of_messages import of_codec, of_compressor, usual
from mpi_compress.messages.codecs import Codec
from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.costs import CostModel
from mpi_compress.messages.costs.base import check_cost
from mpi_compress.problem.losses import Loss
from mpi_compress.problem.models import Model
from mpi_compress.problem.penalties import Penalty
from mpi_compress.problem.rows import Rows

__all__ = ["Finding", "check", "findings"]


def check(part: Any, rows: Rows | None = None) -> list[Finding]:
    """Check a part against what it states.

    Args:
        part: a compressor, codec, cost model, loss, penalty or model, or its class. A method is checked in a job: `mc.verify`.
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


def states_something(part: Any) -> bool:
    """True for a part that can be checked by itself."""
    return isinstance(part, Compressor | Codec | CostModel | Loss | Penalty | Model)


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
            yield from of_model(*((part, rows) if rows is not None else made_up_rows(part)))
        case _:
            raise UserError(f"{getattr(part, 'name', part)}: states nothing that is checked by itself; run JOB --verify plays it")


def _cost(cost: CostModel) -> Iterator[Finding]:
    check_cost(cost)
    yield Finding("cost", True, "a number from 0 on, which does not fall as payloads grow, and the same for numbers and arrays")
