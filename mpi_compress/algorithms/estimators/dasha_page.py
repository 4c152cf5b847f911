from dataclasses import dataclass
from typing import Any

from mpi_compress.algorithms.contract import algorithms
from mpi_compress.algorithms.estimators.dasha import DASHA, Worker
from mpi_compress.algorithms.sampling import Sampling
from mpi_compress.core.expressions import Expression
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.objective import Objective


@algorithms.register("dasha-page")
@dataclass(frozen=True)
class DASHAPAGE(DASHA):
    """DASHA with PAGE's estimates, for finite sums: Tyurin, Richtárik (ICLR 2023). Round 0 is full; messages are DASHA's.

    worker           h_i⁺ ← ∇f_i(x) in a full round, else h_i + ∇f_i(x; B) − ∇f_i(x⁻; B)
    everyone         the next round is full with probability p

    Theorem: with a = 1/(2ω + 1), p = B/(m + B), B rows of the m = N/n that a worker has, and ℓ the smoothness of one sample,
    1/γ ≥ L + √((48ω(2ω + 1)/n) ((1−p)ℓ²/B + L̃²) + 2(1−p)ℓ²/(pnB)): the defaults. a and p are those of
    the authors' code; the constants of γ were not checked against the paper.
    """

    paper = "DASHA-PAGE"
    shares = ("a", "p")
    looks_back = True
    theory = "1/(L + sqrt(48*omega*(2*omega + 1)/n*((1 - p)*L_row**2/batch + L_rms**2) + 2*(1 - p)*L_row**2/(p*n*batch)))"
    batch: int = 1  # B, rows of each worker's minibatch
    sampling: Sampling = "with-replacement"  # rows drawn uniformly over the shard, or from a new permutation in each epoch
    p: Expression = "batch/(N/n + batch)"  # p, the probability of a round with full gradients

    def tracked(self, node: Any, worker: Worker, f: Objective, t: Round) -> Vector:
        if node.known.full:
            return f.gradient(node.x).copy()
        rows = self.rows(f, t, node.known.batches)
        h = worker.h + f.gradient(node.x, rows)
        h -= f.gradient(node.known.before, rows)
        return h

    def next_round(self, node: Any, t: Round) -> None:
        super().next_round(node, t)
        node.known.batches += not node.known.full
        node.known.full = bool(t.shared.random() < float(self.p))
