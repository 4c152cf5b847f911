"""Batches: the bytes of several messages, one after another, and what makes them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from mpi_compress.core import arrays
from mpi_compress.core.arrays import Places
from mpi_compress.kernels.vectors import lengths_of
from mpi_compress.messages.fields import ROOM, last
from mpi_compress.messages.kinds import Bytes, Compressed, Dense, Each, concatenated

LENGTH_BYTES = 4  # the length that precedes each message
_LONG = 2**20  # bytes; batches of longer ones are not joined before they must be
_ROOM: Bytes = np.zeros(ROOM, dtype=np.uint8)


def new_room(size: int) -> Bytes:
    """Memory for so many bytes."""
    return np.empty(size, dtype=np.uint8)


@dataclass(eq=False)
class Batch:
    """The bytes that master and workers exchange: the messages of m senders. No bytes at all say nothing: `SILENT`. `content` keeps
    what was decoded: a sender that needs what its receiver will see, and a receiver in the same process, decode once."""

    data: Bytes  # one after another, and `fields.ROOM` bytes more; `in_one` where there are `pieces`
    ends: Places  # (m,) where each ends
    content: Compressed | None = field(default=None, repr=False)  # rows, of those that are not silent; of one message the vector
    refused: Mapping[int, OverflowError | None] = field(default_factory=dict, repr=False)  # not encoded; why, at the sender
    one: bool = False  # True: the message of one vector
    pieces: Sequence["Batch"] = field(default=(), repr=False)  # long messages, which stay where they are until all go on

    @cached_property
    def lengths(self) -> Places:
        """(m,) the bytes of each."""
        return lengths_of(self.ends)

    @property
    def wire_bits(self) -> Any:
        """(m,) 8 · (the 4-byte length + the bytes), padding included; a number for one."""
        bits = 8 * (LENGTH_BYTES + self.lengths)
        return int(bits[0]) if self.one else bits

    def __len__(self) -> int:
        return self.ends.size

    @property
    def raw(self) -> Bytes:
        """The messages alone."""
        return self.in_one()[: self.size]

    @cached_property
    def size(self) -> int:
        """The bytes of all."""
        return last(self.ends)

    def in_one(self, room: Callable[[int], Bytes] = new_room) -> Bytes:
        """The messages one after another, and `ROOM` bytes more; `room` gives an array of so many bytes for those in pieces."""
        if self.pieces:
            self.data = np.concatenate([*(b.raw for b in self.pieces), _ROOM], out=room(self.size + ROOM))
            self.pieces = ()
        return self.data

    def part(self, start: int, stop: int) -> "Batch":
        """The messages of the senders start … stop − 1."""
        first = int(self.ends[start - 1]) if start else 0
        refused = {i - start: error for i, error in self.refused.items() if start <= i < stop}
        ends = self.ends[start:stop] - first
        return Batch(self.in_one()[first : first + last(ends) + ROOM], ends, refused=refused)


Message = Batch
"""A message is a batch of one."""

def silent(m: int) -> Batch:
    """Batches of nodes that say nothing, on any link: 4 bytes each on the wire, their length 0; they decode to the vector 0."""
    return Batch(np.zeros(ROOM, dtype=np.uint8), np.zeros(m, dtype=np.int64))


SILENT = replace(silent(1), one=True)
"""The message of a node that says nothing."""


def batch_of(data: Any) -> Batch:
    """The message that these bytes are."""
    held = arrays.raw(data)
    return Batch(np.concatenate([held, np.zeros(ROOM, dtype=np.uint8)]), np.array([held.size]), one=True)


def attempt(send: Callable[..., Batch], *arguments: Any) -> Batch:
    """The message that `send` returns; if it overflows, a refused one that keeps the error."""
    try:
        return send(*arguments)
    except OverflowError as error:
        return replace(SILENT, refused={0: error})


def together(batches: Sequence[Batch]) -> Batch:
    """The messages of some batches as one, in their order."""
    if not batches:
        return silent(0)
    if len(batches) == 1:
        return replace(batches[0], content=_rows_of(batches[0]), one=False) if batches[0].one else batches[0]
    ends, refused, size, first = [], dict[int, OverflowError | None](), 0, 0
    for b in batches:
        ends.append(b.ends + size)
        refused |= {first + i: error for i, error in b.refused.items()}
        size, first = size + b.size, first + len(b)
    made = Batch(_ROOM, np.concatenate(ends), refused=refused, pieces=batches)
    if size < _LONG * len(batches):
        made.in_one()
        contents = [_rows_of(b) for b in batches if b.size]
        made.content = concatenated(contents) if contents and all(c is not None for c in contents) else None  # type: ignore[arg-type]
    return made


def _rows_of(batch: Batch) -> Compressed | None:
    return None if batch.content is None else batch.content.as_rows()


def side_by_side(contents: Sequence[Compressed]) -> Compressed:
    """The rows of all, which stay where they are if they are whole vectors."""
    if all(type(c) is Dense for c in contents):
        return Each([c[i] for c in contents for i in range(len(c))])
    return concatenated(contents)


def spread(said: Batch, rows: Places, m: int) -> Batch:
    """Messages of some of m senders, whose rows these are; the others are silent."""
    if rows.size == m:
        return said
    lengths = np.zeros(m, dtype=np.int64)
    lengths[rows] = said.lengths
    return replace(said, ends=np.cumsum(lengths), refused={int(rows[i]): error for i, error in said.refused.items()}, one=False)
