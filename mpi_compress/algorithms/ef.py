from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from mpi_compress.algorithms.base import algorithms
from mpi_compress.algorithms.feedback import ErrorFeedback
from mpi_compress.algorithms.gd import Node
from mpi_compress.compressed import Compressed, Sparse, Vector
from mpi_compress.compressors.hard_threshold import HardThreshold
from mpi_compress.kernels.threshold import reaching_among
from mpi_compress.link import Message
from mpi_compress.memory import Memory
from mpi_compress.objective import Objective
from mpi_compress.streams import Round


@algorithms.register("ef")
@dataclass(frozen=True)
class EF(ErrorFeedback):
    """Distributed SGD with error feedback: Sahu, Dutta, Abdelmoniem, Banerjee, Canini, Kalnis (NeurIPS 2021), Algorithm 1.

    worker sends     p ← e_i + γ g_i;  Δ_i ← γ C(p/γ);  e_i ← p − Δ_i
    master answers   Δ̄ ← (1/n) Σ Δ_i
    everyone         x ← x − Δ̄

    What is sent is C(p/γ); g_i, γ and the regulariser are as in gd. With momentum λ > 0 it is their Algorithm 2, form = "gradient",

    worker sends     Δ_i ← g_i + e_i;  C(Δ_i);  e_i ← Δ_i − C(Δ_i)
    everyone         Δ' ← (1/n) Σ C(Δ_i);  m ← λ m + Δ';  x ← x − γ (Δ' + m)

    or their Algorithm 3, form = "update",

    worker sends     m_i ← λ m_i + g_i;  Δ_i ← m_i + g_i + e_i;  C(Δ_i);  e_i ← Δ_i − C(Δ_i)
    everyone         x ← x − γ (1/n) Σ C(Δ_i)

    where `masking` clears m_i at the coordinates that were sent (Lin et al. 2018). As printed they take twice Algorithm 1's step
    when λ nears 0. Their e_i is in units of the gradient; it is logged times γ. `feedback` = false drops e_i after every round
    (its size is logged still), `reset` = r after every r-th.

    Hard-threshold with sparse minibatches and the regulariser at the master costs what the minibatches touch, whatever d.
    """

    paper = "HT Algorithms 1, 2, 3"
    lazy: ClassVar[bool] = True
    momentum: float = 0.0  # λ
    form: Literal["gradient", "update"] = "gradient"
    masking: bool = False

    def check(self) -> None:
        super().check()
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum = {self.momentum} must be from 0 to below 1")
        if self.masking and not (self.momentum and self.form == "update"):
            raise ValueError('masking = true clears a worker\'s momentum: it needs momentum = … and form = "update"')

    def start(self, x0: Vector) -> Node:
        node = super().start(x0)
        if self.momentum and self.form == "gradient":
            node.m = np.zeros_like(x0)
        return node

    def start_worker(self, node: Node, f: Objective) -> Memory:
        worker = super().start_worker(node, f)
        if self.momentum and self.form == "update":
            worker.m = np.zeros(f.dim)
        return worker

    def worker_sends(self, node: Node, worker: Memory, f: Objective, t: Round) -> Message:
        rows = self.rows(f, t)
        if (γ := self.gamma(t.k)) != worker.step:
            self.rescale(worker, γ)
        if worker.m.size:
            g = f.gradient(node.x, rows, node.scale)
            worker.m *= self.momentum
            worker.m += g
            worker.e += worker.m
            worker.e += g
        elif rows is not None and f.touches_little and self.looks_where_touched:
            return self.send_touched(node, worker, *f.add_touching(worker.e, node.x, rows, node.scale), t)
        elif rows is None:
            return self.send(node, worker, t, self.grow(worker, f.gradient(node.x)))
        else:
            f.add_gradient(worker.e, node.x, rows, node.scale)
        message = self.send(node, worker, t)
        if self.masking:
            sent = self.up.unpack(message)
            held = sent.sparse()
            worker.m[sent.dense() != 0 if held is None else held.indices] = 0.0
        return message

    @property
    def grows_by_gradients(self) -> bool:
        return type(self) is EF and self.batch is None and not (self.momentum and self.form == "update")

    def rescale(self, worker: Memory, γ: float) -> None:
        worker.rescale(γ, kept=bool(self.momentum))

    @property
    def looks_where_touched(self) -> bool:
        """Whether no coordinate can reach the threshold but those that the gradient touches: |e_j/γ| < λ for all others."""
        return isinstance(self.up.compressor, HardThreshold) and isinstance(self.step, float) and not self.forgets

    def send_touched(self, node: Node, worker: Memory, touched: np.ndarray, growth: float, t: Round) -> Message:
        """`send` at the cost of what the gradient touched."""
        chosen = reaching_among(worker.e, touched, self.up.compressor.level)  # type: ignore[attr-defined]
        message = self.up.encode(Sparse(worker.e.size, *chosen))
        worker.keep_touched(self.up.unpack(message), growth)
        return message

    def move(self, node: Node, down: Compressed, γ: float) -> None:
        super().move(node, down, γ)
        if node.m.size:
            node.m *= self.momentum
            down.add_to(node.m)
            node.x -= γ / node.scale * node.m
