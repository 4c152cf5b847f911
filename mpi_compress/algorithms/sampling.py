"""Minibatches: which rows of its shard a worker looks at in a round.

The rows are drawn from the worker's batch stream, for many rounds at once, since moving a generator to an address costs more than
drawing a row. Each draw has the address (worker, chapter), a chapter being an epoch or a fixed number of rounds: the rows of a
round do not depend on the compressor, the layout or the rounds run before.
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.streams import Role, Round, Streams

Sampling = Literal["with-replacement", "epoch"]
_DRAWN_AT_ONCE = 1024  # rows; part of the address


def rounds_of_epoch(N: float, n: float, batch: float | None) -> int:
    """The rounds in which the minibatches of a worker have as many rows as its shard, ⌈N/n⌉; 1 for full gradients."""
    return 1 if batch is None else math.ceil(math.ceil(N / n) / batch)


class Batches:
    """The minibatches of the workers hosted here.

    Args:
        batch: rows of a minibatch.
        sampling: "with-replacement": each row uniform over the shard; "epoch": a new permutation of the shard in each epoch, cut
            into batches, the last one with what is left.
    """

    def __init__(self, batch: int, sampling: Sampling):
        self.batch, self.sampling = batch, sampling
        self._drawn: dict[int, tuple[int, NDArray[np.uint64]]] = {}  # worker → chapter and its samples

    def rows(self, size: int, t: Round, number: int | None = None) -> NDArray[np.uint64]:
        """The rows of worker t.who in round t.k, whose shard has `size` rows; `number` as in `Method.rows`."""
        epoch = self.sampling == "epoch"
        rounds = -(-size // self.batch) if epoch else max(1, _DRAWN_AT_ONCE // self.batch)
        chapter, place = divmod(t.k if number is None else number, rounds)
        held = self._drawn.get(t.who)
        if held is None or held[0] != chapter:
            draw = t.batch_at(chapter)
            drawn = draw.permutation(size) if epoch else draw.integers(size, size=rounds * self.batch)
            held = self._drawn[t.who] = chapter, drawn.astype(np.uint64)
        return held[1][place * self.batch : (place + 1) * self.batch]


def participants(streams: Streams, n: int, r: int, k: int) -> frozenset[int]:
    """The workers that take part in round k: the same on every rank, and any r of the n as likely as others."""
    draw = streams.at(Role.PARTICIPATION, 0, k)
    return frozenset(draw.choice(n, r, replace=False, shuffle=False).tolist())


def sampled_delta(δ: float, n: int, r: int) -> float:
    """The δ of "C(v) with probability r/n, else 0", for C contractive with δ.
    E‖v − ·‖² ≤ (r/n)(1 − δ)‖v‖² + (1 − r/n)‖v‖² = (1 − δr/n)‖v‖²."""
    return δ * (r / n)


def sampled_omega(ω: float, n: int, r: int) -> float:
    """The ω of "(n/r) Q(v) if drawn, else 0" in a mean over n workers, for unbiased and independent Q with ω. Of one worker alone
    it is (1+ω)n/r − 1. Two workers are drawn together with probability r(r−1)/(n(n−1)), less than (r/n)²: the variance of the sum
    over workers of their v_i has c Σ_{i≠j} v_i·v_j, too, c = −(n−r)/(r(n−1)), which is at most |c| Σ‖v_i‖²."""
    return ω + (1.0 + ω) * (n / r - 1.0) + (n - r) / (r * max(n - 1, 1))
