"""Probabilities p_j = min(1, |v_j| / m): the m that meets a budget, and draws of coordinates with these chances; CAT's ω(T).

Both budgets below are solved by Newton's method in m, which moves one way and stops exactly: Σ p_j and Σ v_j²/p_j are linear in 1/m
or m as long as the same coordinates are certain. If it takes many steps (magnitudes spread over all scales), a sort finds m.

Magnitudes are multiplied by `scale`, a power of two, so that no square overflows or vanishes.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from mpi_compress.kernels import kernel, reassociating_kernel
from mpi_compress.kernels.hits import BLOCK, MAGNITUDE, Indices, append_hits, keys_above, with_room

Vector = NDArray[np.float64]
LARGEST = np.finfo(np.float64).max.view(np.int64)
_NEWTON_STEPS = 12


class VectorSize(NamedTuple):
    """The size of a vector: `peak` = max |v_j|, unscaled; the sums are of |v_j|·scale and their squares."""

    peak: float
    nonzeros: int
    sum: float
    squares: float
    scale: float

    @property
    def norm(self) -> float:
        """‖v‖; NaN or infinity where v has one."""
        return math.sqrt(self.squares) / self.scale if self.peak < np.inf else self.peak


def size_of(v: Vector) -> VectorSize:
    """The size of v (d,), to full precision whatever its scale."""
    v = np.ascontiguousarray(v, dtype=np.float64)
    peak, nonzeros, total, squares = measure(v, 1.0)
    exponent = math.frexp(peak)[1] if 0 < peak < np.inf else 0
    if -300 <= exponent <= 400:
        return VectorSize(peak, nonzeros, total, squares, 1.0)
    scale = 2.0 ** (400 - exponent if exponent > 400 else -300 - exponent)
    _, _, total, squares = measure(v, scale)
    return VectorSize(peak, nonzeros, total, squares, scale)


@reassociating_kernel
def measure(v, scale):
    """max |v_j|, or a NaN that is there; the number of nonzeros, Σ |v_j|·scale, Σ (v_j·scale)²."""
    bits = v.view(np.int64)
    peak, nonzeros, total, squares = np.int64(0), 0, 0.0, 0.0
    for j in range(v.size):
        peak = max(peak, bits[j] & MAGNITUDE)
        nonzeros += v[j] != 0
        a = abs(v[j]) * scale
        total += a
        squares += a * a
    return np.int64(peak).view(np.float64), nonzeros, total, squares


@reassociating_kernel
def below(v, level, scale):
    """The number of magnitudes a_j = |v_j|·scale that reach `level`, and Σ a_j and Σ a_j² over the others."""
    above, total, squares = 0, 0.0, 0.0
    for j in range(v.size):
        a = abs(v[j]) * scale
        inside = a < level
        above += not inside
        a = a if inside else 0.0
        total += a
        squares += a * a
    return above, total, squares


def level_of_budget(v: Vector, size: VectorSize, budget: float, passes: int | None = None) -> float:
    """m with Σ min(1, a_j/m) = budget, a_j = |v_j|·scale; 0 where the budget covers all nonzeros of v (d,). `passes`: the number of
    steps, after which Σ ≤ budget: GSpar's Algorithm 3, whose c is the ratio of two successive m."""
    if size.nonzeros == 0 or (passes is None and size.nonzeros <= budget):
        return 0.0
    v = np.ascontiguousarray(v, dtype=np.float64)
    m = size.sum / budget
    for _ in range(_NEWTON_STEPS if passes is None else passes):
        above, total, _ = below(v, m, size.scale)
        better = total / (budget - above) if above < budget else m
        if not better < m:
            return m
        m = better
    if passes is not None:
        return m
    a, total, _ = _falling(v, size)
    left = np.maximum(budget - np.arange(a.size), 0)
    k = int(np.argmax(left * a <= total))
    return float(total[k] / left[k]) if left[k] > 0 else m


def level_of_variance(v: Vector, size: VectorSize, epsilon: float) -> float:
    """m with Σ v_j²/p_j = (1 + ε)‖v‖², p_j = min(1, a_j/m), a_j = |v_j|·scale (GSpar Algorithm 2: m = 1/λ)."""
    if not size.nonzeros:
        return 0.0
    v = np.ascontiguousarray(v, dtype=np.float64)
    extra = epsilon * size.squares
    m = (extra + size.squares) / size.sum
    for _ in range(_NEWTON_STEPS):
        _, total, squares = below(v, m, size.scale)
        better = (extra + squares) / total if total > 0 else m
        if not better < m:
            return m
        m = better
    a, total, squares = _falling(v, size)
    k = int(np.argmax(a * total <= extra + squares))
    return float((extra + squares[k]) / total[k])


def _falling(v: Vector, size: VectorSize) -> tuple[Vector, Vector, Vector]:
    """The nonzero magnitudes a_(1) ≥ a_(2) ≥ …, and for each k the sums of a_(j) and of a_(j)² over j > k, k from 0."""
    rising = np.sort(np.abs(v[v != 0]) * size.scale)
    return rising[::-1], np.cumsum(rising)[::-1], np.cumsum(rising**2)[::-1]


def draw(v: Vector, size: VectorSize, level: float, rng: Generator) -> tuple[Indices, NDArray[np.bool_], float]:
    """Coordinates drawn independently with p_j = min(1, |v_j|/m), m = `level` over the scale.

    Returns:
        Their increasing indices (r,), which of them were certain (p = 1), and m, which is v_j/p_j for the others. Where v is not
        finite, what is not finite is certain and nothing else is drawn.
    """
    v = np.ascontiguousarray(v, dtype=np.float64)
    if not (size.peak < np.inf and level > 0):
        found = keys_above(v.view(np.int64), np.int64(0) if size.peak < np.inf else LARGEST)
        return found, np.ones(found.size, dtype=np.bool_), 0.0
    m = level / size.scale
    if 0 < m < np.inf:
        level = m * size.scale  # the m that is sent is rounded if it is denormal
    lift = 2.0**500 if level < 2.0**-500 else 1.0  # 1/level must be a number
    scale, per_level = size.scale * lift, 256 / (level * lift)
    u = random_bytes(rng, v.size)
    found, tied = likely(v, scale, per_level, u)
    certain = np.empty(found.size, dtype=np.bool_)
    n = settle(v, scale, per_level, u, rng.random(tied), found, certain)
    return found[:n], certain[:n], m


def random_bytes(rng: Generator, n: int) -> NDArray[np.uint8]:
    """n random bytes. With ties settled by a second draw they are as exact as n floats, in an eighth of the time."""
    return rng.integers(0, 2**64 - 1, (n + 7) // 8, dtype=np.uint64, endpoint=True).view(np.uint8)[:n]


@kernel
def likely(v, scale, per_level, u):
    """The coordinates that the bytes u (d,) do not rule out, and how many of them they do not settle. These are u_j ≤ ⌊x_j⌋ and
    u_j = ⌊x_j⌋ for x_j = |v_j|·scale·per_level = 256·p_j."""
    found, n = with_room(np.empty(v.size >> 3, dtype=np.uint32), np.uint64(0)), np.uint64(0)
    tied = 0
    hit = np.zeros(BLOCK, dtype=np.uint8)
    eight = hit.view(np.uint64)
    for start in range(0, v.size, BLOCK):
        found = with_room(found, n)
        size = min(BLOCK, v.size - start)
        for j in range(size):
            i = np.uint64(start) + np.uint64(j)
            whole = np.int32(min(abs(v[i]) * scale * per_level, 256.0))
            hit[j] = (u[i] <= whole) & (v[i] != 0)
            tied += (u[i] == whole) & (v[i] != 0)
        n = append_hits(hit, eight, size, start, found, n)
    return found[:n].copy(), tied


@kernel
def settle(v, scale, per_level, u, spare, found, certain):
    """Keep those of `found` with u_j < ⌊x_j⌋, and of the equal ones those whose next digit, `spare`, is below the rest of x_j. They
    move to the front. Returns their number; `certain` says which have p = 1."""
    n, ties = np.uint64(0), np.uint64(0)
    for i in range(found.size):
        j = found[i]
        x = min(abs(v[j]) * scale * per_level, 256.0)
        whole = np.int32(x)
        keep = u[j] < whole
        if u[j] == whole:
            keep = spare[ties] < x - whole
            ties += np.uint64(1)
        found[n] = j
        certain[n] = whole == 256
        n += np.uint64(keep)
    return np.int64(n)


@kernel
def values_at(v, found, certain, m, out):
    """out (r,): v_j where certain, else m with the sign of v_j."""
    for i in range(found.size):
        a = v[found[i]]
        out[i] = a if certain[i] else np.copysign(m, a)


@reassociating_kernel
def absolute_and_squares(v, start, stop):
    absolute, squares = 0.0, 0.0
    for j in range(start, stop):
        absolute += abs(v[j])
        squares += v[j] * v[j]
    return absolute, squares


@kernel
def sums_and_above(v, threshold):
    """Σ|v_j|, Σv_j² and the increasing indices with |v_j| > threshold, in one pass over v (d,)."""
    u = np.uint64
    found, n = with_room(np.empty(v.size >> 3, dtype=np.uint32), u(0)), u(0)
    hit = np.zeros(BLOCK, dtype=np.uint8)
    eight = hit.view(np.uint64)
    absolute, squares = 0.0, 0.0
    for start in range(0, v.size, BLOCK):
        size = min(BLOCK, v.size - start)
        a, s = absolute_and_squares(v, u(start), u(start + size))
        absolute += a
        squares += s
        if s > threshold * threshold or not s >= 0.0:
            found = with_room(found, n)
            for j in range(size):
                hit[j] = abs(v[u(start) + u(j)]) > threshold
            n = append_hits(hit, eight, size, start, found, n)
    return absolute, squares, found[:n].copy()


@kernel
def omega(largest, absolute, squares, out):
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
