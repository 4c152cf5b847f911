from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from mpi_compress.algorithms.base import algorithms
from mpi_compress.algorithms.gd import GD, Node
from mpi_compress.compressed import Compressed, Vector
from mpi_compress.link import Message
from mpi_compress.memory import LOGS, Memory, trace_columns
from mpi_compress.objective import Objective
from mpi_compress.streams import Round


@dataclass(frozen=True)
class ErrorFeedback(GD):
    """What methods with error feedback share: the memory, what is kept of it, and what is logged."""

    compressor = "top-k"
    logs = LOGS
    feedback: bool = True  # false: e is dropped after every round
    reset: int | None = None  # e is dropped after every so many rounds

    def check(self) -> None:
        super().check()
        if self.reset is not None and self.reset < 1:
            raise ValueError(f"reset = {self.reset} must be at least 1 round; leave it out to keep the errors")

    def start_worker(self, node: Node, f: Objective) -> Memory:
        return Memory(np.zeros(f.dim))

    def send(self, worker: Memory, t: Round) -> Message:
        """C(p/γ), where `worker.e` holds p/γ; e ← p − γ C(p/γ)."""
        message = self.up.pack(worker.e, t)
        worker.keep(self.up.unpack(message))
        if not self.feedback or (self.reset and (t.k + 1) % self.reset == 0):
            worker.drop()
        return message

    def worker_logs(self, worker: Memory) -> Sequence[float]:
        return worker.logs()

    def trace_logs(self, means: Mapping[str, float]) -> Mapping[str, float]:
        return trace_columns(means)


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

    where `masking` clears m_i at the coordinates that were sent (Lin et al. 2018). Their e_i is in units of the gradient and logged
    so, times γ. As printed they take twice Algorithm 1's step when λ nears 0. `feedback` = false drops e_i after every round (the
    errors are logged still), `reset` = r after every r-th.
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
        m = np.zeros_like(x0) if self.momentum and self.form == "gradient" else np.empty(0)
        return self.averaged(Node(x0.copy(), m=m))

    def start_worker(self, node: Node, f: Objective) -> Memory:
        m = np.zeros(f.dim) if self.momentum and self.form == "update" else np.empty(0)
        return Memory(np.zeros(f.dim), m=m)

    def worker_sends(self, node: Node, worker: Memory, f: Objective, t: Round) -> Message:
        γ = self.gamma(t.k)
        if self.momentum:
            worker.step = γ
        else:
            worker.rescale(γ)
        rows = self.rows(f, t)
        if worker.m.size:
            g = f.gradient(node.x, rows, node.scale)
            worker.m *= self.momentum
            worker.m += g
            worker.e += worker.m
            worker.e += g
        else:
            f.add_gradient(worker.e, node.x, rows, node.scale)
        message = self.send(worker, t)
        if self.masking:
            worker.m[self.up.unpack(message).indices] = 0.0  # type: ignore[attr-defined]
        return message

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        if node.m.size:
            node.m *= self.momentum
            down.add_to(node.m)
            node.x -= self.gamma(t.k) / node.scale * node.m
        super().all_hear(node, down, t)
