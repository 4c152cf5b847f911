"""Numba kernels: plain functions on C-contiguous arrays, no objects, files or prints. Each has a NumPy twin in its test.

`kernel` compiles with the disk cache and without fast-math: the result is that of the loop as it is written, on any rank.
`reassociating_kernel` lets sums be reordered so that they use vector registers; it is for values that one node computes and no
other recomputes, and NaN and infinity still propagate. `inlined_kernel` is for a few lines that kernels share in their inner loops.
"""

from numba import njit

kernel = njit(cache=True, nogil=True, error_model="numpy")
inlined_kernel = njit(cache=True, nogil=True, error_model="numpy", inline="always")
reassociating_kernel = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz"})
