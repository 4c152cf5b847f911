from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpi_compress.algorithms.averaging import IterateMean
from mpi_compress.algorithms.base import algorithms
from mpi_compress.algorithms.descent import Descent
from mpi_compress.algorithms.steps import Step
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Message
from mpi_compress.problem.objective import Objective


@dataclass
class Node:
    x: Vector  # (d,) iterate
    mean: IterateMean | None  # of the iterates, where it is wanted


@dataclass
class Worker:
    e: Vector  # (d,) e_i, what the worker has not sent yet


@dataclass
class Master:
    e: Vector  # (d,) E, what the master has not sent yet


@algorithms.register("double-squeeze")
@dataclass(frozen=True)
class DoubleSqueeze(Descent):
    """DoubleSqueeze: Tang, Lian, Yu, Zhang, Liu (ICML 2019), Algorithm 1: error memory in both directions. All start at 0.

    worker sends     u_i ← ∇f_i(x; ξ) + e_i;  c_i ← C(u_i);  e_i ← u_i − c_i
    master answers   V ← (1/n) Σ c_i + E;  q ← C(V);  E ← V − q
    everyone         x ← x − γ q

    So x − γ (E + (1/n) Σ e_i) is always x_0 − γ Σ (1/n) Σ ∇f_i(x; ξ). With a constant γ a floor of O(γ²) remains. γ = 1/(4L) is the
    default, the paper's step without its terms for the noise and the number of rounds; the 4 was not checked against it.
    """

    paper = "DoubleSqueeze, Algorithm 1"
    compressor = "top-k"
    theory = "1/(4*L)"
    step: Step = "theory"  # γ, the step size

    def start(self, x0: Vector) -> Node:
        return Node(x0.copy(), IterateMean.begun(self.average, x0))

    def start_worker(self, node: Node, f: Objective) -> Worker:
        return Worker(np.zeros(f.dim))

    def start_master(self, node: Node) -> Master:
        return Master(np.zeros_like(node.x))

    def worker_sends(self, node: Node, worker: Worker, f: Objective, t: Round) -> Message:
        worker.e += f.gradient(node.x, self.rows(f, t))
        c = self.up.pack(worker.e, t)
        self.up.unpack(c).add_to(worker.e, -1.0)
        return c

    def master_answers(self, node: Node, master: Master, ups: Sequence[Compressed], t: Round) -> Message:
        self.mean(ups).add_to(master.e)
        q = self.down.pack(master.e, t)
        self.down.unpack(q).add_to(master.e, -1.0)
        return q

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        self.descend(node, down, t.k)
