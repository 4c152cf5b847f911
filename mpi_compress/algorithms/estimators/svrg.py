from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mpi_compress.algorithms.estimators.sgd import SGD, SentVariance
from mpi_compress.algorithms.vocabulary import (
    HEARS_MEAN,
    AtLeastOne,
    Batch,
    Compressed,
    Direction,
    Link,
    Round,
    Rounds,
    Shards,
    Step,
    Vector,
    algorithms,
    rounds_of_epoch,
)


@dataclass
class Memory:
    w: Vector  # (d,) w̃, the reference point
    h: Vector  # (d,) ∇f(w̃), as it was heard


@algorithms.register("svrg")
class SVRG(SGD):
    """Stochastic variance-reduced gradients, compressed: GSpar eq. 2 (Johansson and Zhang 2013). With qsgd it is QSVRG.

    One round in epoch + 1 sets the reference point:

        worker sends     ∇f_i(x), exactly, or compressed where `compress_full` says so
        everyone         w̃ ← x;  h ← the mean of what was sent

    and all others take a step:

        worker sends     Q(g_i),   g_i = ∇f_B(x) − ∇f_B(w̃) + h by a minibatch B of its shard
        master answers   ĝ = (1/n) Σ Q(g_i)
        everyone         x ← x − γ (ĝ + ∇r(x)),   r the regulariser where it is not in the f_i
    """

    paper = "GSpar eq. 2"
    scaled = False
    partial_mean = ""
    needs = (HEARS_MEAN,)
    step: Step = "0.1/L_row"  # γ, the step size; L_row is the largest smoothness of one sample
    batch: int = 8  # samples of each worker's minibatch B
    epoch: AtLeastOne | None = None  # rounds between two full gradients; left out: a pass over the data
    compress_full: bool = False  # true: full gradients are compressed, too

    @cached_property
    def steps(self) -> int:
        """Steps between reference points."""
        return self.epoch or rounds_of_epoch(self.setting.numbers["N"], self.setting.n, self.batch)

    def is_full(self, k: int) -> bool:
        """True if round k sets the reference point."""
        return k % (self.steps + 1) == 0

    def steps_before(self, k: int) -> int:
        """How many rounds before k were not full: each took a minibatch."""
        return k - k // (self.steps + 1) - 1

    def in_round(self, link: Link, k: int) -> Link:
        """A link in round k: full gradients are sent exactly, unless `compress_full` says otherwise."""
        return link.exact if self.is_full(k) and not self.compress_full else link

    def uplink(self, node: Any, k: int) -> Link:
        return self.in_round(self.up, k)

    def downlink(self, node: Any, k: int) -> Link:
        return self.in_round(self.down, k)

    def start_memory(self, x0: Vector) -> Memory:
        return Memory(x0.copy(), np.zeros_like(x0))

    def workers_send(self, node: Any, w: SentVariance | None, fs: Shards, t: Rounds) -> Batch:
        if self.is_full(t.k):
            return self.uplink(node, t.k).pack(fs.gradients(node.x), t)
        rows = self.rows(fs, t, self.steps_before(t.k))
        g = fs.gradients(node.x, rows).copy()
        g -= fs.gradients(node.memory.w, rows)
        g += node.memory.h
        return self.measured(w, g, t)

    def estimate(self, node: Any, memory: Memory, mean: Compressed, t: Round) -> Direction | None:
        if not self.is_full(t.k):
            return (mean,)
        memory.w[:] = node.x
        memory.h[:] = 0.0
        mean.add_to(memory.h)
        return None
