import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.algorithms import gd
from mpi_compress.algorithms.base import algorithms
from mpi_compress.algorithms.measuring import Measuring, Sums
from mpi_compress.algorithms.steps import Step
from mpi_compress.core.streams import Round
from mpi_compress.messages.codecs.dense import DenseFloats
from mpi_compress.messages.compressors.identity import Identity
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Link, Message
from mpi_compress.problem.objective import Objective


@dataclass
class Node(gd.Node):
    w: Vector = field(default_factory=lambda: np.empty(0))  # (d,) w̃, the reference point
    h: Vector = field(default_factory=lambda: np.empty(0))  # (d,) ∇f(w̃), as it was heard


@algorithms.register("svrg")
@dataclass(frozen=True)
class SVRG(Measuring):
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
    epoch: int | None = None  # steps between reference points; a pass over the data, if not given
    compress_full: bool = False

    def check(self) -> None:
        super().check()
        if self.epoch is not None and self.epoch < 1:
            raise ValueError(f"epoch = {self.epoch} must be at least 1 round")

    @cached_property
    def steps(self) -> int:
        """Steps between reference points."""
        return self.epoch or math.ceil(self.setting.numbers["N"] / (self.setting.n * self.batch))

    def is_full(self, k: int) -> bool:
        """Whether round k sets the reference point."""
        return k % (self.steps + 1) == 0

    def rows(self, f: Objective, t: Round) -> NDArray[np.uint64]:
        step = t.k - t.k // (self.steps + 1) - 1
        return self.batches.rows(len(f.rows), t, step)  # type: ignore[union-attr]

    @cached_property
    def whole(self) -> tuple[Link, Link]:
        """The links of a full gradient, up and down."""
        return (self.up, self.down) if self.compress_full else (exact(self.up), exact(self.down))

    def uplink(self, node: Node, k: int) -> Link:
        return self.whole[0] if self.is_full(k) else self.up

    def downlink(self, node: Node, k: int) -> Link:
        return self.whole[1] if self.is_full(k) else self.down

    def start(self, x0: Vector) -> Node:
        return self.averaged(Node(x0.copy(), w=x0.copy(), h=np.zeros_like(x0)))  # type: ignore[return-value]

    def gradient(self, node: Node, f: Objective, t: Round) -> Vector:
        """g_i, a new array."""
        rows = self.rows(f, t)
        g = f.gradient(node.x, rows).copy()
        g -= f.gradient(node.w, rows)
        g += node.h
        return g

    def worker_sends(self, node: Node, worker: Sums | None, f: Objective, t: Round) -> Message:  # type: ignore[override]
        if self.is_full(t.k):
            return self.uplink(node, t.k).pack(f.gradient(node.x), t)
        return self.pack(self.up, worker, self.gradient(node, f, t), t)

    def master_answers(self, node: Node, master: Any, ups: Sequence[Compressed], t: Round) -> Message:  # type: ignore[override]
        return self.downlink(node, t.k).pack(self.mean(ups), t)

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:  # type: ignore[override]
        if not self.is_full(t.k):
            super().all_hear(node, down, t)
            return
        node.w[:] = node.x
        node.h[:] = 0.0
        down.add_to(node.h)
        self.averaged(node, t.k + 1)


def exact(link: Link) -> Link:
    """A link, or where it loses something one of all coordinates in the same floats."""
    return link if link.compressor.omega(link.dim) == 0.0 else Link(Identity(), DenseFloats(link.codec.float), link.dim)
