"""Reads states that `frames.dump` wrote. Nothing in a file becomes code, and no array is made that the file does not hold.

A state is read by the state that the run has made at its start, which says what its types are. The file never does.
"""

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.registry import is_ours
from mpi_compress.messages.kinds import Compressed
from mpi_compress.problem.scaled_vector import ScaledVector
from mpi_compress.saving.frames import DTYPE, LENGTH, Frame, field_names, held_in, is_savable, name_of

UNKNOWN: Any = object()
"""Stands for a first state that is not known."""

_MOST_AXES = 32


class Damaged(ValueError):
    """What was saved does not go with the states of the run."""


@dataclass(frozen=True)
class Expected:
    """What the states of a run may become.

    Attributes:
        exact: True if every value keeps the kind that it begins with, an array its dtype and shape: this package's algorithms.
        dim: d; also in other algorithms an array (d,) of the first state keeps dtype and shape.
        algorithm: the class whose module defines further states, where not `exact`.
    """

    exact: bool
    dim: int
    algorithm: type = object


def load(frame: Frame, first: Any, expected: Expected) -> Any:
    """The state of a frame, by the run's first state; Damaged if it does not go with it. `first` is left as it is."""
    try:
        (length,) = LENGTH.unpack(frame[: LENGTH.size].tobytes())
        start = LENGTH.size + length
        tree = json.loads(frame[LENGTH.size : start].tobytes().decode(), parse_constant=_no_constant)
        reader = _Reader(frame, start, first, expected)
        state = reader.build(tree, first)
        if is_dataclass(first) and type(state) is not type(first):
            raise Damaged(f"{name_of(type(state))} was saved, and the run begins with {name_of(type(first))}")
        if reader.at != frame.size:
            raise Damaged("a frame holds more than its text says")
        return state
    except Damaged:
        raise
    except Exception as error:  # the file says something that cannot be, and any step may be the first to see it
        raise Damaged(f"{type(error).__name__}: {error}") from None


class _Reader:
    """Builds the state that a tree describes, of types of the running code."""

    def __init__(self, frame: Frame, at: int, first: Any, expected: Expected):
        self.at = at  # where the next array begins
        self._frame, self._first, self._expected = frame, first, expected
        self._places: list[Any] = []

    def build(self, tree: Any, first: Any) -> Any:
        """The value of a tree; Damaged if it does not go with the first state at this place."""
        if type(tree) is dict:
            raise Damaged("a value has no kind")
        value = _BUILD[tree[0]](self, first, *tree[1:]) if type(tree) is list else tree
        if not self._goes_with(value, first):
            raise Damaged(
                f"{name_of(type(value))} was saved, and the run begins with {name_of(type(first))}, or with another shape"
            )
        return value

    def _goes_with(self, value: Any, first: Any) -> bool:
        if first is UNKNOWN:
            return True
        if isinstance(first, np.ndarray) and (self._expected.exact or first.shape == (self._expected.dim,)):
            return isinstance(value, np.ndarray) and (value.dtype, value.shape) == (first.dtype, first.shape)
        if not self._expected.exact:
            return True
        if isinstance(first, _WHOLE):
            return isinstance(value, _WHOLE)
        if isinstance(first, _REAL):
            return isinstance(value, (*_WHOLE, *_REAL))
        return type(value) is type(first) and (not isinstance(first, list | tuple) or len(value) == len(first))

    def _array(self, first: Any, dtype: Any, shape: Any, order: Any) -> NDArray[Any]:
        if not (order in ("C", "F") and type(shape) is list and len(shape) <= _MOST_AXES):
            raise Damaged("an array has no shape")
        made = self.take(dtype, shape).reshape(shape, order=order).copy(order)
        self._places.append(made)
        return made

    def take(self, dtype: Any, shape: list[Any]) -> NDArray[Any]:
        """The next array, flat, in the memory of the frame, which refuses to hold more than it has."""
        if not (DTYPE.fullmatch(dtype) and all(type(size) is int and size >= 0 for size in shape)):
            raise Damaged("an array has no dtype or shape")
        array = np.frombuffer(self._frame, dtype, math.prod(shape), self.at)
        self.at += array.nbytes
        if array.dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
            raise Damaged("a truth is neither true nor false")
        if array.dtype.kind == "U":
            array.tolist()  # ValueError if it is no text
        return array

    def _collection(self, first: Any, *trees: Any, kind: Any) -> Any:
        """A list, tuple, set or frozenset; one that can change is there before what it holds, which may be itself."""
        known = first if type(first) is kind and kind in (list, tuple) else ()
        each = (self.build(tree, known[i] if i < len(known) else UNKNOWN) for i, tree in enumerate(trees))
        if kind in (tuple, frozenset):
            return kind(each)
        made = kind()
        self._places.append(made)
        (made.extend if kind is list else made.update)(each)
        return made

    def _dict(self, first: Any, *trees: Any) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        self._places.append(made)
        known = first if type(first) is dict else {}
        for at in range(0, len(trees), 2):
            key = self.build(trees[at], UNKNOWN)
            made[key] = self.build(trees[at + 1], known.get(key, UNKNOWN))
        return made

    def _object(self, first: Any, name: str, attributes: Mapping[str, Any]) -> Any:
        cls: Any = type(first) if name_of(type(first)) == name else None if self._expected.exact else self._kinds.get(name)
        if not is_savable(cls):
            raise Damaged(f"{name} is no state of this run")
        names, made, place = field_names(cls), object.__new__(cls), len(self._places)
        if (self._expected.exact or is_ours(cls)) and attributes.keys() != set(names):
            raise Damaged(f"{name} has other fields")
        self._places.append(made)
        for attribute, tree in attributes.items():
            if attribute not in names and hasattr(cls, attribute):
                raise Damaged(f"{name}.{attribute} is no state")
            begun = getattr(first, attribute, UNKNOWN) if type(first) is cls else UNKNOWN
            object.__setattr__(made, attribute, self.build(tree, begun))
        if isinstance(made, Compressed):  # kernels trust it
            self._places[place] = made = made.checked(made.dim)
        return made

    def _same(self, first: Any, place: int) -> Any:
        if not (type(place) is int and 0 <= place < len(self._places)):
            raise Damaged("a value is shared with none")
        return self._places[place]

    @cached_property
    def _kinds(self) -> Mapping[str, type]:
        """The dataclasses that the states of a user's algorithm may hold, by name. They are those of its first states, all that
        the modules of these have, the kinds of compressed vectors, and `ScaledVector`."""
        own = {self._expected.algorithm, *(type(each) for each in held_in(self._first) if is_dataclass(each))}
        modules = {cls.__module__ for cls in own if not is_ours(cls) and cls.__module__ in sys.modules}
        theirs = (each for module in modules for each in vars(sys.modules[module]).values())
        found: list[Any] = [ScaledVector, *_subclasses(Compressed), *own, *theirs]
        return {name_of(cls): cls for cls in found if isinstance(cls, type) and is_dataclass(cls)}


_WHOLE = (bool, int, np.integer, np.bool_)
_REAL = (float, np.floating)
_BUILD: dict[str, Callable[..., Any]] = {
    "array": _Reader._array,
    "number": lambda reader, first, dtype: reader.take(dtype, [])[0],
    "python": lambda reader, first, dtype: reader.take(dtype, [])[0].item(),
    "bytes": lambda reader, first, text: bytes.fromhex(text),
    "dict": _Reader._dict,
    "object": _Reader._object,
    "same": _Reader._same,
    **{kind.__name__: partial(_Reader._collection, kind=kind) for kind in (list, tuple, set, frozenset)},
}


def _no_constant(name: str) -> Any:
    raise Damaged(f"{name} is no number of JSON")


def _subclasses(cls: type) -> Iterator[type]:
    each: type
    for each in cls.__subclasses__():
        yield each
        yield from _subclasses(each)
