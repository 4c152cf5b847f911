"""Messages that go together: their lengths, 4 bytes each, and then themselves."""

from collections.abc import Sequence
from struct import pack, unpack_from

import numpy as np

from mpi_compress.core.errors import NotAsAnnounced
from mpi_compress.messages.link import LENGTH_BYTES, REFUSED, Bytes, Message

_REFUSED = 2**32 - 1  # the length that stands for a refused message


def lengths_of(messages: Sequence[Message]) -> tuple[bytes, int]:
    """The length of each message in 4 bytes, of a refused one `_REFUSED`; and how long they are together."""
    lengths = [m.data.size or (_REFUSED if m.is_refused else 0) for m in messages]
    return pack(f"<{len(lengths)}I", *lengths), sum_of(lengths)


def sum_of(lengths: Sequence[int]) -> int:
    return sum(lengths) - (_REFUSED * lengths.count(_REFUSED))


def joined(messages: Sequence[Message]) -> Bytes:
    """The lengths of messages, and then themselves, in one array."""
    return np.frombuffer(b"".join([lengths_of(messages)[0], *[m.data.data for m in messages]]), np.uint8)


def parted(data: Bytes, number: int) -> list[Message]:
    """So many messages that were `joined`."""
    return cut(data[LENGTH_BYTES * number :], unpack_from(f"<{number}I", data.data))


def cut(data: Bytes, lengths: Sequence[int]) -> list[Message]:
    """Messages of these lengths that lie one after another."""
    messages, at = [], 0
    for length in lengths:
        if length == _REFUSED:
            messages.append(Message(REFUSED))
        else:
            messages.append(Message(data[at : at + length]))
            at += length
    if at != data.size:
        raise NotAsAnnounced(f"{data.size} bytes came where {at} were announced: this MPI loses bytes")
    return messages
