"""Minibatches: which rows of its shard a worker looks at in a round.

The rows are drawn from the worker's batch stream, for many rounds at once, since moving a generator to an address costs more than
drawing a row. Each draw has the address (worker, chapter), a chapter being an epoch or a fixed number of rounds: the rows of a
round do not depend on the compressor, the layout or the rounds played before.
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.streams import Round

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
        self._drawn: dict[int, tuple[int, NDArray[np.uint64]]] = {}  # worker → chapter and its rows

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
