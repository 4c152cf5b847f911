"""The frames of a checkpoint, each with its length and its CRC-32, and how a state is written to one: as data, not as code.

A frame is the length of a JSON text in 8 bytes, the text, and the bytes of all arrays in the order of the text. None, truths, whole
numbers, finite floats and strings stand in it as they are; anything else is a list that begins with its kind:

    ["array", dtype, shape, "C" or "F"]   ["number", dtype], a scalar of NumPy   ["float", 8 bytes in hexadecimal], not finite
    ["list", …]  ["tuple", …]  ["set", …]  ["frozenset", …]  ["dict", key, value, key, value, …]  ["bytes", in hexadecimal]
    ["complex", real, imaginary]   ["object", class, {attribute: value}], a dataclass
    ["same", i], the i-th array, list, set, dict or dataclass once more

`saved_states` reads them.
"""

import hashlib
import json
import math
import os
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, BinaryIO, get_args

import numpy as np
from numpy.typing import NDArray

from mpi_compress.saving.state_kinds import attributes, is_savable, name_of

LENGTH = struct.Struct("<Q")  # of the text in a frame, in bytes
DTYPE = re.compile(r"[<>|=][biufcSUmM][1-9][0-9]{0,8}(\[[0-9A-Za-z]+\])?")
"""The arrays that can be saved."""

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode
_PREFIX = struct.Struct("<QI")  # bytes of a frame, and their CRC-32
Frame = NDArray[np.uint8]


class FrameWriter:
    """Appends frames to a file."""

    def __init__(self, out: BinaryIO):
        self._out = out

    def add(self, frame: Frame) -> None:
        self._out.write(_PREFIX.pack(frame.size, zlib.crc32(frame.data)))
        self._out.write(frame.data)


def frames_in(stored: BinaryIO) -> Iterator[Frame]:
    """The frames of a checkpoint; EOFError if the file was cut, ValueError if it was changed."""
    while prefix := stored.read(_PREFIX.size):
        if len(prefix) < _PREFIX.size:
            raise EOFError
        size, crc = _PREFIX.unpack(prefix)
        if size > os.fstat(stored.fileno()).st_size - stored.tell():
            raise EOFError
        frame = np.fromfile(stored, dtype=np.uint8, count=size)
        if zlib.crc32(frame.data) != crc:
            raise ValueError("a frame is damaged")
        yield frame


def dump(state: Any) -> Frame:
    """A state as a frame; TypeError if it holds what cannot be saved."""
    writer = _Writer()
    try:
        text = _encode(writer.tree(state)).encode()
    except RecursionError:
        raise TypeError("it is nested too deeply") from None
    return np.frombuffer(b"".join([LENGTH.pack(len(text)), text, *writer.parts]), dtype=np.uint8)


class _Writer:
    """Makes the tree of a state, and collects the bytes of its arrays."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self._seen: dict[int, int] = {}  # the place of each value that can be shared, by its id

    def tree(self, value: Any) -> Any:
        kind: Any = type(value)
        if value is None or kind is int or kind is bool or kind is str:
            return value
        if kind is float:
            return value if math.isfinite(value) else ["float", struct.pack("<d", value).hex()]
        if write := _WITHOUT_PLACE.get(kind):
            return write(self, value)
        if isinstance(value, np.generic):
            return self._number(value)
        if (place := self._seen.get(id(value))) is not None:
            return ["same", place]
        self._seen[id(value)] = len(self._seen)
        if write := _WITH_PLACE.get(kind):
            return write(self, value)
        if is_savable(kind):
            return ["object", name_of(kind), {name: self.tree(held) for name, held in attributes(value).items()}]
        raise TypeError(f"{name_of(kind)} does not belong in a checkpoint")

    def _array(self, value: NDArray[Any]) -> list[Any]:
        order = "F" if value.flags.fnc else "C"
        return ["array", self._append(value.T if order == "F" else value), [*value.shape], order]

    def _number(self, value: np.generic) -> list[Any]:
        return ["number", self._append(np.asarray(value))]

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

    def _several(self, values: Any) -> list[Any]:
        return [type(values).__name__, *map(self.tree, values)]

    def _dict(self, values: dict[Any, Any]) -> list[Any]:
        return ["dict", *(self.tree(each) for pair in values.items() for each in pair)]


_WITHOUT_PLACE: dict[type, Callable[[_Writer, Any], list[Any]]] = {
    tuple: _Writer._several,
    frozenset: _Writer._several,
    bytes: lambda _, value: ["bytes", value.hex()],
    complex: lambda writer, value: ["complex", writer.tree(value.real), writer.tree(value.imag)],
}
_WITH_PLACE: dict[type, Callable[[_Writer, Any], list[Any]]] = {
    np.ndarray: _Writer._array,
    list: _Writer._several,
    set: _Writer._several,
    dict: _Writer._dict,
}


def schema_of(states: Iterable[Any], columns: Iterable[str]) -> str:
    """A hash of how states, instances or their classes, are laid out, and of the columns of a trace."""
    seen: set[type] = set()
    lines = [line for state in states for line in _layout(state, seen)]
    return hashlib.sha256("\n".join([*lines, "columns", *columns]).encode()).hexdigest()[:16]


def _layout(state: Any, seen: set[type]) -> Iterator[str]:
    """A line for each kind of value in a state, in the order of its fields; each dataclass once."""
    kind = state if isinstance(state, type) else type(state)
    yield f"{kind.__module__}.{kind.__qualname__}"
    if is_dataclass(kind):
        if kind not in seen:
            seen.add(kind)
            yield from _fields(kind, seen)
        if state is not kind:
            for field in fields(kind):
                if is_dataclass(type(value := getattr(state, field.name, None))) and type(value) not in seen:
                    yield from _layout(value, seen)
    elif isinstance(state, Mapping):
        for key, value in state.items():
            yield repr(key)
            yield from _layout(value, seen)
    elif isinstance(state, list | tuple):
        for value in state:
            yield from _layout(value, seen)


def _fields(kind: type, seen: set[type]) -> Iterator[str]:
    """The fields of a dataclass, and of those that the types of its fields name."""
    for field in fields(kind):
        yield f"{field.name}: {field.type!r}"
        for named in _named(field.type):
            if named not in seen:
                yield from _layout(named, seen)


def _named(hint: Any) -> Iterator[type]:
    """The dataclasses in the type of a field."""
    if isinstance(hint, type) and is_dataclass(hint):
        yield hint
    for inner in get_args(hint):
        yield from _named(inner)
