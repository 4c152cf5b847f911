"""What CAT needs of each compressor with a budget T: its improvement, its payload, and its message with the step folded in."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

import numpy as np

from mpi_compress.algorithms.tuning import search
from mpi_compress.algorithms.vocabulary import (
    Batch,
    Compressed,
    CostModel,
    Link,
    Role,
    Rounds,
    ScalarLink,
    SignSparse,
    Sized,
    Sparse,
    Streams,
    Vector,
    WithScalar,
    index_bits,
    means_of_parts,
)
from mpi_compress.kernels import select
from mpi_compress.kernels.probabilities import draw, levels_of_budget, sizes_of
from mpi_compress.messages.compressors import compressors

Budget = Literal["cat", "alistarh"] | int
Mean = Callable[[Sequence[Compressed]], Compressed]
ANY_ROUND = Rounds(0, Streams(0), Role.WORKER, np.zeros(1, dtype=np.int64))  # for compressors that draw nothing


class Tuning(ABC):
    """How CAT sends a gradient by a compressor: what each message chooses, and what the master makes of all."""

    link: Link  # of the messages
    is_unbiased: bool = False
    symbol: str = ""  # of the improvement; "": it has none

    @abstractmethod
    def messages(self, g: Vector, t: Rounds) -> tuple[Any, Batch]:
        """The budgets, or the sizes, that are chosen for the rows of g (m, d), and the messages of Q(g)."""

    def answer(self, mean: Mean, ups: Any) -> Compressed:
        """What the master makes of the workers' messages."""
        return mean(ups)

    @abstractmethod
    def improvement_for(self, g: Vector) -> float:
        """The improvement of what would be chosen for g (d,)."""


class Scheme(Tuning):
    """A compressor with a budget T, of n workers: `budget` is T, or the rule for it; `link` is that of the compressor without."""

    improvement: ClassVar[search.Improvement]

    def __init__(self, link: Link, cost: CostModel, budget: Budget = "cat", n: int = 1):
        self.n, self.link, self.cost, self.budget, self.symbol = n, link, cost, budget, self.improvement.symbol
        self.fpp = link.codec.float_format.bits
        self.index_bits = index_bits(link.dim) * (link.codec.indices == "counted")

    @cached_property
    def searches(self) -> search.Searches:
        d = self.link.dim
        return search.Searches(self.cost, lambda cost: search.BudgetSearch(self.improvement, partial(self.costs, cost), d))

    def chosen(self, g: Vector, t: Rounds) -> Sparse:
        """Q_T(g) for the budgets T that are chosen for the rows of g (m, d): I_T(g), and the values there."""
        if self.budget == "cat":
            return self.searches.best(g, t)
        T = np.array([search.alistarh_budget(v) for v in g]) if self.budget == "alistarh" else self.budget
        return Sparse(g.shape[1], *select.largest(g, T))

    def messages(self, g: Vector, t: Rounds) -> tuple[Any, Batch]:
        top = self.chosen(g, t)
        return top.counts, self.link.encode(self.sent(g, top, t))

    def improvement_for(self, g: Vector) -> float:
        return self.improvement.of(g[None], self.chosen(g[None], ANY_ROUND)).item()

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

    @abstractmethod
    def sent(self, g: Vector, top: Sparse, t: Rounds) -> Compressed:
        """Q(g) for the largest coordinates of each row of g (m, d)."""


class Sparsified(Scheme):
    """Q_T(g) (CAT eq. 2); γ = 1/L."""

    improvement = search.Improvement.ALPHA

    def payload(self, T: Any) -> Any:
        return T * (self.index_bits + self.fpp)

    def sent(self, g: Vector, top: Sparse, t: Rounds) -> Compressed:
        return top


class SignQuantised(Scheme):
    """√β/√T·‖g‖·sign(g_j) on I_T(g) (CAT eq. 3, 11): γL folded into the one magnitude, which is the mean |g_j| over I_T(g)."""

    improvement = search.Improvement.BETA

    def payload(self, T: Any) -> Any:
        return self.fpp + T * self.index_bits

    def sent(self, g: Vector, top: Sparse, t: Rounds) -> Compressed:
        assert top.ends is not None
        return SignSparse.of(top, means_of_parts(np.abs(top.values), top.ends))


class Stochastically(Scheme):
    """ω(T) beside (g_j/p_j)·Bernoulli(p_j) (CAT eq. 4, 14): γL, which all workers must share, is the smallest ω. The ω of an only
    worker is the smallest, so its values hold ω·(g_j/p_j), and no message ω."""

    improvement = search.Improvement.OMEGA
    is_unbiased = True

    def __init__(self, link: Link, cost: CostModel, budget: Budget = "cat", n: int = 1):
        super().__init__(link if n == 1 else ScalarLink(link), cost, budget, n)

    def payload(self, T: Any) -> Any:
        return self.fpp * (self.n > 1) + T * (self.index_bits + self.fpp)

    def sent(self, g: Vector, top: Sparse, t: Rounds) -> Compressed:
        ω, sizes = self.improvement.of(g, top), sizes_of(g)
        drawn = draw(g, sizes, levels_of_budget(g, sizes, top.counts), t)
        Q = self.link.within_floats(g, Sparse(top.dim, drawn.indices, drawn.weighted, drawn.ends))
        return replace(Q, values=np.repeat(ω, Q.counts) * Q.values) if self.n == 1 else WithScalar(ω, Q)

    def answer(self, mean: Mean, ups: Any) -> Compressed:
        """min_j ω_j times the mean."""
        return mean(ups) if self.n == 1 else scaled(mean(ups.of(lambda up: up.vector)), float(ups.content.scalar.min()))


SCHEMES: dict[str, type[Scheme]] = {"top-k": Sparsified, "sq": SignQuantised, "stochastic": Stochastically}
"""The schemes, by the name of the compressor whose budget T is tuned."""


def check_budget(link: Link, cost: CostModel, budget: Budget) -> None:
    """ValueError where a compressor's budget or size cannot be set so."""
    compressor = link.compressor
    if budget == "alistarh" and compressor.name != "sq":
        raise ValueError('budget = "alistarh" is a rule for the compressor "sq"')
    if isinstance(compressor, Sized):
        return
    if compressor.name not in SCHEMES or getattr(compressor, "k", None) is not None:
        names = ", ".join(f'"{name}"' for name in SCHEMES)
        raise ValueError(
            f"cat sets k itself: its compressor is {{ name = … }}, one of {names}, without k; or one with a size: "
            + ", ".join(f'"{name}"' for name in compressors if issubclass(compressors[name], Sized))
        )
    if isinstance(budget, int) and not 1 <= budget <= link.dim:
        raise ValueError(f'budget = {budget} must be "cat", "alistarh" or a T from 1 to d = {link.dim}')
    if budget == "cat":
        check_planned(link, cost)


def check_planned(link: Link, cost: CostModel) -> None:
    """ValueError where T alone does not decide what a message costs."""
    if cost.on_wire and link.planned_wire_bits(1) is None:
        raise ValueError(
            f'the codec "{link.codec.name}" writes as many bits as the set of coordinates happens to need, not by T alone, so the '
            f'cost model "{cost.name}" cannot be planned for; use codec "fixed" or "bitmap"'
        )


def scaled(c: Any, factor: float) -> Compressed:
    """factor · c, sparse where c is."""
    return replace(c, values=factor * c.values)
