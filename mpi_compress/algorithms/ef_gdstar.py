from dataclasses import dataclass

import numpy as np

from mpi_compress.algorithms.base import algorithms
from mpi_compress.algorithms.error_memory import Memory
from mpi_compress.algorithms.feedback import ErrorFeedback
from mpi_compress.algorithms.gd import Node
from mpi_compress.core.streams import Round
from mpi_compress.problem.objective import Objective


@algorithms.register("ef-gdstar")
@dataclass(frozen=True)
class EFGDStar(ErrorFeedback):
    """Error feedback with gradients shifted by those at x*: EC-GDstar of Gorbunov, Kovalev, Makarenko, Richtárik (NeurIPS 2020),
    as HT §C.3.2 runs it.

    worker sends     p ← e_i + γ (∇f_i(x) − ∇f_i(x*));  Δ_i ← γ C(p/γ);  e_i ← p − Δ_i
    master answers   Δ̄ ← (1/n) Σ Δ_i
    everyone         x ← x − Δ̄

    Σ_i ∇f_i(x*) = 0, so nothing is lost; what is compressed goes to 0 with x → x*, and so does the error of a contractive C. It
    shows what error feedback can reach: x* is known beforehand. Gradients are full.
    """

    paper = "HT §C.3.2"
    needs_optimum = True

    def check(self) -> None:
        super().check()
        if self.batch is not None:
            raise ValueError(f"batch = {self.batch} was given, and ef-gdstar takes full gradients: leave it out")
        if self.setting.mu_apart:
            raise ValueError('ef-gdstar shifts the whole of ∇f_i: it needs regularizer = "worker"')
        if self.setting.x_star is None:
            raise ValueError("ef-gdstar needs x*, which is not known here")

    def start_worker(self, node: Node, f: Objective) -> Memory:
        assert self.setting.x_star is not None
        h = f.value_and_gradient(self.setting.x_star)[1].copy()
        f.forget()
        return Memory(np.zeros(f.dim), h=h)

    def grow(self, node: Node, worker: Memory, f: Objective, t: Round) -> bool:
        """p/γ ← e_i/γ + ∇f_i(x) − h_i."""
        return self.add(worker, f.gradient(node.x))
