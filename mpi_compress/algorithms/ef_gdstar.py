from dataclasses import dataclass, field

import numpy as np

from mpi_compress.algorithms.averaging import IterateMean
from mpi_compress.algorithms.base import algorithms, whole_gradients
from mpi_compress.algorithms.ef import Node
from mpi_compress.algorithms.error_feedback import ErrorFeedback, first_regime
from mpi_compress.algorithms.error_memory import ErrorMemory
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Message
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.scaled_vector import ScaledVector


@dataclass
class Worker(ErrorMemory):
    h: Vector = field(default_factory=lambda: np.empty(0))  # (d,) ∇f_i(x*)


@algorithms.register("ef-gdstar")
@dataclass(frozen=True)
class EFGDStar(ErrorFeedback):
    """Error feedback with gradients shifted by those at x*: EC-GDstar of Gorbunov, Kovalev, Makarenko, Richtárik (NeurIPS 2020).

    It is here as HT §C.3.2 runs it:

    worker sends     p ← e_i + γ (∇f_i(x) − ∇f_i(x*));  Δ_i ← γ C(p/γ);  e_i ← p − Δ_i
    master answers   Δ̄ ← (1/n) Σ Δ_i
    everyone         x ← x − Δ̄

    Σ_i ∇f_i(x*) = 0, so nothing is lost; what is compressed goes to 0 with x → x*, and so does the error of a contractive C. It
    shows what error feedback can reach: x* is known beforehand. Gradients are full.
    """

    paper = "HT §C.3.2"
    needs_optimum = True
    batch: int | None = None  # must be left out: gradients are full

    def check(self) -> None:
        super().check()
        if self.batch is not None:
            raise ValueError(f"batch = {self.batch} was given, and ef-gdstar takes full gradients: leave it out")
        whole_gradients(self)
        if self.setting.x_star is None:
            raise ValueError("ef-gdstar needs x*, which is not known here")

    def start(self, x0: Vector) -> Node:
        return Node(ScaledVector(x0.copy()), IterateMean.begun(self.average, x0), first_regime(self.up.compressor, x0))

    def start_worker(self, node: Node, f: Objective) -> Worker:
        assert self.setting.x_star is not None
        return Worker(np.zeros(f.dim), h=f.value_and_gradient(self.setting.x_star)[1].copy())

    def worker_sends(self, node: Node, worker: Worker, f: Objective, t: Round) -> Message:
        γ, link = self.gamma(t.k), self.uplink(node, t.k)
        worker.at_step(γ)
        worker.e += f.gradient(node.x) - worker.h  # p/γ ← e_i/γ + ∇f_i(x) − ∇f_i(x*)
        Δ = link.pack(worker.e, t)  # C(p/γ)
        worker.take_out(link.unpack(Δ))  # e_i/γ ← p/γ − C(p/γ)
        if self.drops_errors(t.k):
            worker.drop()
        return Δ

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        node.x.add(down, -self.gamma(t.k))
        self.note_round(node, down, t.k)
