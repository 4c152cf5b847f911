from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

import numpy as np

from mpi_compress.algorithms.averaging import IterateMean
from mpi_compress.algorithms.base import algorithms
from mpi_compress.algorithms.budget_search import (
    BudgetSearch,
    Improvement,
    Searches,
    SignQuantisation,
    Sparsification,
    StochasticSparsification,
    alistarh_budget,
    improvement_of,
)
from mpi_compress.algorithms.descent import Descent
from mpi_compress.algorithms.sizes import ANY_ROUND, Mean, SizeScheme, scaled, sizes_of
from mpi_compress.core.streams import Round
from mpi_compress.kernels import select
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.compressors.base import Sized
from mpi_compress.messages.costs import Clocked, CostModel
from mpi_compress.messages.kinds import Compressed, Indices, SignSparse, Sparse, Vector, index_bits
from mpi_compress.messages.link import Link, Message, ScalarLink, WithScalar
from mpi_compress.problem.objective import Objective


class Scheme(ABC):
    """What CAT needs of a compressor with a budget T: its improvement, its payload, its message with the step folded in."""

    improvement: ClassVar[type[Improvement]]
    is_unbiased: ClassVar[bool] = False
    needs_each: ClassVar[bool] = False  # True: the master needs more of the messages than their mean

    def __init__(self, link: Link):
        self.link = link
        self.fpp = link.codec.float_format.bits
        self.index_bits = index_bits(link.dim) * (link.codec.indices == "counted")

    @classmethod
    def of(cls, link: Link, n: int) -> "Scheme":
        """The scheme for n workers."""
        return cls(link)

    @abstractmethod
    def payload(self, T: Any) -> Any:
        """P(T) in bits (CAT eq. 5), for numbers and arrays."""

    def costs(self, cost: CostModel, budgets: Any) -> Vector:
        """C(T) for an array of budgets; NaN where it is charged for what is sent and T alone does not decide that."""
        return cost.cost(self.charged(cost, budgets))

    def charged(self, cost: CostModel, budgets: Any) -> Vector:
        """The bits that C(T) is a price of, for an array of budgets; NaN where T alone does not decide them."""
        if not cost.on_wire:
            return self.payload(budgets)
        planned = self.link.planned_wire_bits(np.asarray(budgets, dtype=np.int64))
        return np.full(len(budgets), np.nan) if planned is None else planned.astype(float)

    def answer(self, mean: Mean, ups: Sequence[Compressed]) -> Compressed:
        """What the master makes of the workers' messages."""
        return mean(ups)

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
        return self.link.encode(SignSparse.at(g, top, float(np.mean(np.abs(g[top])))))


class Stochastically(Scheme):
    """ω(T) beside (g_j/p_j)·Bernoulli(p_j) (CAT eq. 4, 14): γL, which all workers must share, is the smallest ω."""

    improvement = StochasticSparsification
    is_unbiased = True
    needs_each = True  # the least of their scalars

    def __init__(self, link: Link):
        super().__init__(link)
        self.link = ScalarLink(link)

    @classmethod
    def of(cls, link: Link, n: int) -> Scheme:
        return StochasticallyAlone(link) if n == 1 else cls(link)

    def payload(self, T: Any) -> Any:
        return self.fpp + T * (self.index_bits + self.fpp)

    def message(self, g: Vector, top: Indices, t: Round) -> Message:
        drawn = self.link.at(k=top.size).compress(g, t)
        return self.link.encode(WithScalar(improvement_of(self.improvement(), g, top), drawn))

    def answer(self, mean: Mean, ups: Sequence[Compressed]) -> Compressed:
        """min_j ω_j times the mean."""
        pairs = [u for u in ups if isinstance(u, WithScalar)]
        return scaled(mean([u.vector for u in pairs]), min(u.scalar for u in pairs))


class StochasticallyAlone(Scheme):
    """ω·(g_j/p_j)·Bernoulli(p_j) of the only worker (CAT eq. 4, 14): its own ω is the smallest, so no message needs to hold it."""

    improvement = StochasticSparsification
    is_unbiased = True

    def payload(self, T: Any) -> Any:
        return T * (self.index_bits + self.fpp)

    def message(self, g: Vector, top: Indices, t: Round) -> Message:
        drawn = self.link.at(k=top.size).compress(g, t)
        return self.link.encode(scaled(drawn, improvement_of(self.improvement(), g, top)))


SCHEMES: dict[str, type[Scheme]] = {"top-k": Sparsified, "sq": SignQuantised, "stochastic": Stochastically}
"""By the name of the compressor whose budget T is tuned."""


@dataclass
class Node:
    x: Vector  # (d,) iterate
    mean: IterateMean | None  # of the iterates, where it is wanted


@dataclass
class Worker:
    budget: float = np.nan  # T of the last round, or the size s
    hint: float = np.inf  # a magnitude near which the last search ended: it saves time and changes no result


@algorithms.register("cat")
@dataclass(frozen=True)
class CAT(Descent):
    """Communication-aware adaptive tuning: Khirirat, Magnússon, Aytekin, Johansson (AAAI 2021), eq. 8–16.

    worker sends     γL·Q_T(g),  g = ∇f_i(x) or its estimate by a minibatch,  T = argmax improvement(T)/C(T)
    master answers   ĝ = (1/n) Σ γL·Q_T(g)
    everyone         x ← x − (1/L) ĝ

    C(T) is the cost model's for a message of budget T. Every worker tunes its own T in every round:

    compressor    improvement                       γL
    top-k         α(T) = ‖Q_T(g)‖²/‖g‖²             1
    sq            β(T) = ⟨g, Q_T(g)⟩²/(T‖g‖⁴)       √β/√T, the worker's own: with very unlike shards it can stall
    stochastic    ω(T) = ‖g‖²/E‖Q_T(g)‖²            min_j ω_j, applied by the master: steps of one's own would bias the mean
    block-sign    1 − ‖g − Q_s(g)‖²/‖g‖²            1
    others        1/(1 + ω(s))                      1/(1 + ω(s)), applied by the master; s is the same for all workers and rounds

    The last two rows are beyond the paper: any compressor with a size s in place of T (`algorithms.sizes`), for
    f(x − Q/L) ≤ f(x) − (‖g‖² − ‖g − Q‖²)/2L, of which eq. 8's lemmas are special cases. The others are `natural`, `dithering` and
    `count-sketch`.

    A message of S+Q holds a scalar, the magnitude, and so does one of stochastic sparsification by several workers, ω_j; C(T) and
    the bits count it. A single worker folds ω into the values, and sends what eq. 5 counts.
    """

    paper = "CAT eq. 8–16"
    theory = "1/L"
    compressor = "top-k"
    sets_compressor = True
    logs = ("budget",)
    budget: Literal["cat", "alistarh"] | int = "cat"  # T, or the size s: tuned, by Alistarh's rule for S+Q, or a number

    def check(self) -> None:
        super().check()
        compressor = self.up.compressor
        if isinstance(compressor, Sized):
            if self.budget == "alistarh":
                raise ValueError('budget = "alistarh" is a rule for the compressor "sq"')
            self.scheme  # noqa: B018  raises where the cost cannot be planned
            return
        if compressor.name not in SCHEMES or getattr(compressor, "k", None) is not None:
            names = ", ".join(f'"{name}"' for name in SCHEMES)
            raise ValueError(
                f"cat sets k itself: its compressor is {{ name = … }}, one of {names}, without k; or one with a size: "
                + ", ".join(f'"{name}"' for name in compressors if issubclass(compressors[name], Sized))
            )
        if self.budget == "alistarh" and compressor.name != "sq":
            raise ValueError('budget = "alistarh" is a rule for the compressor "sq"')
        if isinstance(self.budget, int) and not 1 <= self.budget <= self.setting.dim:
            raise ValueError(f'budget = {self.budget} must be "cat", "alistarh" or a T from 1 to d = {self.setting.dim}')
        if self.budget == "cat" and self.setting.cost.on_wire and self.up.planned_wire_bits(1) is None:
            raise ValueError(
                f'the codec "{self.up.codec.name}" writes as many bits as the set of coordinates happens to need, so the '
                f'cost model "{self.setting.cost.name}" cannot be planned for; use codec "fixed" or "bitmap"'
            )

    @cached_property
    def scheme(self) -> Scheme | SizeScheme:
        if isinstance(self.up.compressor, Sized):
            return sizes_of(self.up, self.setting.cost, self.budget if isinstance(self.budget, int) else None)
        return SCHEMES[self.up.compressor.name].of(self.up, self.setting.n)

    @property
    def needs_each(self) -> bool:
        return isinstance(self.scheme, Scheme) and self.scheme.needs_each

    @cached_property
    def searches(self) -> Searches:
        scheme, d = self.scheme, self.setting.dim
        assert isinstance(scheme, Scheme)
        return Searches(self.setting.cost, lambda cost: BudgetSearch(scheme.improvement(), partial(scheme.costs, cost), d))

    def uplink(self, node: Node, k: int) -> Link:
        return self.scheme.link

    def start(self, x0: Vector) -> Node:
        return Node(x0.copy(), IterateMean.begun(self.average, x0))

    def start_worker(self, node: Node, f: Objective) -> Worker:
        return Worker()

    def worker_sends(self, node: Node, worker: Worker, f: Objective, t: Round) -> Message:
        g = f.gradient(node.x, self.rows(f, t))
        if isinstance(self.scheme, SizeScheme):
            worker.budget, message = self.scheme.message(g, t)
            return message
        top, worker.hint = self.chosen(g, t, worker.hint)
        worker.budget = top.size
        return self.scheme.message(g, top, t)

    def chosen(self, g: Vector, t: Round, hint: float = np.inf) -> tuple[Indices, float]:
        """I_T(g) for the budget T that is due to g in a worker's round, and a hint for the next search."""
        if self.budget == "cat":
            return self.searches.at(t).best(g, hint)
        return select.largest(g, alistarh_budget(g) if self.budget == "alistarh" else self.budget), hint

    def master_answers(self, node: Node, master: None, ups: Sequence[Compressed], t: Round) -> Message:
        return self.down.pack(self.scheme.answer(self.mean, ups), t)

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        self.descend(node, down, t.k)

    @property
    def curve(self) -> str:
        return self.scheme.symbol if isinstance(self.scheme, SizeScheme) else self.scheme.improvement.symbol

    @property
    def fixed_budget(self) -> int | None:
        return self.budget if isinstance(self.budget, int) and isinstance(self.scheme, Scheme) else None

    def improvement(self, g: Vector) -> float:
        if not self.is_lemma_step or isinstance(self.setting.cost, Clocked) or (self.setting.n > 1 and not self.scheme.is_unbiased):
            return np.nan
        if isinstance(self.scheme, SizeScheme):
            return self.scheme.improvement(g)
        return improvement_of(self.scheme.improvement(), g, self.chosen(g, ANY_ROUND)[0])

    def worker_logs(self, worker: Worker) -> Sequence[float]:
        return (worker.budget,)
