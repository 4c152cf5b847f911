from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mpi_compress.algorithms.averaging import Average, IterateMean
from mpi_compress.algorithms.base import Algorithm, algorithms
from mpi_compress.algorithms.descent import check_descent, kept_by_regulariser, take_in
from mpi_compress.algorithms.sampling import Sampling
from mpi_compress.algorithms.sent_variance import SentVariance, measured, variance_columns, variance_logs
from mpi_compress.algorithms.steps import Step
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Message
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.scaled_vector import ScaledVector


@dataclass
class Node:
    x: ScaledVector  # (d,) iterate
    mean: IterateMean | None  # of the iterates, where it is wanted


@algorithms.register("sgd")
@dataclass(frozen=True)
class SGD(Algorithm):
    """Stochastic gradient descent, compressed without memory: HT Algorithm 1 with e = 0.

    worker sends     C(g_i),   g_i the mean over a minibatch of its shard, weighted n|D_i|/N
    master answers   ĝ = (1/n) Σ C(g_i)
    everyone         x ← x − γ_k (ĝ + ∇r(x)),   r the regulariser where it is not in the f_i

    Where data are sparse and the regulariser is at the master, gradients are sparse vectors, and x is a scalar times a vector; with
    the identity and codec "auto" a round then costs what the minibatch holds, whatever d.
    """

    paper = "HT Algorithm 1, C(p) without e"
    step: Step = "1/L"  # γ
    batch: int | None = None  # rows of a minibatch; None: the full gradient
    sampling: Sampling = "with-replacement"
    regularizer: Literal["worker", "master"] | None = None  # where r sits, if not as [objective] says
    average: Average = "last"  # the point to evaluate: the last one, or a weighted mean of all (HT Theorem 9)

    def check(self) -> None:
        check_descent(self, self.average)

    def start(self, x0: Vector) -> Node:
        return Node(ScaledVector(x0.copy()), IterateMean.begun(self.average, x0))

    def start_worker(self, node: Node, f: Objective) -> SentVariance | None:
        return SentVariance.of(self.up)

    def worker_sends(self, node: Node, worker: SentVariance | None, f: Objective, t: Round) -> Message:
        rows = self.rows(f, t)
        if rows is not None and f.gradients_are_sparse:
            return measured(worker, self.up, f.sparse_gradient(node.x, rows), t)
        return measured(worker, self.up, f.gradient(node.x, rows), t)

    def master_answers(self, node: Node, master: None, ups: Sequence[Compressed], t: Round) -> Message:
        return self.down.pack(self.mean(ups), t)

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        γ = self.gamma(t.k)
        node.x.shrink(kept_by_regulariser(self, γ), at_once=self.batch is None)
        node.x.add(down, -γ)
        if node.mean is not None:
            take_in(self, self.average, node.mean, node.x.dense(), t.k + 1)

    def iterate(self, node: Node) -> Vector:
        return node.x.dense() if node.mean is None else node.mean.x

    @property
    def logs(self) -> Sequence[str]:
        return variance_logs(self.up)

    def worker_logs(self, worker: SentVariance | None) -> Sequence[float]:
        return worker.numbers if worker else ()

    def trace_logs(self, means: Mapping[str, float], node: Node) -> Mapping[str, float]:
        return variance_columns(means)
