from dataclasses import dataclass

import numpy as np

from mpi_compress.algorithms import dasha
from mpi_compress.algorithms.base import algorithms, check_share
from mpi_compress.algorithms.sampling import Sampling
from mpi_compress.core.expressions import Expression
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.problem.objective import Objective


@dataclass
class Node(dasha.NodeWithBefore):
    full: bool = True  # True: this round takes full gradients; the coin is tossed alike by all, and costs no bits
    batches: int = 0  # minibatches so far


@algorithms.register("dasha-page")
@dataclass(frozen=True)
class DASHAPAGE(dasha.WithBefore):
    """DASHA with PAGE's estimates, for finite sums: Tyurin, Richtárik (ICLR 2023). Round 0 is full; messages are DASHA's.

    worker           h_i⁺ ← ∇f_i(x) in a full round, else h_i + ∇f_i(x; B) − ∇f_i(x⁻; B)
    everyone         the next round is full with probability p

    Theorem: with a = 1/(2ω + 1), p = B/(m + B), B rows of the m = N/n that a worker has, and ℓ the smoothness of one sample,
    1/γ ≥ L + √((48ω(2ω + 1)/n) ((1−p)ℓ²/B + L̃²) + 2(1−p)ℓ²/(pnB)): the defaults. a and p are those of
    the authors' code; the constants of γ were not checked against the paper.
    """

    paper = "DASHA-PAGE"
    theory = "1/(L + sqrt(48*omega*(2*omega + 1)/n*((1 - p)*L_row**2/batch + L_rms**2) + 2*(1 - p)*L_row**2/(p*n*batch)))"
    batch: int = 1  # B, rows of each worker's minibatch
    sampling: Sampling = "with-replacement"  # rows drawn uniformly over the shard, or from a new permutation in each epoch
    p: Expression = "batch/(N/n + batch)"  # p, the probability of a round with full gradients

    def check(self) -> None:
        super().check()
        check_share(self, "p")

    def start(self, x0: Vector) -> Node:
        return Node(x0.copy(), np.zeros_like(x0), x0.copy())

    def estimate(self, node: Node, worker: dasha.Worker, f: Objective, t: Round) -> Vector:
        if node.full:
            return f.gradient(node.x).copy()
        rows = self.rows(f, t, node.batches)
        h = worker.h + f.gradient(node.x, rows)
        h -= f.gradient(node.before, rows)
        return h

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        super().all_hear(node, down, t)
        node.batches += not node.full
        node.full = bool(t.shared.random() < float(self.p))
