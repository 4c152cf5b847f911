"""CAT's choice outside of its own method: for what other methods compress, such as error feedback, and for one vector alone."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mpi_compress.algorithms.tuning.schemes import ANY_ROUND, SCHEMES, Sparsified, check_budget
from mpi_compress.algorithms.tuning.sizes import DeterministicSizes, SizedLink, sizes_of
from mpi_compress.core.errors import UserError
from mpi_compress.core.streams import Round
from mpi_compress.messages.coders import parts_of
from mpi_compress.messages.costs import CostModel, costs
from mpi_compress.messages.kinds import Sparse, Vector
from mpi_compress.messages.link import ChoosingLink, Link


@dataclass(frozen=True)
class TunedTopK(ChoosingLink):
    """The T largest coordinates, T = argmax α(T)/C(T) of each vector (CAT eq. 10)."""

    scheme: Sparsified

    def compress(self, v: Vector, t: Round) -> Sparse:
        top = self.scheme.chosen(v, t)
        return Sparse(v.size, top, v[top])


def follows_link(method: Any) -> bool:
    """True if a bound method's messages are others on another link: it plans by the cost, as all with budget = "cat" do."""
    return method.plans_by_cost or isinstance(method.up, ChoosingLink) or getattr(method, "budget", None) == "cat"


def tuned(link: Link, cost: CostModel) -> Link:
    """The link with its compressor tuned to each vector p, the most 1 − ‖p − C(p)‖²/‖p‖² for C's cost; or itself, if it is tuned.

    Raises:
        ValueError: the compressor is not top-k without k, and is no contraction with a size; or its cost cannot be planned.
    """
    compressor = link.compressor
    if isinstance(link, TunedTopK | SizedLink):
        return link
    if compressor.name != "top-k":
        scheme = sizes_of(link, cost)
        if not isinstance(scheme, DeterministicSizes):
            raise ValueError(f"budget = \"cat\" tunes a contraction here: '{compressor.name}' is unbiased; use top-k or block-sign")
        return scheme.link
    if getattr(compressor, "k", None) is not None:
        raise ValueError('budget = "cat" sets k itself: leave it out of up.compressor')
    if cost.on_wire and link.planned_wire_bits(1) is None:
        raise ValueError(f'the codec "{link.codec.name}" does not decide the bits by T alone; use "fixed" or "bitmap"')
    smallest = replace(link.compressor, k=1)  # type: ignore[call-arg]  # its δ holds for every T
    return TunedTopK(smallest, link.codec, link.dim, Sparsified(link, cost))


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
