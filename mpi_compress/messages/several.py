"""Messages of several links in one, or of one link twice."""

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from mpi_compress.core.errors import UserError
from mpi_compress.core.streams import Round
from mpi_compress.core.sums import added
from mpi_compress.messages.kinds import Bytes, Compressed, Pair, Several, Vector, no_coordinates
from mpi_compress.messages.link import Link, Message


class SeveralLink(Link):
    """A link whose messages hold a message of each of its `parts`, one after the other, with one length before all."""

    in_bulk = False

    def __init__(self, *links: Link):
        super().__init__(links[0].compressor, links[0].codec, links[0].dim, parts=links)

    def at(self, **known: Any) -> Self:
        raise UserError(f"{', '.join(known)} cannot be set here: a message has parts of several links")

    def join(self, *parts: Message) -> Message:
        """One message of a message of each link, in their order."""
        contents = [link.unpack(part) for link, part in zip(self.parts, parts, strict=True)]
        return Message(np.concatenate([part.data for part in parts]), self.together(contents))

    def together(self, contents: Sequence[Compressed]) -> Any:
        """What the links' messages decode to, as the content of one message."""
        return Several(contents)

    @property
    def silence(self) -> Any:
        return self.together([link.silence for link in self.parts])

    def write(self, compressed: Any) -> Bytes:
        return np.concatenate([link.write(part) for link, part in zip(self.parts, compressed.parts, strict=True)])

    def read(self, data: Bytes, at: int = 0) -> tuple[Any, int]:
        parts = []
        for link in self.parts:
            part, at = link.read(data, at)
            parts.append(part)
        return self.together(parts), at

    def planned_wire_bits(self, T: Any) -> Any:
        return None

    def paper_bits(self, content: Any) -> float:
        return added(link.paper_bits(part) for link, part in zip(self.parts, content.parts, strict=True))


class PairLink(SeveralLink):
    """A link whose messages are two messages of one link, one after the other, with one length before both."""

    def __init__(self, vectors: Link):
        super().__init__(vectors, vectors)

    def at(self, **known: Any) -> Self:
        return type(self)(self.parts[0].at(**known))

    def together(self, contents: Sequence[Compressed]) -> Pair:
        return Pair(*contents)

    def pack_two(self, first: Vector | Compressed, second: Vector | Compressed, t: Round) -> Message:
        """Compress two vectors (dim,), in this order, and encode the results; raises OverflowError where `pack` does."""
        link = self.parts[0]
        return self.encode(Pair(link.compressed(first, t), link.compressed(second, t)))

    def pack(self, v: Vector | Compressed, t: Round) -> Message:
        assert isinstance(v, Pair)
        return self.pack_two(v.first, v.second, t)


class RefreshLink(PairLink):
    """A link whose messages are one of another link, and after it a whole vector in the codec's floats, or nothing."""

    def write(self, compressed: Compressed) -> Bytes:
        assert isinstance(compressed, Pair)
        first = self.parts[0].write(compressed.first)
        return np.concatenate([first, self.whole.write(compressed.second)]) if compressed.second.elements else first

    def read(self, data: Bytes, at: int = 0) -> tuple[Pair, int]:
        first, end = self.parts[0].read(data, at)
        if end == data.size:
            return Pair(first, no_coordinates(self.dim)), end
        second, end = self.whole.read(data, end)
        return Pair(first, second), end


def means_of_pairs(mean: Callable[[Sequence[Compressed]], Compressed], ups: Sequence[Compressed]) -> Pair:
    """The mean of the first vectors of these pairs, and that of the second ones."""
    pairs = [u for u in ups if isinstance(u, Pair)]
    return Pair(mean([pair.first for pair in pairs]), mean([pair.second for pair in pairs]))
