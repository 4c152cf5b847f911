"""The largest coordinates of a vector, with ties settled: the lowest index first. NaN counts as the largest magnitude."""

import numpy as np
from numpy.typing import NDArray

from mpi_compress.kernels import kernel

_HEAP_UP_TO = 256


def largest(v: NDArray[np.float64], k: int) -> NDArray[np.uint32]:
    """The indices (k,) of the k largest |v_j|, increasing; among equal ones those of lowest index."""
    if k >= v.size:
        return np.arange(v.size, dtype=np.uint32)
    if k <= _HEAP_UP_TO:
        threshold = kth_largest_by_heap(v, k)
    else:
        magnitude = np.abs(v)
        np.nan_to_num(magnitude, copy=False, nan=np.inf, posinf=np.inf)
        threshold = np.partition(magnitude, v.size - k)[v.size - k]
    out = np.empty(k, dtype=np.uint32)
    take_from_threshold(v, threshold, out)
    return out


def in_order(v: NDArray[np.float64], indices: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Increasing `indices` reordered so that |v| falls along them, ties by lowest index."""
    return indices[np.argsort(-np.abs(v[indices]), kind="stable")]


@kernel
def kth_largest_by_heap(v, k):
    """The k-th largest |v_j| for 1 ≤ k ≤ d: one pass with a heap of the k largest, smallest on top."""
    heap = np.empty(k)
    size = 0
    for a in v:
        a = abs(a)
        if np.isnan(a):
            a = np.inf
        if size < k:
            i = size
            size += 1
            while i > 0 and heap[(i - 1) >> 1] > a:
                heap[i] = heap[(i - 1) >> 1]
                i = (i - 1) >> 1
            heap[i] = a
        elif a > heap[0]:
            i = 0
            while True:
                child = 2 * i + 1
                if child >= k:
                    break
                if child + 1 < k and heap[child + 1] < heap[child]:
                    child += 1
                if heap[child] >= a:
                    break
                heap[i] = heap[child]
                i = child
            heap[i] = a
    return heap[0]


@kernel
def take_from_threshold(v, threshold, out):
    """out (k,): the indices with |v_j| > threshold and, of those equal to it, the first ones, in increasing order.

    `threshold` is the k-th largest |v_j|, so fewer than k are above it and at least k reach it.
    """
    above = 0
    for a in v:
        if not abs(a) <= threshold:
            above += 1
    ties = out.size - above
    at = 0
    for j in range(v.size):
        a = abs(v[j])
        if not a <= threshold:
            out[at] = j
            at += 1
        elif a == threshold and ties > 0:
            ties -= 1
            out[at] = j
            at += 1
        if at == out.size:
            break
