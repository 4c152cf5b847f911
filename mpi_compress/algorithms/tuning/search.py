"""CAT's search for the budget T that gains most per cost (CAT eq. 8, 10, 13): exact, sorting no more of the gradient than needed.

All three improvements depend on g through ‖g‖, ‖g‖₁ and its largest magnitudes, and are at most 1. So one pass takes the sums and
the few magnitudes above a hint (one near which the last round's search ended); a bound rules out larger budgets, or else more
coordinates are looked at. Neither the hint nor their number changes the result. All rows are searched at once.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import lru_cache
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.algorithms.vocabulary import CostModel, Indices, Rounds, Sparse, Vector, at_moment
from mpi_compress.kernels import budgets as kernels
from mpi_compress.kernels import select
from mpi_compress.kernels.budgets import TIE
from mpi_compress.kernels.probabilities import sizes_of

Counts = NDArray[np.int64]
_FIRST_LOOK = 256
_LINKS = 16  # searches that are kept where links change: each has C(T) for all T


class Improvement(IntEnum):
    """What a budget gains: f falls by at least improvement(T)·‖∇f‖²/2L (CAT's descent lemmas)."""

    ALPHA = kernels.ALPHA  # α(T) = ‖Q_T(g)‖²/‖g‖² of sparsification, increasing and concave (CAT Lemmas 1, 2)
    BETA = kernels.BETA  # β(T) = (Σ_{I_T}|g_j|)²/(T‖g‖²) of sign quantisation, neither increasing nor concave (CAT Lemma 3)
    OMEGA = kernels.OMEGA  # ω(T) = ‖g‖²/Σ g_j²/p_j with the p of least variance for Σp_j = T, as α is (CAT Lemmas 4, 5)

    @property
    def symbol(self) -> str:
        return self.name.lower()

    def of(self, gs: Vector, top: Sparse) -> Vector:
        """improvement(T) of each row of gs (m, d), whose T largest coordinates `top` has; 1 where the row is zero, NaN where it is
        not finite."""
        peaks, largest, counts = np.abs(gs).max(axis=1), top.values, top.counts
        usual = (peaks > 1e-140) & (peaks < 1e140)
        if not usual.all():
            with np.errstate(invalid="ignore"):
                over = np.where(usual | (peaks == 0), 1.0, peaks)
                gs, largest = gs / over[:, None], largest / np.repeat(over, counts)
        absolute, squares, _, _ = kernels.sums_and_largest(gs, np.full(len(gs), np.inf))
        gained = kernels.gains_of_all(self.value, _falling(largest, counts), counts, absolute, squares)
        return np.where(peaks == 0, 1.0, np.where(peaks < np.inf, gained, np.nan))

    def curve(self, g: Vector) -> Vector:
        """improvement(T) of g (d,) for T = 1 … d; NaN where g is zero or not finite."""
        peak = float(np.abs(g).max())
        if not 0 < peak < np.inf:
            return np.full(g.size, np.nan)
        row = g[None] if 1e-140 < peak < 1e140 else g[None] / peak
        absolute, squares, _, _ = kernels.sums_and_largest(row, np.array([np.inf]))
        out = np.empty(g.size)
        kernels.gains(self.value, np.sort(np.abs(row[0]))[::-1].copy(), absolute[0], squares[0], out)
        return out


def _falling(values: Vector, counts: Counts) -> Vector:
    """The magnitudes of so many of the values as rows, falling, and 0 after them."""
    width = int(counts.max())
    sizes = np.negative(np.abs(values))
    if counts.size * width == sizes.size:
        rows = sizes.reshape(-1, width)
    else:
        rows = np.zeros((counts.size, width))
        rows[np.arange(width) < counts[:, None]] = sizes
    rows.sort(axis=1)
    return np.negative(rows, out=rows)


def alistarh_budget(g: Vector) -> int:
    """The smallest T with Σ_{I_T(g)} |g_j| ≥ ‖g‖ (Alistarh et al. 2017, appendix: T ≤ ⌈√d⌉); 1 where g is 0 or not finite."""
    size = sizes_of(g[None])
    if not 0 < size.peak[0] < np.inf:
        return 1
    most = min(g.size, isqrt(g.size - 1) + 1)
    largest = np.sort(np.abs(select.largest(g[None], most)[1]) * size.scale)[::-1]
    reached = np.cumsum(largest) >= np.sqrt(size.squares) * (1 - TIE)
    return int(np.argmax(reached)) + 1 if reached[-1] else most


class BudgetSearch:
    """The smallest T in [1, d] that maximises improvement(T)/C(T); `cost` is C > 0, for an array of budgets T."""

    def __init__(self, improvement: Improvement, cost: Callable[[Any], Any], dim: int):
        self.improvement = improvement
        self._dim = dim
        self._cost = np.ascontiguousarray(np.broadcast_to(cost(np.arange(1.0, dim + 1.0)), dim), dtype=np.float64)
        falls = np.any(np.diff(self._cost) < 0)
        self._least = np.minimum.accumulate(self._cost[::-1])[::-1].copy() if falls else self._cost  # of T and all above it

    def best(self, gs: Vector, hints: Vector) -> tuple[Sparse, Vector]:
        """Q_T(g) for the best T of each row g of gs (m, d), hints (m,) for the next search; T = 1 where g is 0 or not finite."""
        absolute, squares, values, counts = kernels.sums_and_largest(gs, hints)
        if not (squares.min() > 1e-280 and squares.max() < 1e280):  # they have left the range of floats, or are close to it
            return self._one_by_one(gs, hints, (squares > 1e-280) & (squares < 1e280))
        if counts.min() < (few := min(8, self._dim)):
            looked_at = np.where(counts < few, min(_FIRST_LOOK, self._dim), counts)
            values, counts = select.largest(gs, looked_at)[1], looked_at
        known = self.improvement.value, self._cost, self._least
        T, more, enough = kernels.best_budgets(_falling(values, counts), counts, absolute, squares, *known)
        while more.any():
            some, looked_at = more > 0, np.minimum(more, 4 * counts)
            counts = np.where(some, looked_at, counts)
            values = select.largest(gs[some], counts[some])[1]
            found = _falling(values, counts[some]), counts[some], absolute[some], squares[some]
            T[some], more[some], enough[some] = kernels.best_budgets(*found, *known)
        return Sparse(self._dim, *select.largest(gs, T)), 0.7 * enough

    def _one_by_one(self, gs: Vector, hints: Vector, usual: NDArray[np.bool_]) -> tuple[Sparse, Vector]:
        """`best` where not all rows are `usual`: others are searched over their largest magnitude."""
        found: list[Indices] = []
        after = np.full(len(gs), np.inf)
        for i in range(len(gs)):
            row = gs[i : i + 1]
            peak = float(np.abs(row).max())
            if usual[i]:
                top, after[i : i + 1] = self.best(row, hints[i : i + 1])
            elif 0 < peak < np.inf:
                top, _ = self.best(row / peak, hints=np.array([np.inf]))
            else:
                top = Sparse(self._dim, *select.largest(row, 1))
            found.append(top.indices)
        return at_indices(gs, found), after


def at_indices(gs: Vector, found: Sequence[Indices]) -> Sparse:
    """The rows of gs (m, d) at these indices of each."""
    values = [g[indices] for g, indices in zip(gs, found, strict=True)]
    return Sparse(gs.shape[1], np.concatenate(found), np.concatenate(values), np.cumsum([indices.size for indices in found]))


class Searches:
    """The search for T by what a message costs in a round: one for the whole run, or where links change one for each link.

    It remembers where a worker's last search ended, which saves time and changes no result, and keeps the latest that `of` made.
    """

    def __init__(self, cost: CostModel, of: Callable[[CostModel], BudgetSearch]):
        self._cost = cost
        self._steady = of(cost) if cost.clock is None else None
        self._of = lru_cache(_LINKS)(of)
        self._hints = np.empty(0)  # of each worker: where its last search ended

    def best(self, gs: Vector, t: Rounds) -> Sparse:
        """Q_T(g) for the best T of each row of gs (m, d), in the round of its worker."""
        if self._hints.size <= (last := t.who.max()):
            self._hints = np.append(self._hints, np.full(last + 1 - self._hints.size, np.inf))
        if self._steady is not None:
            top, self._hints[t.who] = self._steady.best(gs, self._hints[t.who])
            return top
        found = []
        for i, who in enumerate(t.who.tolist()):
            search = self._of(at_moment(self._cost, t.second, who))
            top, self._hints[who : who + 1] = search.best(gs[i : i + 1], self._hints[who : who + 1])
            found.append(top.indices)
        return at_indices(gs, found)
