"""CAT's search: the budget T that gains most per cost (CAT eq. 8), exactly, without sorting more of the gradient than it must."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mpi_compress.compressed import Indices, Sparse, Vector
from mpi_compress.kernels import select
from mpi_compress.kernels.vectors import sum_of_squares

TIE = 1e-12  # ratios this close, relatively, are equal: the smallest T among them is taken
_FIRST_LOOK = 64


class BudgetSearch:
    """The smallest T in [1, d] that maximises α(T)/C(T) for sparsification, α(T) = ‖Q_T(g)‖²/‖g‖².

    Looks at the m largest |g_j| and stops as soon as no T > m can do better, for
    α(T) ≤ min(1, α(m) + (T − m)·g_(m)²/‖g‖²) (Lemma 2: α is concave) and C never falls.

    Args:
        cost: C(T) for an array of budgets T.
        dim: d.
    """

    def __init__(self, cost: Callable[[Any], Any], dim: int):
        self._cost = np.asarray(cost(np.arange(1, dim + 1)), dtype=np.float64)
        self._dim = dim

    def best(self, g: Vector) -> Sparse:
        """Q_T(g) for the best T; T = 1 where g (d,) is zero or not finite."""
        peak = float(np.max(np.abs(g)))
        if not 0 < peak < np.inf:
            return self._sparse(g, select.largest(g, 1))
        total = sum_of_squares(g, peak) * (1 + 1e-9)
        m = min(_FIRST_LOOK, self._dim)
        while True:
            order = select.in_order(g, select.largest(g, m))
            squares = (g[order] / peak) ** 2
            captured = np.cumsum(squares)
            ratios = captured / self._cost[:m]
            best = ratios.max()
            more = self._worth_looking_at(m, best, captured[-1], squares[-1], total)
            if more <= m:
                break
            m = min(4 * m, more)
        T = int(np.argmax(ratios >= best * (1 - TIE))) + 1
        return self._sparse(g, order[:T])

    def _worth_looking_at(self, m: int, best: float, captured: float, last: float, total: float) -> int:
        """The largest T that could still beat `best`; m, if none above m can."""
        upper = int(np.searchsorted(self._cost, total / best))  # beyond it even α = 1 is too little
        if upper <= m:
            return m
        bound = np.minimum(total, captured + last * np.arange(1, upper - m + 1)) / self._cost[m:upper]
        hopeful = np.flatnonzero(bound > best)
        return m + 1 + int(hopeful[-1]) if hopeful.size else m

    def _sparse(self, g: Vector, chosen: Indices) -> Sparse:
        indices = np.sort(chosen)
        return Sparse(self._dim, indices, g[indices])
