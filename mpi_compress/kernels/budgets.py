"""CAT's budgets of rows: what each T gains, and the T of the most gain per cost, by bounds that rule out larger ones.

A row is known by its m largest magnitudes, falling, and by Σ|v_j| and Σv_j² over all its coordinates. `which` is the improvement,
of `tuning.search`.
"""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.lanes import absolute_and_squares
from mpi_compress.kernels.threshold import reaching

u = np.uint64
ALPHA, BETA, OMEGA = 0, 1, 2
TIE = 1e-12  # ratios this close, relatively, are equal, and sums have reached a bound: the smallest T among them is taken
_SLACK = 1 + 1e-13  # for the rounding of bounds
_GROWTH = 1.25  # of the blocks of budgets that a bound rules out at once
_BLOCK = 512  # coordinates that are added up at once
_FEW = 128  # coordinates that the next search begins with, at least


@kernel
def sums_and_largest(vs, thresholds):
    """Σ|v_j| and Σv_j² of each row; its nonzeros whose magnitude reaches its threshold, one row after another; how many it has."""
    m, d = vs.shape
    absolute, squares, counts = np.zeros(m), np.zeros(m), np.zeros(m, dtype=np.int64)
    indices, values, n = np.empty(d, dtype=np.uint32), np.empty(vs.size), 0
    for i in range(m):
        for start in range(0, d, _BLOCK):
            a, s = absolute_and_squares(vs[i, start : min(start + _BLOCK, d)], 1.0, np.nan)
            absolute[i] += a
            squares[i] += s
        if thresholds[i] < np.inf:
            counts[i] = reaching(vs[i], max(thresholds[i], 5e-324), indices, values[n : n + d])
            n += counts[i]
    return absolute, squares, values[:n].copy(), counts


@kernel
def gains(which, largest, absolute, squares, out):
    """out[T − 1] = improvement(T), T = 1 … m."""
    if which == OMEGA:
        _omega(largest, absolute, squares, out)
        return
    total = 0.0
    for i in range(out.size):
        if which == ALPHA:
            total += largest[i] * largest[i]
            out[i] = total / squares
        else:
            total += largest[i]
            out[i] = total * total / ((i + 1) * squares)


@kernel
def _omega(largest, absolute, squares, out):
    """out[T − 1] = ω(T), T = 1 … m, from the m largest magnitudes, falling, and the sums over all d coordinates. With k magnitudes
    saturated (p = 1), the others have p_j = |g_j|(T − k)/Σ_{j>k}|g_j|; k is the smallest number for which no such p_j exceeds 1,
    and it grows with T."""
    k = 0
    first, second = 0.0, 0.0  # of the saturated: Σ|g_j|, Σg_j²
    for i in range(out.size):
        T = i + 1.0
        while k < i and largest[k] * (T - k) > absolute - first:
            first += largest[k]
            second += largest[k] * largest[k]
            k += 1
        rest = max(absolute - first, 0.0)
        out[i] = min(1.0, squares / max(second + rest * rest / (T - k), 1e-300))


@kernel
def gains_of_all(which, largest, counts, absolute, squares):
    """The improvement (m,) of each row for as many of its `largest` (m, w) as `counts` says."""
    out, of_row = np.empty(counts.size), np.empty(largest.shape[1])
    for i in range(counts.size):
        gains(which, largest[i], absolute[i], squares[i], of_row[: counts[i]])
        out[i] = of_row[counts[i] - 1]
    return out


@kernel
def best_budgets(largest, counts, absolute, squares, which, cost, least):
    """T (m,) of the most gain per cost among the budgets up to `counts` of each row; a budget above them that might gain more, 0 if
    none can; and the last of so many magnitudes as suffice to find T. `cost` (d,) is C(T), and `least` its minimum from T on."""
    T, more, enough = np.ones(counts.size, dtype=np.int64), np.zeros(counts.size, dtype=np.int64), np.zeros(counts.size)
    gained = np.empty(largest.shape[1])
    for i in range(counts.size):
        m, row = counts[i], (which, largest[i], absolute[i], squares[i])
        gains(which, largest[i], absolute[i], squares[i], gained[:m])
        best = 0.0
        for j in range(m):
            best = max(best, gained[j] / cost[j])
        while gained[T[i] - 1] / cost[T[i] - 1] < best * (1 - TIE):
            T[i] += 1
        more[i] = _hopeful(row, gained, m, best, cost, least)
        while m >= max(2 * T[i], _FEW) and not _hopeful(row, gained, m // 2, best, cost, least):
            m //= 2
        enough[i] = largest[i, m - 1]
    return T, more, enough


@kernel
def _hopeful(row, gained, m, best, cost, least):
    """A budget above m that might gain more per cost than `best`; 0, if none can."""
    beyond = np.searchsorted(least, _SLACK / best)  # from here on even an improvement of 1 is too little
    low = m
    while low < beyond:
        high = min(beyond, np.int64(low * _GROWTH) + 16)
        if _bound(row, gained, m, low, high) * _SLACK > best * least[low]:
            for T in range(high, low, -1):
                if _bound(row, gained, m, T - 1, T) * _SLACK > best * cost[T - 1]:
                    return T
        low = high
    return 0


@kernel
def _bound(row, gained, m, low, high):
    """No T with m ≤ low < T ≤ high gains more, by `gained` for T = 1 … m."""
    which, largest, absolute, squares = row
    last, smallest = gained[m - 1], largest[m - 1]
    if which == ALPHA:
        most = last + (high - m) * (smallest * smallest / squares)
    elif which == BETA:
        reached = np.sqrt(last * m * squares) + (high - m) * smallest
        reached = min(absolute, reached)
        most = reached * reached / ((low + 1.0) * squares)
    else:
        slope = last - (gained[m - 2] if m > 1 else 0.0)
        most = min(last + (high - m) * slope, high * (squares / (absolute * absolute)))
    return min(1.0, most)
