from dataclasses import dataclass
from typing import ClassVar

from mpi_compress.algorithms.base import algorithms
from mpi_compress.algorithms.gd import Node
from mpi_compress.algorithms.measuring import Measuring, Sums
from mpi_compress.core.streams import Round
from mpi_compress.messages.link import Message
from mpi_compress.problem.objective import Objective


@algorithms.register("sgd")
@dataclass(frozen=True)
class SGD(Measuring):
    """Stochastic gradient descent, compressed without memory: HT Algorithm 1 with e = 0.

    worker sends     C(g_i),   g_i the mean over a minibatch of its shard, weighted n|D_i|/N
    master answers   ĝ = (1/n) Σ C(g_i)
    everyone         x ← x − γ_k (ĝ + ∇r(x)),   r the regulariser where it is not in the f_i

    Where data are sparse and the regulariser is at the master, gradients are held as what they touch, and x as a scalar times a
    vector; with the identity and codec "auto" a round then costs what the minibatch touches, whatever d.
    """

    paper = "HT Algorithm 1, C(p) without e"
    lazy: ClassVar[bool] = True

    def worker_sends(self, node: Node, worker: Sums | None, f: Objective, t: Round) -> Message:
        rows = self.rows(f, t)
        if rows is None:
            return self.pack(self.up, worker, f.gradient(node.x), t)
        g = f.sparse_gradient(node.x, rows, node.scale) if f.touches_little else f.gradient(node.x, rows, node.scale)
        return self.pack(self.up, worker, g, t)
