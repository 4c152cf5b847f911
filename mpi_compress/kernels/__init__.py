"""Numba kernels: plain functions on C-contiguous arrays, no objects, files or prints. Each has a NumPy twin in its test.

`kernel` compiles with the disk cache and without fast-math: the result is that of the loop as it is written, on any rank.
`reassociating_kernel` lets sums be reordered so that they use vector registers; it is for values that one node computes and no
other recomputes, and NaN and infinity still propagate. Kernels that call one hold all of its code: of a function that stays apart
there are copies, each optimised by itself, and which one runs depends on what was compiled in this process and what was cached.
`inlined_kernel` is for a few lines that kernels share in their inner loops.
"""

from typing import Any

from numba import njit, types
from numba.core.errors import TypingError

kernel = njit(cache=True, nogil=True, error_model="numpy")
inlined_kernel = njit(cache=True, nogil=True, error_model="numpy", inline="always")
REASSOCIATING: Any = {"error_model": "numpy", "fastmath": {"reassoc", "contract", "arcp", "nsz"}, "forceinline": True}
reassociating_kernel = njit(cache=True, nogil=True, **REASSOCIATING)


def side_by_side(v: Any) -> None:
    """Refuse, as a kernel is typed, an array that is no vector of float64 side by side: what reads blocks of it sees no strides.

    Raises:
        TypingError: for any other.
    """
    if not (isinstance(v, types.Array) and (v.ndim, v.layout, v.dtype) == (1, "C", types.float64)):
        raise TypingError(f"an array of float64 (d,) side by side is needed, not {v}")
