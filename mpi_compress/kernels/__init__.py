"""Numba kernels: plain functions on C-contiguous arrays, no objects, files or prints. Each has a NumPy twin in its test.

`kernel` compiles with the disk cache and without fast-math: the result is that of the loop as it is written, on any rank.
`reassociating_kernel` lets sums be reordered so that they use vector registers; it is for values that one node computes and no
other recomputes. NaN and infinity still propagate. It is always inlined: otherwise several copies of it, each optimised by itself,
would exist, and which one runs would depend on what was compiled in this process and what was cached.
`inlined_kernel` is for a few lines that kernels share in their inner loops.

A compiled kernel holds those that it calls, also those of other files. Numba's cache looks only at the kernel's own file; here a
kernel is compiled again when any file of this folder has changed.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import extending, njit, types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import TypingError

_SOURCES = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))).digest()


def _decorator(**options: Any) -> Callable:
    compiled = njit(cache=True, nogil=True, **options)

    def kernel(function: Callable) -> Any:
        made = compiled(function)
        if isinstance(made, Dispatcher):  # with NUMBA_DISABLE_JIT it is the function
            made._cache._cache_file._source_stamp = _SOURCES  # type: ignore[attr-defined]
        return made

    return kernel


kernel = _decorator(error_model="numpy")
inlined_kernel = _decorator(error_model="numpy", inline="always")
REASSOCIATING: Any = {"error_model": "numpy", "fastmath": {"reassoc", "contract", "arcp", "nsz"}, "forceinline": True}
reassociating_kernel = _decorator(**REASSOCIATING)
intrinsic: Any = extending.intrinsic  # whose declared type does not fit its calls in kernels


def side_by_side(v: Any) -> None:
    """Check, while a kernel is typed, that v is a contiguous vector of float64: code that reads blocks of it ignores strides.

    Raises:
        TypingError: it is another array.
    """
    if not (isinstance(v, types.Array) and (v.ndim, v.layout, v.dtype) == (1, "C", types.float64)):
        raise TypingError(f"a contiguous array of float64 (d,) is needed, not {v}")
