import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from mpi_compress.algorithms.averaging import Average, IterateMean
from mpi_compress.algorithms.base import Algorithm, algorithms
from mpi_compress.algorithms.descent import check_descent, descend, take_in
from mpi_compress.algorithms.sampling import Sampling
from mpi_compress.algorithms.sent_variance import SentVariance, measured, variance_columns, variance_logs
from mpi_compress.algorithms.steps import Step
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Link, Message, exact
from mpi_compress.problem.objective import Objective


@dataclass
class Node:
    x: Vector  # (d,) iterate
    w: Vector  # (d,) w̃, the reference point
    h: Vector  # (d,) ∇f(w̃), as it was heard
    mean: IterateMean | None  # of the iterates, where it is wanted


@algorithms.register("svrg")
@dataclass(frozen=True)
class SVRG(Algorithm):
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
    step: Step = "0.1/L_row"  # γ; L_row is the largest smoothness of one sample
    batch: int = 8  # rows of B
    sampling: Sampling = "with-replacement"
    regularizer: Literal["worker", "master"] | None = None  # where r sits, if not as [objective] says
    average: Average = "last"  # the point to evaluate: the last one, or a weighted mean of all (HT Theorem 9)
    epoch: int | None = None  # steps between reference points; a pass over the data, if not given
    compress_full: bool = False

    def check(self) -> None:
        check_descent(self, self.average)
        if self.epoch is not None and self.epoch < 1:
            raise ValueError(f"epoch = {self.epoch} must be at least 1 round")

    @cached_property
    def steps(self) -> int:
        """Steps between reference points."""
        return self.epoch or math.ceil(self.setting.numbers["N"] / (self.setting.n * self.batch))

    def is_full(self, k: int) -> bool:
        """True if round k sets the reference point."""
        return k % (self.steps + 1) == 0

    def steps_before(self, k: int) -> int:
        """The rounds before k that were no full rounds: each took a minibatch."""
        return k - k // (self.steps + 1) - 1

    @cached_property
    def whole(self) -> tuple[Link, Link]:
        """The links of a full gradient, up and down."""
        return (self.up, self.down) if self.compress_full else (exact(self.up), exact(self.down))

    def uplink(self, node: Node, k: int) -> Link:
        return self.whole[0] if self.is_full(k) else self.up

    def downlink(self, node: Node, k: int) -> Link:
        return self.whole[1] if self.is_full(k) else self.down

    def start(self, x0: Vector) -> Node:
        return Node(x0.copy(), x0.copy(), np.zeros_like(x0), IterateMean.begun(self.average, x0))

    def start_worker(self, node: Node, f: Objective) -> SentVariance | None:
        return SentVariance.of(self.up)

    def worker_sends(self, node: Node, worker: SentVariance | None, f: Objective, t: Round) -> Message:
        if self.is_full(t.k):
            return self.uplink(node, t.k).pack(f.gradient(node.x), t)
        rows = self.rows(f, t, self.steps_before(t.k))
        g = f.gradient(node.x, rows).copy()
        g -= f.gradient(node.w, rows)
        g += node.h
        return measured(worker, self.up, g, t)

    def master_answers(self, node: Node, master: None, ups: Sequence[Compressed], t: Round) -> Message:
        return self.downlink(node, t.k).pack(self.mean(ups), t)

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        if not self.is_full(t.k):
            descend(self, self.average, node, down, t.k)
            return
        node.w[:] = node.x
        node.h[:] = 0.0
        down.add_to(node.h)
        take_in(self, self.average, node.mean, node.x, t.k + 1)

    def iterate(self, node: Node) -> Vector:
        return node.x if node.mean is None else node.mean.x

    @property
    def logs(self) -> Sequence[str]:
        return variance_logs(self.up)

    def worker_logs(self, worker: SentVariance | None) -> Sequence[float]:
        return worker.numbers if worker else ()

    def trace_logs(self, means: Mapping[str, float], node: Node) -> Mapping[str, float]:
        return variance_columns(means)
