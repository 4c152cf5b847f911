"""Probabilities p_j = min(1, |v_j| / m): the m that meets a budget, and draws of coordinates with these chances; CAT's ω(T).

Both budgets below are solved by Newton's method in m, which moves one way and stops exactly: Σ p_j and Σ v_j²/p_j are linear in 1/m
or m as long as the same coordinates are certain. If it takes many steps (magnitudes spread over all scales), a sort finds m.

Magnitudes are multiplied by `scale`, a power of two, so that no square overflows or vanishes.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpi_compress.kernels import inlined_kernel, kernel
from mpi_compress.kernels.hits import BLOCK, MAGNITUDE, Indices, append_hits, with_room
from mpi_compress.kernels.lanes import absolute_and_squares
from mpi_compress.kernels.vectors import lengths_of

Vector = NDArray[np.float64]
LARGEST = np.finfo(np.float64).max.view(np.int64)
_NEWTON_STEPS = 12


class Sizes(NamedTuple):
    """The sizes of rows, all (m,): `peak` = max |v_j|, unscaled; the sums are of |v_j|·scale and their squares."""

    peak: Vector
    nonzeros: NDArray[np.int64]
    sum: Vector
    squares: Vector
    scale: Vector
    norm: Vector  # ‖v‖; NaN or infinity where v has one


def sizes_of(vs: Vector, bucket: int | None = None) -> Sizes:
    """The sizes of the rows of vs (m, d), to full precision whatever their scales; or of buckets of so many coordinates, the last
    of a row perhaps of fewer, those of one row after those of another."""
    bucket = bucket or vs.shape[1]
    m = len(vs) * -(-vs.shape[1] // bucket)
    sizes = Sizes(np.empty(m), np.empty(m, dtype=np.int64), np.empty(m), np.empty(m), np.ones(m), np.empty(m))
    measure_rows(vs, bucket, *sizes)
    return sizes


@kernel
def measure_rows(vs, bucket, peaks, nonzeros, sums, squares, scales, norms):
    """`Sizes` of each row, with another scale than 1 where squares may be no floats."""
    buckets = peaks.size // len(vs)
    for i in range(peaks.size):
        start = i % buckets * bucket
        v = vs[i // buckets][start : start + bucket]
        bits = v.view(np.int64)
        for _ in range(2):
            peak, some = np.int64(0), 0
            for j in range(v.size):
                peak = max(peak, bits[j] & MAGNITUDE)
                some += v[j] != 0
            peaks[i], nonzeros[i] = np.int64(peak).view(np.float64), some
            sums[i], squares[i] = absolute_and_squares(v, scales[i], np.nan)
            exponent = math.frexp(peaks[i])[1] if 0 < peaks[i] < np.inf else 0
            if -300 <= exponent <= 400:
                break
            scales[i] = math.ldexp(1.0, 400 - exponent if exponent > 400 else -300 - exponent)
        norms[i] = np.sqrt(squares[i]) / scales[i] if peaks[i] < np.inf else peaks[i]


@kernel
def below(vs, levels, scales, wanted, above, sums, squares):
    """Of each row that is `wanted`: the number of magnitudes a_j = |v_j|·scale that reach its level, and Σ a_j and Σ a_j² over the
    others."""
    for i in range(vs.shape[0]):
        if wanted[i]:
            reach = 0
            for j in range(vs.shape[1]):
                reach += not abs(vs[i, j]) * scales[i] < levels[i]
            above[i] = reach
            sums[i], squares[i] = absolute_and_squares(vs[i], scales[i], levels[i])


def levels_of_budget(vs: Vector, sizes: Sizes, budget: Any, passes: int | None = None) -> Vector:
    """m of each row with Σ min(1, a_j/m) = budget, one or (m,), a_j = |v_j|·scale; 0 where it covers all nonzeros of the row.
    `passes`: the number of steps, after which Σ ≤ budget: GSpar's Algorithm 3, whose c is the ratio of two successive m."""
    wanted, budgets = sizes.nonzeros > (budget if passes is None else 0), np.broadcast_to(budget, len(vs))
    start = np.where(wanted, sizes.sum / budget, 0.0)
    return _levels(vs, sizes, start, wanted, lambda above, sums, _, rows: (sums, budgets[rows] - above), passes)


def levels_of_variance(vs: Vector, sizes: Sizes, epsilon: float) -> Vector:
    """m of each row with Σ v_j²/p_j = (1 + ε)‖v‖², p_j = min(1, a_j/m), a_j = |v_j|·scale (GSpar Algorithm 2: m = 1/λ)."""
    extra, wanted = epsilon * sizes.squares, sizes.nonzeros > 0
    with np.errstate(invalid="ignore"):
        start = np.where(wanted, (extra + sizes.squares) / sizes.sum, 0.0)
    return _levels(vs, sizes, start, wanted, lambda _, sums, squares, rows: (extra[rows] + squares, sums))


def _levels(
    vs: Vector, sizes: Sizes, levels: Vector, unsettled: Any, terms: Callable[..., tuple[Vector, Vector]], passes: int | None = None
) -> Vector:
    """m = N/D of each row, from `levels` on, which fall, for N and D of the number of a_j ≥ m and the sums of the other a_j and
    a_j²: `terms`. After so many `passes`, or as it is exactly."""
    found = np.zeros(levels.size, dtype=np.int64), np.zeros(levels.size), np.zeros(levels.size)
    for _ in range(_NEWTON_STEPS if passes is None else passes):
        below(vs, levels, sizes.scale, unsettled, *found)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            N, D = terms(*found, slice(None))
            lower = np.where(D > 0, N / D, np.inf)
        unsettled = unsettled & (lower < levels)
        if not unsettled.any():
            break
        levels = np.where(unsettled, lower, levels)
    for i in np.flatnonzero(unsettled) if passes is None else ():
        a, *sums = _falling(vs[i], sizes.scale[i])
        N, D = terms(np.arange(a.size), *sums, i)
        k = int(np.argmax(np.maximum(D, 0) * a <= N))
        levels[i] = N[k] / D[k] if D[k] > 0 else levels[i]
    return levels


def _falling(v: Vector, scale: float) -> tuple[Vector, Vector, Vector]:
    """The nonzero magnitudes a_(1) ≥ a_(2) ≥ …, and for each k the sums of a_(j) and of a_(j)² over j > k, k from 0."""
    rising = np.sort(np.abs(v[v != 0]) * scale)
    return rising[::-1], np.cumsum(rising)[::-1], np.cumsum(rising**2)[::-1]


class Draws(NamedTuple):
    """Coordinates of rows that were drawn, one row after another. Where a row is not finite, what is not finite is certain and
    nothing else is drawn."""

    indices: Indices  # (r,) increasing in each row
    values: Vector  # (r,) v_j
    certain: NDArray[np.bool_]  # (r,) which had p = 1
    ends: NDArray[np.int64]  # (m,) where those of each row end
    level: Vector  # (m,) m, which is |v_j|/p_j for the others

    @property
    def weighted(self) -> Vector:
        """(r,) v_j/p_j."""
        levels = np.repeat(self.level, lengths_of(self.ends))
        return np.where(self.certain, self.values, np.copysign(levels, self.values))


def draw(vs: Vector, sizes: Sizes, levels: Vector, t: Any) -> Draws:
    """Coordinates drawn independently with p_j = min(1, |v_j|/m), m = `levels` over the scale of their row."""
    drawn = (sizes.peak < np.inf) & (levels > 0)
    u = random_bytes(t if drawn.all() else t[drawn], vs.shape[1])
    of_rows = vs, sizes.peak, sizes.scale, levels, u
    indices, ends, ties = likely(*of_rows)
    values, certain = settle(*of_rows, t.random(ties), indices, ends)
    return Draws(indices[: ends[-1]], values, certain, ends, np.where(drawn, levels / sizes.scale, 0.0))


def random_bytes(t: Any, n: int) -> NDArray[np.uint8]:
    """n random bytes of each row, or a few more. With ties settled by a second draw they are as exact as n floats, in an eighth of
    the time."""
    return t.words((n + 7) // 8).view(np.uint8)


@inlined_kernel
def _chance(level, scale):
    """a and b such that |v_j|·a·b = 256·|v_j|·scale/level, without 1/level overflowing."""
    m = level / scale
    if 0 < m < np.inf:
        level = m * scale  # the m that is sent is rounded if it is denormal
    lift = 2.0**500 if level < 2.0**-500 else 1.0
    return scale * lift, 256 / (level * lift)


@kernel
def likely(vs, peaks, scales, levels, u):
    """The coordinates that the bytes u do not rule out, one row after another, where those of each row end, and how many of them
    the bytes do not settle. These are u_j ≤ ⌊x_j⌋ and u_j = ⌊x_j⌋ for x_j = 256·p_j. u has a row for each with a level above 0."""
    m, d = vs.shape
    bits = vs.view(np.int64)
    found, n, row = with_room(np.empty(vs.size >> 3, dtype=np.uint32), np.uint64(0)), np.uint64(0), 0
    ends, ties = np.empty(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
    hit = np.zeros(BLOCK, dtype=np.uint8)
    eight = hit.view(np.uint64)
    for i in range(m):
        drawn, certain = peaks[i] < np.inf and levels[i] > 0, np.int64(0) if peaks[i] < np.inf else LARGEST
        scale, per_level = _chance(levels[i], scales[i])
        for start in range(0, d, BLOCK):
            stop = min(start + BLOCK, d)
            found = with_room(found, n)
            if drawn:
                ties[i] += _compare(vs[i, start:stop], scale, per_level, u[row, start:stop], hit)
            else:
                for j in range(start, stop):
                    hit[j - start] = (bits[i, j] & MAGNITUDE) > certain
            n = append_hits(hit, eight, stop - start, start, found, n)
        ends[i] = n
        row += drawn
    return found, ends, ties


@kernel
def _compare(v, scale, per_level, u, hit):
    ties = 0
    for j in range(v.size):
        whole = np.int32(min(abs(v[j]) * scale * per_level, 256.0))
        hit[j] = (u[j] <= whole) & (v[j] != 0)
        ties += (u[j] == whole) & (v[j] != 0)
    return ties


@kernel
def settle(vs, peaks, scales, levels, u, spare, found, ends):
    """Keep those of `found` with u_j < ⌊x_j⌋, and of the equal ones those whose next digit, `spare`, is below the rest of x_j. They
    move to the front, and `ends` with them. Returns the values there, and which have p = 1."""
    values, certain = np.empty(ends[-1]), np.empty(ends[-1], dtype=np.bool_)
    n, ties, at, row = np.uint64(0), np.uint64(0), 0, 0
    for i in range(ends.size):
        drawn = peaks[i] < np.inf and levels[i] > 0
        scale, per_level = _chance(levels[i], scales[i])
        while at < ends[i]:
            j = found[at]
            v, keep, sure = vs[i, j], True, True
            if drawn:
                x = min(abs(v) * scale * per_level, 256.0)
                whole = np.int32(x)
                keep, sure = u[row, j] < whole, whole == 256
                if u[row, j] == whole:
                    keep = spare[ties] < x - whole
                    ties += np.uint64(1)
            found[n], values[n], certain[n] = j, v, sure
            n += np.uint64(keep)
            at += 1
        ends[i] = n
        row += drawn
    return values[:n], certain[:n]
