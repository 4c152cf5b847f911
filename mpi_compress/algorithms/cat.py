from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from mpi_compress.algorithms.base import algorithms
from mpi_compress.algorithms.gd import GD, Node
from mpi_compress.compressed import Sparse
from mpi_compress.compressors.top_k import TopK
from mpi_compress.link import Message
from mpi_compress.objective import Objective
from mpi_compress.streams import Round
from mpi_compress.tuning import BudgetSearch, Sparsification


@dataclass
class Worker:
    budget: int = 0  # T of the last round


@algorithms.register("cat")
@dataclass(frozen=True)
class CAT(GD):
    """Communication-aware adaptive tuning: Khirirat, Magnússon, Aytekin, Johansson (AAAI 2021), eq. 8, 9 and 16.

    worker sends     Q_T(g),  g = ∇f_i(x),  T = argmax α(T)/C(T),  α(T) = ‖Q_T(g)‖²/‖g‖²
    master answers   ĝ = (1/n) Σ Q_T(g)
    everyone         x ← x − γ ĝ,   γ = 1/L

    C(T) is the cost model's for a message of T entries. Every worker tunes its own T in every round.
    """

    paper = "CAT eq. 8, 9, 16"
    compressor = "top-k"
    sets_compressor = True
    logs = ("budget",)
    budget: Literal["cat"] | int = "cat"  # or a fixed T

    def check(self) -> None:
        super().check()
        if not isinstance(self.up.compressor, TopK) or self.up.compressor.k is not None:
            raise ValueError('cat sets k itself: write up = { compressor = { name = "top-k" } }, without k')
        if self.budget != "cat" and not 1 <= self.budget <= self.setting.dim:
            raise ValueError(f'budget = {self.budget} must be "cat" or a T from 1 to d = {self.setting.dim}')

    @cached_property
    def search(self) -> BudgetSearch:
        codec, cost = self.up.codec, self.setting.cost
        bits = Sparse.bits_per_element(self.setting.dim, codec.float, codec.indices == "counted")
        return BudgetSearch(lambda T: cost.cost(T * bits), self.setting.dim)

    def start_worker(self, node: Node, f: Objective) -> Worker:
        return Worker()

    def worker_sends(self, node: Node, worker: Worker, f: Objective, t: Round) -> Message:
        g = f.gradient(node.x)
        chosen = self.search.best(g) if self.budget == "cat" else TopK(self.budget).compress(g, t)
        worker.budget = chosen.elements
        return self.up.encode(chosen)

    def worker_logs(self, worker: Worker) -> Sequence[float]:
        return (worker.budget,)
