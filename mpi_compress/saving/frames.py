"""The frames of a checkpoint, each with its length, and how a state is written to one: as data, not as code.

A frame is the length of a JSON text in 8 bytes, the text, and the bytes of all arrays in the order of the text. None, truths, whole
numbers, finite floats and strings stand in it as they are; anything else is a list that begins with its kind:

    ["array", dtype, shape, "C" or "F"]   ["number", dtype], a scalar of NumPy   ["python", dtype], complex, or not finite
    ["list", …]  ["tuple", …]  ["set", …]  ["frozenset", …]  ["dict", key, value, key, value, …]  ["bytes", in hexadecimal]
    ["object", class, {attribute: value}], a dataclass
    ["same", i], the i-th array, list, set, dict or dataclass once more

`saved_states` reads them.
"""

import json
import math
import os
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import seals

LENGTH = struct.Struct("<Q")  # of a frame, or of the text in it, in bytes
DTYPE = re.compile(r"[<>|=][biufcSUmM][1-9][0-9]{0,8}(\[[0-9A-Za-z]+\])?")
"""The arrays that can be saved."""

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode
Frame = NDArray[np.uint8]


def write_frame(frame: Frame, out: BinaryIO) -> None:
    """Append a frame to a file."""
    out.write(LENGTH.pack(frame.size))
    out.write(frame.data)


def frames_in(stored: BinaryIO) -> Iterator[Frame]:
    """The frames of a sealed checkpoint; EOFError if it was cut."""
    end = os.fstat(stored.fileno()).st_size - seals.SIZE
    while stored.tell() < end:
        size = int.from_bytes(stored.read(LENGTH.size), "little")
        if size > end - stored.tell():
            raise EOFError
        yield np.fromfile(stored, dtype=np.uint8, count=size)


def dump(state: Any) -> Frame:
    """A state as a frame; TypeError if it holds what cannot be saved."""
    return np.frombuffer(b"".join(_parts_of(state)), dtype=np.uint8)


def size(state: Any) -> int:
    """The bytes of a state's frame, which is not made: large arrays are not copied."""
    return sum(memoryview(part).nbytes for part in _parts_of(state))


def _parts_of(state: Any) -> list[Any]:
    """The bytes of a frame, in order."""
    writer = _Writer()
    try:
        text = _encode(writer.tree(state)).encode()
    except RecursionError:
        raise TypeError("it is nested too deeply") from None
    return [LENGTH.pack(len(text)), text, *writer.parts]


class _Writer:
    """Makes the tree of a state, and collects the bytes of its arrays."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self._seen: dict[int, int] = {}  # the place of each value that can be shared, by its id

    def tree(self, value: Any) -> Any:
        kind: Any = type(value)
        if value is None or kind is int or kind is bool or kind is str:
            return value
        if kind is float and math.isfinite(value):
            return value
        if kind is float or kind is complex:
            return ["python", self._append(np.asarray(value))]
        if kind is tuple or kind is frozenset:
            return [kind.__name__, *map(self.tree, value)]
        if kind is bytes:
            return ["bytes", value.hex()]
        if isinstance(value, np.generic):
            return ["number", self._append(np.asarray(value))]
        if (place := self._seen.get(id(value))) is not None:
            return ["same", place]
        self._seen[id(value)] = len(self._seen)
        if kind is np.ndarray:
            order = "F" if value.flags.fnc else "C"
            return ["array", self._append(value.T if order == "F" else value), [*value.shape], order]
        if kind is list or kind is set:
            return [kind.__name__, *map(self.tree, value)]
        if kind is dict:
            return ["dict", *(self.tree(each) for pair in value.items() for each in pair)]
        if is_savable(kind):
            return ["object", name_of(kind), {name: self.tree(held) for name, held in attributes(value).items()}]
        raise TypeError(f"{name_of(kind)} does not belong in a checkpoint")

    def _append(self, array: NDArray[Any]) -> str:
        """Append the bytes of an array; its dtype."""
        dtype = array.dtype.str
        if dtype in ("<f8", "<i8", "<u8") and array.flags.c_contiguous:
            self.parts.append(array)
            return dtype
        if not DTYPE.fullmatch(dtype) or array.dtype.names:
            raise TypeError(f"an array of {array.dtype} does not belong in a checkpoint")
        self.parts.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        return dtype


def name_of(cls: Any) -> str:
    """A class's module and name."""
    return f"{cls.__module__}.{cls.__qualname__}"


@cache
def field_names(cls: Any) -> tuple[str, ...]:
    """The fields of a dataclass."""
    return tuple(field.name for field in fields(cls))


@cache
def is_savable(cls: Any) -> bool:
    """True for a dataclass whose instances hold nothing but attributes."""
    return is_dataclass(cls) and cls.__new__ is object.__new__


def held_in(state: Any) -> Iterator[Any]:
    """A state, and all that it holds: in dataclasses, dicts, lists, tuples and sets."""
    yield state
    inner: Iterable[Any] = state if isinstance(state, list | tuple | set | frozenset) else ()
    if is_dataclass(state) and not isinstance(state, type):
        inner = attributes(state).values()
    elif isinstance(state, Mapping):
        inner = state.values()
    for each in inner:
        yield from held_in(each)


def attributes(state: Any) -> dict[str, Any]:
    """What a dataclass holds: its fields, and what was set besides; not what it computed and cached."""
    cls: Any = type(state)
    names, held = field_names(cls), getattr(state, "__dict__", {})
    if tuple(held) == names:
        return held
    found = {name: getattr(state, name) for name in names if hasattr(state, name)}
    return found | {name: value for name, value in held.items() if name not in found and not hasattr(cls, name)}
