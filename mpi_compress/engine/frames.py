"""The frames of a checkpoint: states as bytes, each frame with its length and its CRC-32.

A frame holds arrays, numbers and dataclasses; nothing else is built from one.
"""

import hashlib
import io
import os
import pickle
import struct
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, BinaryIO, get_args

import numpy as np
from numpy.typing import NDArray

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
        frame = np.fromfile(stored, dtype=np.uint8, count=min(size, os.fstat(stored.fileno()).st_size))
        if frame.size < size:
            raise EOFError
        if zlib.crc32(frame.data) != crc:
            raise ValueError("a frame is damaged")
        yield frame


def dump(state: Any) -> Frame:
    """A state as a frame."""
    return np.frombuffer(pickle.dumps(state, protocol=4), dtype=np.uint8)


def load(frame: Frame) -> Any:
    """The state of a frame; pickle.UnpicklingError if the frame names something that is no state."""
    return _StateUnpickler(io.BytesIO(frame.data)).load()


def unsavable(state: Any, *others: Any) -> str:
    """Why a state could not be saved and given back as it is, "" if it can; `others` are saved apart from it."""
    try:
        load(dump(state))
    except (pickle.PickleError, AttributeError, TypeError) as error:
        return f"its state cannot be saved in a checkpoint: {error}; dataclasses of arrays, numbers, lists and dicts can"
    arrays, elsewhere = list(_arrays(state)), list(_arrays(others))
    for i, one in enumerate(arrays):
        if any(one is not other and np.may_share_memory(one, other) for other in arrays[i + 1 :]):
            return "its state has arrays that share memory, which a checkpoint would part: keep one of them"
        if any(np.may_share_memory(one, other) for other in elsewhere):
            return "its state shares memory with another, which a checkpoint would part: keep a copy"
    return ""


def _arrays(state: Any) -> Iterator[NDArray[Any]]:
    """The arrays in a state."""
    if isinstance(state, np.ndarray):
        yield state
    elif is_dataclass(state) and not isinstance(state, type):
        yield from _arrays(list(vars(state).values()) if hasattr(state, "__dict__") else [])
    elif isinstance(state, Mapping):
        yield from _arrays(list(state.values()))
    elif isinstance(state, list | tuple | set):
        for each in state:
            yield from _arrays(each)


class _StateUnpickler(pickle.Unpickler):
    """Builds arrays, numbers and dataclasses of modules that are loaded already, and refuses everything else."""

    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] == "numpy" and name in ("_reconstruct", "ndarray", "dtype", "scalar"):
            return super().find_class(module, name)
        found = getattr(sys.modules.get(module), name, None)
        if not (isinstance(found, type) and is_dataclass(found)):
            raise pickle.UnpicklingError(f"{module}.{name} does not belong in a checkpoint")
        return found


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
