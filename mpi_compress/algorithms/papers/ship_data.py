from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # which loads sparse where it is first used

from mpi_compress.algorithms.vocabulary import (
    LINEAR,
    Algorithm,
    AllSent,
    Batch,
    Compressed,
    Link,
    Message,
    Round,
    Rounds,
    Shards,
    Vector,
    algorithms,
    exact_up,
    silent,
    together,
)
from mpi_compress.messages.samples import Samples, SamplesLink
from mpi_compress.problem.optimum import solved
from mpi_compress.problem.rows import Rows


@dataclass
class Node:
    x: Vector  # (d,) x0, then what the master found


@dataclass
class Master:
    x: Vector  # (d,) what it found


@algorithms.register("ship-data")
@dataclass(frozen=True)
class ShipData(Algorithm):
    """The data are sent, once: what every method has to beat. Its price is that the master sees all samples.

    worker sends     its rows a_j and labels y_j, in an order that packs well, in round 0
    master answers   x, which minimises f on the rows that arrived, by the solver that the loss states; else by L-BFGS or FISTA
    everyone         x

    The run ends there. It is for losses of a margin: their rows say all of f. What goes down has the floats of [down]. With 16 bits
    x comes rounded, and in two more rounds its error, rounded again: with bf16 24 digits in 48 bits.
    """

    needs = (LINEAR, exact_up("ship-data sends samples: leave up.compressor out"))
    proximal = True

    def uplink(self, node: Node, k: int) -> Link:
        return SamplesLink(self.up.compressor, self.up.codec, self.up.dim)

    def downlink(self, node: Node, k: int) -> Link:
        return self.down

    def start(self, x0: Vector) -> Node:
        return Node(x0.copy())

    @property
    def rounds(self) -> int:
        """Answers that take fewer bits than x in floats of 64; one at least."""
        return max(1, 63 // self.down.codec.float_format.bits)

    def start_master(self, node: Node) -> Master | None:
        return Master(np.zeros_like(node.x)) if self.rounds > 1 else None

    def workers_send(self, node: Node, w: None, fs: Shards, t: Rounds) -> Batch:
        if t.k >= self.rounds:
            rounded = f", in {t.k} floats of 16 bits" if self.rounds > 1 else ""
            raise AllSent(f"the samples were all sent in round 0, and x is what the master found{rounded}")
        if t.k:
            return silent(len(fs))
        return together([self.uplink(node, t.k).encode(samples_of(f.rows)) for f in fs])

    def master_answers(self, node: Node, master: Master | None, ups: Any, t: Round) -> Message:
        if master is not None and t.k:
            return self.down.pack(master.x - node.x, t)
        setting = self.setting
        assert setting.whole is not None
        r = setting.penalty_apart
        f = setting.whole(rows_of([each for each in ups if isinstance(each, Samples)]))
        x = solved(f, node.x, None if r is None or r.smooth else r)
        if master is not None:
            master.x[:] = x
        return self.down.pack(x, t)

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        node.x = node.x + down.dense() if t.k else down.dense()


def samples_of(rows: Rows) -> Samples:
    """A shard's rows, without the zeros among their values."""
    if len(rows.matrix) == 3:
        indptr, indices, values = rows.matrix
        held = scipy.sparse.csr_array((values, indices, indptr.astype(np.int64)), (len(rows), rows.dim), copy=True)
        held.eliminate_zeros()
    else:
        held = scipy.sparse.csr_array(rows.matrix[0])
    return Samples(rows.dim, np.diff(held.indptr), held.indices.astype(np.uint32), held.data.astype(np.float64), rows.labels)


def rows_of(shards: Sequence[Samples]) -> Rows:
    """The rows of all shards, in worker order."""
    lengths = np.concatenate([[0], *(each.lengths for each in shards)])
    columns: list[Any] = [np.concatenate([getattr(each, name) for each in shards]) for name in ("indices", "values", "labels")]
    return Rows((np.cumsum(lengths).astype(np.uint64), *columns[:2]), columns[2], shards[0].dim)
