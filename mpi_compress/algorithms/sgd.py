from dataclasses import dataclass

from mpi_compress.algorithms.averaging import IterateMean
from mpi_compress.algorithms.base import algorithms
from mpi_compress.algorithms.sent_variance import MeasuresVariance, SentVariance
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
class SGD(MeasuresVariance):
    """Stochastic gradient descent, compressed without memory: HT Algorithm 1 with e = 0.

    worker sends     C(g_i),   g_i the mean over a minibatch of its shard, weighted n|D_i|/N
    master answers   ĝ = (1/n) Σ C(g_i)
    everyone         x ← x − γ_k (ĝ + ∇r(x)),   r the regulariser where it is not in the f_i

    Where data are sparse and the regulariser is at the master, gradients are sparse vectors, and x is a scalar times a vector; with
    the identity and codec "auto" a round then costs what the minibatch holds, whatever d.

    If some of the workers take part, ĝ is the mean of theirs (Gower et al., ICML 2019), as in gd.
    """

    paper = "HT Algorithm 1, C(p) without e"
    proximal = True
    partial_mean = "over participants"

    def start(self, x0: Vector) -> Node:
        return Node(ScaledVector(x0.copy()), IterateMean.begun(self.average, x0))

    def worker_sends(self, node: Node, worker: SentVariance | None, f: Objective, t: Round) -> Message:
        rows = self.rows(f, t)
        if rows is not None and f.gradients_are_sparse:
            return self.measured(worker, f.sparse_gradient(node.x, rows), t)
        return self.measured(worker, f.gradient(node.x, rows), t)

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        self.descend(node, down, t.k)
