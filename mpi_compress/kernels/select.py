"""The largest coordinates of vectors, exactly; of equal ones those with the lowest index.

Magnitudes are compared as integers, as in `hits`.

The k-th largest is found among few. For small k, the peaks of blocks say which blocks to search. Otherwise a sample of the vector
gives a value that is almost surely a little below it, one pass collects what is above, and a radix selection settles those. If
the sample misleads, all coordinates are searched: no vector costs more than a few passes, and no result depends on the sample.
"""

import numpy as np
from numpy.typing import NDArray

from mpi_compress.kernels import kernel
from mpi_compress.kernels.bits import bit_length
from mpi_compress.kernels.hits import MAGNITUDE, Indices, take
from mpi_compress.kernels.instructions import trailing_zeros
from mpi_compress.kernels.threshold import reaching

u = np.uint64
_BELOW_ALL = np.int64(-1)
_INFINITE = np.float64(np.inf).view(np.int64)
_GLANCE = 64  # coordinates whose largest magnitude says whether any of them is wanted
_HEAP_UP_TO = 256  # the largest k for a heap
_HEAP_SHARE = 5  # and the largest share of the keys, 2⁻⁵: where keys rise, each goes through the heap
_FEW = 16  # the k up to which one pass, or a heap, is used whatever the share
_DIGIT = np.int64(11)  # bits of a step of the radix selection
_SHORT_DIGIT = np.int64(8)


def largest(vs: NDArray[np.float64], counts: int | NDArray[np.int64]) -> tuple[Indices, NDArray[np.float64], NDArray[np.int64]]:
    """The increasing indices of the k largest |v_j| of each row of vs (m, d), of equal ones those with the lowest index; the values
    there; and where those of a row end. `counts`: k, one for all rows or (m,)."""
    m, d = vs.shape
    ends = np.cumsum(np.minimum(counts, d)) if np.ndim(counts) else min(int(counts), d) * np.arange(1, m + 1)
    out, values = np.empty(ends[-1], dtype=np.uint32), np.empty(ends[-1])
    take_largest_of_rows(vs, ends, out, values)
    return out, values, ends


@kernel
def take_few_largest(v, out, values):
    """out (k,): the indices of the k largest |v_j|, increasing, ties to the lowest index, and the values (k,) there; 1 ≤ k < d. For
    small k: one pass. The k-th largest of the blocks' peaks is no larger than the k-th largest of all: few blocks are looked at
    again. There the k best so far are kept in order, the best first; what comes later must be larger to come before."""
    bits = v.view(np.int64)
    k = out.size
    last = u(k - 1)
    peaks = _peaks(bits)
    least = kth_largest(peaks.copy(), k) if k <= peaks.size else np.int64(0)
    best = np.full(k, least - 1)
    for b in range(peaks.size):
        if peaks[b] > best[last]:
            for j in range(b * _GLANCE, min((b + 1) * _GLANCE, bits.size)):
                key = bits[u(j)] & MAGNITUDE
                if key > best[last]:
                    i = last
                    while i > u(0) and best[i - u(1)] < key:
                        best[i] = best[i - u(1)]
                        out[i] = out[i - u(1)]
                        i -= u(1)
                    best[i] = key
                    out[i] = j
    _sort(out)
    take(v, out, values)


@kernel
def _sort(few):
    """Sort few numbers where they stand, by insertion. Numba's own sort takes half as long to compile as all else of a top-k."""
    for at in range(1, few.size):
        a, i = few[at], u(at)
        while i > u(0) and few[i - u(1)] > a:
            few[i] = few[i - u(1)]
            i -= u(1)
        few[i] = a


@kernel
def _peaks(bits):
    """The largest magnitude of each block of neighbours."""
    whole = u(bits.size // _GLANCE)
    out = np.zeros((bits.size + _GLANCE - 1) // _GLANCE, dtype=np.int64)
    for b in range(whole):
        peak = np.int64(0)
        for j in range(b * u(_GLANCE), b * u(_GLANCE) + u(_GLANCE)):  # a constant number of steps: the compiler unrolls the loop
            peak = max(peak, bits[j] & MAGNITUDE)
        out[b] = peak
    for j in range(whole * u(_GLANCE), u(bits.size)):
        out[whole] = max(out[whole], bits[j] & MAGNITUDE)
    return out


@kernel
def take_largest(v, out, values):
    """out (k,): the indices of the k largest |v_j|, increasing, ties to the lowest index, and the values (k,) there; 1 ≤ k < d."""
    bits = v.view(np.int64)
    k = out.size
    low, high = _bracket(bits, k)
    if low >= _INFINITE:  # the next number above it is NaN
        low = _BELOW_ALL
    indices, kept = np.empty(v.size, dtype=np.uint32), np.empty(v.size)
    found = np.int64(reaching(v, np.int64(low + 1).view(np.float64), indices, kept))
    if found < k:  # the k-th is `low` itself, or the sample misled
        for j in range(bits.size):
            found += (bits[j] & MAGNITUDE) == low
        _take_from(bits, low if found >= k else kth_largest(bits & MAGNITUDE, k), out)
        take(v, out, values)
        return
    keys = kept[:found].view(np.int64)
    among = np.empty(found + 1, dtype=np.int64)
    n = u(0)
    for i in range(found):
        key = keys[i] & MAGNITUDE
        among[n] = key
        n += u(key <= high)
    rank = k - (found - np.int64(n))
    if rank < 1:  # the sample misled, above
        among, n, rank = keys & MAGNITUDE, u(found), k
    chosen = np.empty(k, dtype=np.uint32)
    _take_from(keys, kth_largest(among[:n], rank), chosen)
    for i in range(k):
        out[i], values[i] = indices[chosen[i]], kept[chosen[i]]


@kernel
def take_largest_of_rows(vs, ends, out, values):
    """The largest of each row, as many as fit before its end, to `out` and `values` (ends[m − 1],)."""
    start = 0
    for i in range(ends.size):
        chosen, there = out[start : ends[i]], values[start : ends[i]]
        if chosen.size >= vs.shape[1]:
            for j in range(chosen.size):
                chosen[j], there[j] = j, vs[i, j]
        elif chosen.size > _FEW:
            take_largest(vs[i], chosen, there)
        elif chosen.size > 0:
            take_few_largest(vs[i], chosen, there)
        start = ends[i]


@kernel
def _bracket(bits, k):
    """Two magnitudes, likely just below and just above the k-th largest."""
    m = min(max(bits.size >> 6, 512), 16384)
    if bits.size < 4 * m:
        return _BELOW_ALL, MAGNITUDE
    sample = _sample(bits, m)
    expected = k * m / bits.size
    margin = 4 * np.sqrt(expected) + 4
    rank = min(k, np.int64(expected + margin) + 1)
    low = kth_largest(sample.copy(), rank) if rank < m else _BELOW_ALL
    rank = np.int64(expected - margin)
    high = kth_largest(sample, rank) if rank > 0 else MAGNITUDE
    return low, high


@kernel
def _sample(bits, m):
    """m magnitudes, one of each ⌊d/m⌋ neighbours and anywhere among them, so that periodic vectors do not mislead."""
    stride = u(bits.size // m)
    out = np.empty(m, dtype=np.int64)
    x = u(0x9E3779B97F4A7C15)
    for i in range(m):
        x = x * u(6364136223846793005) + u(1442695040888963407)
        out[i] = bits[u(i) * stride + (((x >> u(32)) * stride) >> u(32))] & MAGNITUDE
    return out


@kernel
def kth_largest(keys, k):
    """The k-th largest of `keys` (m,) int64 from 0 on, for 1 ≤ k ≤ m. The array is used up."""
    if k <= min(_HEAP_UP_TO, max(keys.size >> _HEAP_SHARE, _FEW)):
        return _kth_by_heap(keys, k)
    ones, both = np.int64(0), MAGNITUDE
    for i in range(keys.size):
        ones |= keys[i]
        both &= keys[i]
    differ = ones ^ both
    low = np.int64(bit_length(u(differ)))  # the lowest bit that is settled, up to now above all that differ
    end = np.int64(trailing_zeros(u(differ)))
    m = keys.size
    count = np.empty(1 << _DIGIT, dtype=np.int64)
    while low > end:
        width = min(_DIGIT if m > 4096 else _SHORT_DIGIT, low - end)
        low -= width
        mask = (np.int64(1) << width) - 1
        count[: mask + 1] = 0
        for i in range(m):
            count[(keys[i] >> low) & mask] += 1
        digit = mask
        while count[digit] < k:
            k -= count[digit]
            digit -= 1
        if count[digit] < m:
            n = u(0)
            for i in range(m):
                key = keys[i]
                keys[n] = key
                n += u(((key >> low) & mask) == digit)
            m = np.int64(n)
        if m <= 2 * _FEW:
            return _kth_by_heap(keys[:m], k)
    return keys[0]


@kernel
def _kth_by_heap(keys, k):
    """The same for small k: one pass with a heap of the k largest, smallest on top."""
    heap = np.full(k, _BELOW_ALL)
    k = u(k)
    for at in range(keys.size):
        a = keys[at]
        if a > heap[u(0)]:
            i = u(0)
            while True:
                child = u(2) * i + u(1)
                if child >= k:
                    break
                if child + u(1) < k and heap[child + u(1)] < heap[child]:
                    child += u(1)
                if heap[child] >= a:
                    break
                heap[i] = heap[child]
                i = child
            heap[i] = a
    return heap[u(0)]


@kernel
def _take_from(bits, threshold, out):
    """out (k,): the indices above `threshold`, which is the k-th largest, and the first of those equal to it."""
    above = 0
    for j in range(bits.size):
        above += (bits[j] & MAGNITUDE) > threshold
    ties = out.size - above
    n = u(0)
    for j in range(bits.size):
        out[n] = j
        b = bits[j] & MAGNITUDE
        tie = (b == threshold) & (ties > 0)
        ties -= tie
        n += u((b > threshold) | tie)
        if n == u(out.size):
            return
