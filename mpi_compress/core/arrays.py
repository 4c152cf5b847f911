"""Types of arrays, and checks of those that users' parts give.

A function returns the array as kernels need it, contiguous and of the given shape, or raises ValueError; `name` is what the error
text calls the array.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Indices = NDArray[np.integer[Any]]  # uint32 once they are checked
Flags = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]

_FLAGS, _NUMBERS, _WHOLE = "b", "fiu", "iu"  # NumPy's kinds of types
_WANTED = {_FLAGS: "true or false", _WHOLE: "whole numbers", _NUMBERS: "real numbers"}


@lru_cache(maxsize=64)
def in_turn(m: int) -> Places:
    """0, 1, …, m − 1."""
    return np.arange(m)


def floats(given: Any, shape: tuple[int, ...], name: str) -> NDArray[np.float64]:
    """Real numbers, as float64."""
    return _array(given, _NUMBERS, shape, name).astype(np.float64, copy=False)


def number(given: Any, name: str) -> float:
    """One real number."""
    if np.shape(given) != ():
        raise ValueError(f"{name} has shape {np.shape(given)}; it should be one number")
    return float(floats(given, (), name))


def flags(given: Any, shape: tuple[int, ...], name: str) -> NDArray[np.bool_]:
    """Truth values."""
    return _array(given, _FLAGS, shape, name)


def whole(given: Any, shape: tuple[int, ...], name: str, least: int | None = None, most: int | None = None) -> NDArray[Any]:
    """Whole numbers of any type, from `least` to `most`."""
    array = _array(given, _WHOLE, shape, name)
    if least is not None and most is not None and array.size and not (array.min() >= least and array.max() <= most):
        raise ValueError(f"{name} go from {array.min()} to {array.max()}; they should be from {least} to {most}")
    return array


def increasing(given: Any, dim: int, name: str) -> tuple[NDArray[np.uint32], Any]:
    """Coordinates of a vector (dim,), sorted, as uint32; and the order that sorts what goes with them."""
    array = np.asarray(given)
    if array.dtype.kind == _FLAGS:
        raise ValueError(f"{name} are true and false; they should be coordinates: np.flatnonzero gives them")
    array = whole(given, (array.size,), name) if array.size else np.empty(0, dtype=np.uint32)
    order = slice(None) if np.all(array[:-1] < array[1:]) else np.argsort(array)
    array = array[order]
    if array.size and not (array[0] >= 0 and array[-1] < dim):
        raise ValueError(f"{name} go from {array[0]} to {array[-1]}; they should be coordinates from 0 to {dim - 1}")
    twice = array[1:][array[1:] == array[:-1]]
    if twice.size:
        raise ValueError(f"{name} have {twice[0]} more than once; each coordinate is sent once")
    return array.astype(np.uint32, copy=False), order


def vector(v: Any, dim: int) -> NDArray[np.float64]:
    """A vector (dim,) as kernels need it; nearly every vector is so already."""
    if type(v) is np.ndarray and v.dtype == np.float64 and v.shape == (dim,) and v.flags.c_contiguous:
        return v
    return floats(v, (dim,), "coordinates")


def read_only(v: Any) -> NDArray[np.float64]:
    """A view of a vector that nobody can write to."""
    out = np.asarray(v).view()
    out.flags.writeable = False
    return out


def finite_where(x: NDArray[np.float64], given: Any, name: str) -> NDArray[np.float64]:
    """Numbers of the shape of x, none of which is NaN where x is finite."""
    found = floats(given, x.shape, f"{name}s")
    if (wrong := np.isnan(found) & np.isfinite(x)).any():
        raise ValueError(f"the {name} is NaN at {int(np.argmax(wrong))}, where {x[np.argmax(wrong)]:g} was given")
    return found


def pair(given: Any, wanted: str) -> tuple[Any, Any]:
    """Two values."""
    if not (isinstance(given, tuple) and len(given) == 2):
        raise ValueError(f"{shown(given)} was given; it should be two: {wanted}")
    return given


def raw(data: Any) -> NDArray[np.uint8]:
    """Bytes of any kind, as uint8; a copy where they cannot be written to, since kernels are compiled for arrays that can."""
    if isinstance(data, bytes | bytearray | memoryview):
        array = np.frombuffer(data, dtype=np.uint8)
        return array if array.flags.writeable else array.copy()
    if not (isinstance(data, np.ndarray) and data.dtype == np.uint8 and data.ndim == 1):
        raise ValueError(f"{shown(data)} was given; it should be bytes, or an array of uint8")
    return np.ascontiguousarray(data)


def shown(given: Any) -> str:
    """A short text for an error line."""
    return f"an array of {given.dtype} {given.shape}" if isinstance(given, np.ndarray) else f"{given!r:.60}"


def _array(given: Any, kinds: str, shape: tuple[int, ...], name: str) -> NDArray:
    """A contiguous array of that shape, whose type is of one of NumPy's `kinds`."""
    array = np.asarray(given)
    if array.shape != shape:
        raise ValueError(f"{name} have shape {array.shape}; it should be {shape}")
    if array.dtype.kind not in kinds and array.size:
        raise ValueError(f"{name} are of type {array.dtype}; they should be {_WANTED[kinds]}")
    return np.asarray(array, order="C")
