"""CAT's choice for one vector and one cost, without a run."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mpi_compress.algorithms.tuning.schemes import ANY_ROUND, SCHEMES, check_budget
from mpi_compress.algorithms.tuning.sizes import sizes_of
from mpi_compress.core.errors import UserError
from mpi_compress.messages.coders import parts_of
from mpi_compress.messages.costs import costs
from mpi_compress.messages.link import Link


def best_size(compressor: str | Mapping[str, Any], v: Any, cost: str | Mapping[str, Any] = "payload", codec: Any = None) -> int:
    """The T, or the size, of the most improvement of a vector v (d,) for the cost of its message (CAT eq. 8 and 10).

    Args:
        compressor: a compressor that CAT tunes, such as "top-k", "sq" or "block-sign", without its size.
        cost: a cost model with its parameters, as [cost] has them: {"model": "packet", "c1": "576 B", …}.
        codec: as a job names it; None: the one that the compressor's paper counts.

    Raises:
        UserError: the compressor has no size to tune, or the cost cannot be planned for.
    """
    table = {"model": cost} if isinstance(cost, str) else dict(cost)
    model = costs.build({"name" if key == "model" else key: value for key, value in table.items()}, "cost")
    part, written = parts_of(compressor, codec, "best_size")
    g = np.ascontiguousarray(v, dtype=np.float64)
    link = Link(part, written, g.size)
    try:
        check_budget(link, model, "cat")
        if part.name in SCHEMES:
            return int(SCHEMES[part.name].of(link, model, "cat", 1).chosen(g, ANY_ROUND).size)
        return sizes_of(link, model).message(g, ANY_ROUND)[0]
    except ValueError as error:
        raise UserError(f"best_size: {error}") from None
