from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from mpi_compress.algorithms.base import algorithms
from mpi_compress.algorithms.error_memory import Memory
from mpi_compress.algorithms.feedback import ErrorFeedback
from mpi_compress.algorithms.gd import Node
from mpi_compress.core.streams import Round
from mpi_compress.kernels.feedback import is_silent
from mpi_compress.kernels.threshold import reaching_among
from mpi_compress.messages.compressors.hard_threshold import HardThreshold
from mpi_compress.messages.kinds import Compressed, Sparse, Vector
from mpi_compress.messages.link import Message
from mpi_compress.problem.objective import Objective


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
        if self.masking and not self.workers_have_momentum:
            raise ValueError('masking = true clears a worker\'s momentum: it needs momentum = … and form = "update"')

    def start(self, x0: Vector) -> Node:
        node = super().start(x0)
        if self.momentum and self.form == "gradient":
            node.m = np.zeros_like(x0)
        return node

    def start_worker(self, node: Node, f: Objective) -> Memory:
        worker = super().start_worker(node, f)
        if self.workers_have_momentum:
            worker.m = np.zeros(f.dim)
        return worker

    def grow(self, node: Node, worker: Memory, f: Objective, t: Round) -> bool:
        if self.adds_gradients:
            return self.add(worker, f.gradient(node.x))
        rows = self.rows(f, t)
        if self.workers_have_momentum:
            g = f.gradient(node.x, rows, node.scale)
            worker.m *= self.momentum
            worker.m += g
            worker.e += worker.m
            worker.e += g
        else:
            f.add_gradient(worker.e, node.x, rows, node.scale)
        return is_silent(worker.e, self.level, worker.step, worker.sizes)

    @property
    def workers_have_momentum(self) -> bool:
        return self.momentum > 0 and self.form == "update"

    @property
    def adds_gradients(self) -> bool:
        return self.batch is None and not self.workers_have_momentum

    def at_step(self, worker: Memory, γ: float) -> None:
        if γ != worker.step:
            worker.rescale(γ, kept=self.momentum > 0)

    @cached_property
    def clears(self) -> bool:
        return self.forgets or self.masking

    def clear(self, worker: Memory, message: Message, k: int) -> None:
        super().clear(worker, message, k)
        if self.masking:
            sent = self.up.unpack(message)
            held = sent.sparse()
            worker.m[sent.dense() != 0 if held is None else held.indices] = 0.0

    def touches_only(self, f: Objective) -> bool:
        """No coordinate can reach a threshold that stays but those that the gradient touches, as |e_j/γ| < λ for all others."""
        stays = isinstance(self.up.compressor, HardThreshold) and isinstance(self.step, float) and not self.forgets
        return stays and self.batch is not None and f.touches_little and not self.workers_have_momentum

    def worker_sends(self, node: Node, worker: Memory, f: Objective, t: Round) -> Message:
        if not self.touches_only(f):
            return super().worker_sends(node, worker, f, t)
        rows = self.rows(f, t)
        assert rows is not None
        self.at_step(worker, self.gamma(t.k))
        touched, growth = f.add_touching(worker.e, node.x, rows, node.scale)
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
