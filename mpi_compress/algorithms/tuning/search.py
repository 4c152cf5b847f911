"""CAT's search for the budget T that gains most per cost (CAT eq. 8, 10, 13): exact, sorting no more of the gradient than needed.

All three improvements depend on g through ‖g‖, ‖g‖₁ and its largest magnitudes, and are at most 1. So one pass takes the sums and
the few coordinates above a hint (a magnitude near which the last round's search ended); a bound rules
out larger budgets, or else more coordinates are looked at. Neither the hint nor their number changes the result.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import isqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.streams import Round
from mpi_compress.kernels import probabilities, select
from mpi_compress.kernels.probabilities import size_of
from mpi_compress.messages.costs import CostModel, at_moment
from mpi_compress.messages.kinds import Indices, Vector

TIE = 1e-12  # ratios this close, relatively, are equal, and sums have reached a bound: the smallest T among them is taken
_FIRST_LOOK = 256
_SLACK = 1 + 1e-13  # for the rounding of bounds
_LINKS = 16  # searches that are kept where links change: each has C(T) for all T
_GROWTH = 1.25  # of the blocks of budgets that a bound rules out at once


@dataclass(frozen=True)
class Top:
    """What is known of a gradient: its m largest magnitudes, falling, and its sums, all over the same scale."""

    largest: Vector  # (m,)
    absolute: float  # ‖g‖₁
    squares: float  # ‖g‖²


class Improvement(ABC):
    """What a budget gains: f falls by at least improvement(T)·‖∇f‖²/2L (CAT's descent lemmas)."""

    symbol: ClassVar[str]

    @abstractmethod
    def of(self, g: Top) -> Vector:
        """improvement(T) for T = 1 … m."""

    @abstractmethod
    def bound(self, g: Top, gained: Vector, low: Any, high: Any) -> Any:
        """No T with m ≤ low < T ≤ high gains more, by `gained` for T = 1 … m; takes numbers or arrays."""


class Sparsification(Improvement):
    """α(T) = ‖Q_T(g)‖²/‖g‖², increasing and concave (CAT Lemmas 1, 2)."""

    symbol = "alpha"

    def of(self, g: Top) -> Vector:
        return np.cumsum(g.largest**2) / g.squares

    def bound(self, g: Top, gained: Vector, low: Any, high: Any) -> Any:
        return np.minimum(1.0, gained[-1] + (high - g.largest.size) * (g.largest[-1] ** 2 / g.squares))


class SignQuantisation(Improvement):
    """β(T) = (Σ_{I_T}|g_j|)²/(T‖g‖²), neither increasing nor concave (CAT Lemma 3)."""

    symbol = "beta"

    def of(self, g: Top) -> Vector:
        return np.cumsum(g.largest) ** 2 / (np.arange(1, g.largest.size + 1) * g.squares)

    def bound(self, g: Top, gained: Vector, low: Any, high: Any) -> Any:
        m = g.largest.size
        reached = np.sqrt(gained[-1] * m * g.squares)
        at_most = np.minimum(g.absolute, reached + (high - m) * g.largest[-1])
        return np.minimum(1.0, at_most**2 / ((low + 1.0) * g.squares))


class StochasticSparsification(Improvement):
    """ω(T) = ‖g‖²/Σ g_j²/p_j with the p of least variance for Σp_j = T, increasing and concave (CAT Lemmas 4, 5)."""

    symbol = "omega"

    def of(self, g: Top) -> Vector:
        out = np.empty(g.largest.size)
        probabilities.omega(g.largest, g.absolute, g.squares, out)
        return out

    def bound(self, g: Top, gained: Vector, low: Any, high: Any) -> Any:
        m = g.largest.size
        slope = gained[-1] - (gained[-2] if m > 1 else 0.0)
        return np.minimum(np.minimum(1.0, gained[-1] + (high - m) * slope), high * (g.squares / g.absolute**2))


def falling(g: Vector, chosen: Indices | None = None) -> Top | None:
    """What is known of g (d,) by its largest coordinates `chosen`, or by all of them; None where g is zero or not finite."""
    peak = float(np.max(np.abs(g)))
    if not 0 < peak < np.inf:
        return None
    scaled = g / peak if not 1e-140 < peak < 1e140 else g
    absolute, squares, _ = probabilities.sums_and_above(scaled, np.inf)
    return Top(np.sort(np.abs(scaled if chosen is None else scaled[chosen]))[::-1], absolute, squares)


def improvement_of(improvement: Improvement, g: Vector, top: Indices) -> float:
    """improvement(T) of g (d,) for T = top.size, whose largest coordinates `top` are; 1 where g is zero."""
    known = falling(g, top)
    return float(improvement.of(known)[-1]) if known is not None else np.nan if np.any(g != 0) else 1.0


def _first(magnitudes: Vector, smallest: float, T: int) -> NDArray[np.intp]:
    """The places of the T largest magnitudes, the T-th of which is `smallest`, in order; ties to the first ones."""
    above = magnitudes > smallest
    ties = np.flatnonzero(magnitudes == smallest)[: T - np.count_nonzero(above)]
    above[ties] = True
    return np.flatnonzero(above)


def alistarh_budget(g: Vector) -> int:
    """The smallest T with Σ_{I_T(g)} |g_j| ≥ ‖g‖ (Alistarh et al. 2017, appendix: T ≤ ⌈√d⌉); 1 where g is 0 or not finite."""
    size = size_of(g)
    if not 0 < size.peak < np.inf:
        return 1
    most = min(g.size, isqrt(g.size - 1) + 1)
    largest = np.sort(np.abs(g[select.largest(g, most)]) * size.scale)[::-1]
    reached = np.cumsum(largest) >= np.sqrt(size.squares) * (1 - TIE)
    return int(np.argmax(reached)) + 1 if reached[-1] else most


class BudgetSearch:
    """The smallest T in [1, d] that maximises improvement(T)/C(T); `cost` is C > 0, for an array of budgets T."""

    def __init__(self, improvement: Improvement, cost: Callable[[Any], Any], dim: int):
        self.improvement = improvement
        self._dim = dim
        self._cost = np.ascontiguousarray(np.broadcast_to(cost(np.arange(1.0, dim + 1.0)), dim), dtype=np.float64)
        falls = np.any(np.diff(self._cost) < 0)
        self._least = np.minimum.accumulate(self._cost[::-1])[::-1] if falls else self._cost  # of T and all above it

    def best(self, g: Vector, hint: float = np.inf) -> tuple[Indices, float]:
        """I_T(g) for the best T, increasing, and a hint for the next search; T = 1 where g (d,) is zero or not finite."""
        absolute, squares, found = probabilities.sums_and_above(g, hint)
        if not 1e-280 < squares < 1e280:  # squares have left the range of floats, or are close to it
            peak = float(np.max(np.abs(g)))
            if not 0 < peak < np.inf:
                return select.largest(g, 1), np.inf
            return self.best(g / peak)[0], np.inf
        m = min(_FIRST_LOOK, self._dim)
        if found.size < min(8, self._dim):
            found = select.largest(g, m)
        while True:
            magnitudes = np.abs(g[found])
            top = Top(np.sort(magnitudes)[::-1], absolute, squares)
            gained = self.improvement.of(top)
            ratios = gained / self._cost[: gained.size]
            best = float(ratios.max())
            more = self._hopeful(top, gained, best)
            if not more:
                break
            found = select.largest(g, min(more, 4 * found.size))
        T = int(np.argmax(ratios >= best * (1 - TIE))) + 1
        enough = self._enough(top, gained, best, T)
        return found[_first(magnitudes, top.largest[T - 1], T)], 0.7 * float(top.largest[enough - 1])

    def _enough(self, top: Top, gained: Vector, best: float, T: int) -> int:
        """About how many of the largest coordinates suffice to find T: the next search begins with as many."""
        m = gained.size
        while m >= max(2 * T, 128):
            fewer = Top(top.largest[: m // 2], top.absolute, top.squares)
            if self._hopeful(fewer, gained[: m // 2], best):
                break
            m //= 2
        return m

    def _hopeful(self, top: Top, gained: Vector, best: float) -> int:
        """A budget above the m looked at that might do better than `best`; 0, if none can."""
        m = gained.size
        beyond = int(np.searchsorted(self._least, _SLACK / best))  # from here on even an improvement of 1 is too little
        low = m
        while low < beyond:
            high = min(beyond, int(low * _GROWTH) + 16)
            if self.improvement.bound(top, gained, low, high) * _SLACK > best * self._least[low]:
                T = np.arange(low + 1, high + 1)
                hopeful = self.improvement.bound(top, gained, T - 1, T) * _SLACK > best * self._cost[low:high]
                if np.any(hopeful):
                    return int(T[np.flatnonzero(hopeful)[-1]])
            low = high
        return 0


class Searches:
    """The search for T by what a message costs in a round: one for the whole run, or where links change one for each link.

    It remembers where a worker's last search ended, which saves time and changes no result, and keeps the latest that `of` made.
    """

    def __init__(self, cost: CostModel, of: Callable[[CostModel], BudgetSearch]):
        self._cost = cost
        self._steady = of(cost) if cost.clock is None else None
        self._of = lru_cache(_LINKS)(of)
        self._hints: dict[int, float] = {}  # of each worker: where its last search ended

    def best(self, g: Vector, t: Round) -> Indices:
        """I_T(g) for the best T of a worker in its round."""
        search = self._steady or self._of(at_moment(self._cost, t.second, t.who))
        top, self._hints[t.who] = search.best(g, self._hints.get(t.who, np.inf))
        return top
