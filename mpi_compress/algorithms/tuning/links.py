"""A link that tunes each message as CAT tunes a gradient's: for methods that compress something else, such as error feedback."""

from dataclasses import dataclass, replace
from typing import Any

from mpi_compress.algorithms.tuning.schemes import Sparsified
from mpi_compress.algorithms.tuning.sizes import DeterministicSizes, SizedLink, sizes_of
from mpi_compress.core.streams import Round
from mpi_compress.messages.costs import CostModel
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
