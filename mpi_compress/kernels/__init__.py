"""Numba kernels: plain functions on C-contiguous arrays, no objects, files or prints. Each has a NumPy twin in its test.

`kernel` compiles with the disk cache and without fast-math: the result is that of the loop as it is written, on any rank.
`reassociating_kernel` lets sums be reordered so that they use vector registers; it is for values that one node computes and no
other recomputes. NaN and infinity still propagate. It is always inlined: otherwise several copies of it, each optimised by itself,
would exist, and which one runs would depend on what was compiled in this process and what was cached.
`inlined_kernel` is for a few lines that kernels share in their inner loops.
"""

from typing import Any

from numba import extending, njit, types
from numba.core.errors import TypingError

kernel = njit(cache=True, nogil=True, error_model="numpy")
inlined_kernel = njit(cache=True, nogil=True, error_model="numpy", inline="always")
REASSOCIATING: Any = {"error_model": "numpy", "fastmath": {"reassoc", "contract", "arcp", "nsz"}, "forceinline": True}
reassociating_kernel = njit(cache=True, nogil=True, **REASSOCIATING)
intrinsic: Any = extending.intrinsic  # whose declared type does not fit its calls in kernels


def side_by_side(v: Any) -> None:
    """Check, while a kernel is typed, that v is a contiguous vector of float64: code that reads blocks of it ignores strides.

    Raises:
        TypingError: it is another array.
    """
    if not (isinstance(v, types.Array) and (v.ndim, v.layout, v.dtype) == (1, "C", types.float64)):
        raise TypingError(f"a contiguous array of float64 (d,) is needed, not {v}")
