"""Answers in floats of fewer than 64 bits, of methods whose nodes add them up."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed, Pair, Sparse, Vector
from mpi_compress.messages.link import Link, Message


@dataclass
class Rest:
    """What rounding left of the master's answers, which it adds to later ones. e starts at 0.

    master answers   v ← mean + e;  q ← v as it is rounded;  e ← v − q,   at the coordinates that the mean has

    So Σ q + e = Σ mean at every round: what nodes have added up is wrong by the last rounding of each coordinate, which vanishes as
    the means do. Plain rounding would leave all of them. Of a pair nodes add up the second vector, and the first is rounded alone.
    """

    e: Vector  # (d,) Σ weight · (mean − q)

    def pack(self, link: Link, mean: Compressed, t: Round, weight: float = 1.0) -> Message:
        """The message of a mean that nodes multiply by `weight` before they add it."""
        added = mean.second if isinstance(mean, Pair) else mean
        added.add_to(self.e, weight)
        sparse = added.sparse()
        v = self.e / weight if sparse is None else Sparse(sparse.dim, sparse.indices, self.e[sparse.indices] / weight)
        message = link.encode(Pair(mean.first, link.parts[1].compressed(v, t))) if isinstance(mean, Pair) else link.pack(v, t)
        heard = link.unpack(message)
        (heard.second if isinstance(heard, Pair) else heard).add_to(self.e, -weight)
        return message


def rest_of(method: Any) -> Rest | None:
    """What rounding left of a bound method's answers before round 0; None where nothing is to be kept."""
    return Rest(np.zeros(method.setting.dim)) if method.keeps_rest and method.down.codec.float != 64 else None


def packed(rest: Rest | None, link: Link, mean: Compressed, t: Round, weight: float = 1.0) -> Message:
    """The master's message of a mean; without a rest as it is."""
    return link.pack(mean, t) if rest is None else rest.pack(link, mean, t, weight)
