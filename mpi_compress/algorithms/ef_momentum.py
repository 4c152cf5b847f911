"""The momentum forms of error feedback. As printed they take twice Algorithm 1's step when λ nears 0.

`direction` = "nesterov" takes λ m in place of m (Sutskever et al. 2013; the usual SGD with Nesterov's momentum), "heavy-ball"
leaves out the gradient beside m (Polyak 1964). The error e_i is in units of the gradient, whatever the step; it is logged times
γ. All workers take part in every round.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from mpi_compress.algorithms import ef
from mpi_compress.algorithms.base import PartialMean
from mpi_compress.algorithms.error_feedback import ErrorFeedback
from mpi_compress.algorithms.error_memory import ErrorMemory
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Message
from mpi_compress.problem.objective import Objective


@dataclass
class Node(ef.Node):
    m: Vector = field(default_factory=lambda: np.empty(0))  # (d,) momentum


class MomentumOfGradients(ef.EF):
    """HT Algorithm 2.

    worker sends     Δ_i ← g_i + e_i;  C(Δ_i);  e_i ← Δ_i − C(Δ_i)
    everyone         Δ' ← (1/n) Σ C(Δ_i);  m ← λ m + Δ';  x ← x − γ (Δ' + m), or as `direction` says
    """

    partial_mean: ClassVar[PartialMean] = ""

    def start(self, x0: Vector) -> Node:
        return Node(**vars(super().start(x0)), m=np.zeros_like(x0))

    worker_sends = ErrorFeedback.worker_sends

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:  # type: ignore[override]
        γ = self.gamma(t.k)
        node.x.shrink(self.kept_by_regulariser(t.k), at_once=self.batch is None)
        if self.direction != "heavy-ball":
            node.x.add(down, -γ)
        node.m *= self.momentum
        down.add_to(node.m)
        node.x.add(node.m, -γ * self.momentum if self.direction == "nesterov" else -γ)
        self.note_round(node, down, t.k)


@dataclass
class Worker(ErrorMemory):
    m: Vector = field(default_factory=lambda: np.empty(0))  # (d,) m_i, momentum


class MomentumOfUpdates(ef.EF):
    """HT Algorithm 3; `masking` clears m_i at the coordinates that were sent (Lin et al. 2018).

    worker sends     m_i ← λ m_i + g_i;  u_i ← m_i + g_i, or as `direction` says;  Δ_i ← u_i + e_i;  C(Δ_i);  e_i ← Δ_i − C(Δ_i)
    everyone         x ← x − γ (1/n) Σ C(Δ_i)
    """

    partial_mean: ClassVar[PartialMean] = ""

    def start_worker(self, node: ef.Node, f: Objective) -> Worker:
        return Worker(np.zeros(f.dim), m=np.zeros(f.dim))

    def worker_sends(self, node: ef.Node, worker: Worker, f: Objective, t: Round) -> Message:  # type: ignore[override]
        link = self.uplink(node, t.k)
        worker.step = self.gamma(t.k)
        g = f.gradient(node.x, self.rows(f, t))
        self.grow(worker, g)
        Δ = link.pack(worker.e, t)
        worker.take_out(link.unpack(Δ))  # e_i ← Δ_i − C(Δ_i)
        if self.drops_errors(t.k):
            worker.drop()
        if self.masking:
            self.mask(worker, link.unpack(Δ))
        return Δ

    def grow(self, worker: Worker, g: Vector) -> None:
        """m_i ← λ m_i + g_i and Δ_i ← u_i + e_i."""
        worker.m *= self.momentum
        worker.m += g
        worker.e += self.momentum * worker.m if self.direction == "nesterov" else worker.m
        if self.direction != "heavy-ball":
            worker.e += g

    def mask(self, worker: Worker, sent: Compressed) -> None:
        """m_i ← 0 at the coordinates that were sent."""
        held = sent.sparse()
        worker.m[sent.dense() != 0 if held is None else held.indices] = 0.0


ef.EF.forms.update({"gradient": MomentumOfGradients, "update": MomentumOfUpdates})
