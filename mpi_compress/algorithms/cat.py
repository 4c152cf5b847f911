from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

import numpy as np

from mpi_compress.algorithms.base import algorithms
from mpi_compress.algorithms.budget_search import (
    BudgetSearch,
    Improvement,
    SignQuantisation,
    Sparsification,
    StochasticSparsification,
    improvement_of,
)
from mpi_compress.algorithms.gd import GD, Node
from mpi_compress.core.streams import Round
from mpi_compress.kernels import select
from mpi_compress.messages.compressors.sq import SQ, alistarh_budget, signs_at
from mpi_compress.messages.compressors.stochastic import Stochastic
from mpi_compress.messages.compressors.top_k import TopK
from mpi_compress.messages.costs.base import CostModel
from mpi_compress.messages.kinds import Compressed, Dense, Indices, Sparse, Vector, index_bits
from mpi_compress.messages.link import Link, Message, ScalarLink, WithScalar
from mpi_compress.problem.objective import Objective


class Scheme(ABC):
    """What CAT needs of a compressor with a budget T: its improvement, its payload, its message with the step folded in."""

    improvement: ClassVar[type[Improvement]]

    def __init__(self, link: Link):
        self.link = link
        self.fpp = link.codec.float
        self.index_bits = index_bits(link.dim) * (link.codec.indices == "counted")

    @abstractmethod
    def payload(self, T: Any) -> Any:
        """P(T) in bits (CAT eq. 5), for numbers and arrays."""

    def costs(self, cost: CostModel, budgets: Any) -> Vector:
        """C(T) for an array of budgets; NaN where it is charged for what is sent and T alone does not decide that."""
        if not cost.on_wire:
            return cost.cost(self.payload(budgets))
        planned = self.link.planned_wire_bits(np.asarray(budgets, dtype=np.int64))
        return np.full(len(budgets), np.nan) if planned is None else cost.cost(planned.astype(float))

    @abstractmethod
    def message(self, g: Vector, top: Indices, t: Round) -> Message:
        """Q_T(g) for the T = top.size largest coordinates of g."""


class Sparsified(Scheme):
    """Q_T(g) (CAT eq. 2); γ = 1/L."""

    improvement = Sparsification

    def payload(self, T: Any) -> Any:
        return T * (self.index_bits + self.fpp)

    def message(self, g: Vector, top: Indices, t: Round) -> Message:
        return self.link.encode(Sparse(g.size, top, g[top]))


class SignQuantised(Scheme):
    """√β/√T·‖g‖·sign(g_j) on I_T(g) (CAT eq. 3, 11): γL folded into the one magnitude, which is the mean |g_j| over I_T(g)."""

    improvement = SignQuantisation

    def payload(self, T: Any) -> Any:
        return self.fpp + T * self.index_bits

    def message(self, g: Vector, top: Indices, t: Round) -> Message:
        return self.link.encode(signs_at(g, top, float(np.mean(np.abs(g[top])))))


class Stochastically(Scheme):
    """ω(T) beside (g_j/p_j)·Bernoulli(p_j) (CAT eq. 4, 14): γL, which all workers must share, is the smallest ω."""

    improvement = StochasticSparsification

    def __init__(self, link: Link):
        super().__init__(link)
        self.link = ScalarLink(link)

    def payload(self, T: Any) -> Any:
        return self.fpp + T * (self.index_bits + self.fpp)

    def message(self, g: Vector, top: Indices, t: Round) -> Message:
        return self.link.encode(WithScalar(improvement_of(self.improvement(), g, top), Stochastic(k=top.size).compress(g, t)))


SCHEMES: dict[type, type[Scheme]] = {TopK: Sparsified, SQ: SignQuantised, Stochastic: Stochastically}


@dataclass
class Worker:
    budget: float = np.nan  # T of the last round
    hint: float = np.inf  # a magnitude near which the last search ended: it saves time and changes no result


@algorithms.register("cat")
@dataclass(frozen=True)
class CAT(GD):
    """Communication-aware adaptive tuning: Khirirat, Magnússon, Aytekin, Johansson (AAAI 2021), eq. 8–16.

    worker sends     γL·Q_T(g),  g = ∇f_i(x) or its estimate by a minibatch,  T = argmax improvement(T)/C(T)
    master answers   ĝ = (1/n) Σ γL·Q_T(g)
    everyone         x ← x − (1/L) ĝ

    C(T) is the cost model's for a message of budget T. Every worker tunes its own T in every round:

    compressor    improvement                       γL
    top-k         α(T) = ‖Q_T(g)‖²/‖g‖²             1
    sq            β(T) = ⟨g, Q_T(g)⟩²/(T‖g‖⁴)       √β/√T, the worker's own: with very unlike shards it can stall
    stochastic    ω(T) = ‖g‖²/E‖Q_T(g)‖²            min_j ω_j, applied by the master: steps of one's own would bias the mean

    A message of S+Q or of stochastic sparsification holds a scalar, the magnitude or ω_j, which C(T) and the bits count.
    """

    paper = "CAT eq. 8–16"
    compressor = "top-k"
    sets_compressor = True
    logs = ("budget",)
    budget: Literal["cat", "alistarh"] | int = "cat"  # or Alistarh's rule for S+Q, or a fixed T

    def check(self) -> None:
        super().check()
        compressor = self.up.compressor
        if type(compressor) not in SCHEMES or compressor.k is not None:  # type: ignore[attr-defined]
            names = ", ".join(f'"{c.name}"' for c in SCHEMES)  # type: ignore[attr-defined]
            raise ValueError(f"cat sets k itself: its compressor is {{ name = … }}, one of {names}, without k")
        if self.budget == "alistarh" and not isinstance(compressor, SQ):
            raise ValueError('budget = "alistarh" is a rule for the compressor "sq"')
        if isinstance(self.budget, int) and not 1 <= self.budget <= self.setting.dim:
            raise ValueError(f'budget = {self.budget} must be "cat", "alistarh" or a T from 1 to d = {self.setting.dim}')
        if self.budget == "cat" and self.setting.cost.on_wire and self.up.planned_wire_bits(1) is None:
            codec = self.up.codec.name  # type: ignore[attr-defined]
            raise ValueError(
                f'the codec "{codec}" writes as many bits as the set of coordinates happens to need, so the cost model "wire" '
                'cannot be planned for; use codec "fixed" or "bitmap"'
            )

    @cached_property
    def scheme(self) -> Scheme:
        return SCHEMES[type(self.up.compressor)](self.up)

    @cached_property
    def search(self) -> BudgetSearch:
        return BudgetSearch(self.scheme.improvement(), partial(self.scheme.costs, self.setting.cost), self.setting.dim)

    def uplink(self, node: Node, k: int) -> Link:
        return self.scheme.link

    def start_worker(self, node: Node, f: Objective) -> Worker:
        return Worker()

    def worker_sends(self, node: Node, worker: Worker, f: Objective, t: Round) -> Message:
        g = f.gradient(node.x, self.rows(f, t))
        top, worker.hint = self.chosen(g, worker.hint)
        worker.budget = top.size
        return self.scheme.message(g, top, t)

    def chosen(self, g: Vector, hint: float = np.inf) -> tuple[Indices, float]:
        """I_T(g) for the budget T that is due to g, and a hint for the next search."""
        if self.budget == "cat":
            return self.search.best(g, hint)
        return select.largest(g, alistarh_budget(g) if self.budget == "alistarh" else self.budget), hint

    def master_answers(self, node: Node, master: Any, ups: Sequence[Compressed], t: Round) -> Message:
        if isinstance(self.scheme, Stochastically):
            mean = self.mean([u.vector for u in ups])  # type: ignore[attr-defined]
            return self.down.pack(scaled(mean, min(u.scalar for u in ups)), t)  # type: ignore[attr-defined]
        return self.down.pack(self.mean(ups), t)

    @property
    def curve(self) -> str:  # type: ignore[override]
        return self.scheme.improvement.symbol

    def improvement(self, g: Vector) -> float:
        unbiased = isinstance(self.scheme, Stochastically)
        if not self.descends or (self.setting.n > 1 and not unbiased):
            return np.nan
        return improvement_of(self.scheme.improvement(), g, self.chosen(g)[0])

    def worker_logs(self, worker: Worker) -> Sequence[float]:
        return (worker.budget,)


def scaled(c: Compressed, factor: float) -> Compressed:
    """factor · c, sparse where c is."""
    assert isinstance(c, Sparse | Dense)
    return replace(c, values=factor * c.values)
