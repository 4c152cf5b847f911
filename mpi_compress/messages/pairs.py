"""Two vectors in one message."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Bytes, Compressed, Pair, Vector, no_coordinates
from mpi_compress.messages.link import AroundLink, Message


def means_of_pairs(mean: Callable[[Sequence[Compressed]], Compressed], ups: Sequence[Compressed]) -> Pair:
    """The mean of the first vectors of these pairs, and that of the second ones."""
    pairs = [u for u in ups if isinstance(u, Pair)]
    return Pair(mean([pair.first for pair in pairs]), mean([pair.second for pair in pairs]))


class PairLink(AroundLink):
    """A link whose messages are two messages of the link `vectors`, one after the other, with one length before both."""

    def pack_two(self, first: Vector | Compressed, second: Vector | Compressed, t: Round) -> Message:
        """Compress two vectors (dim,), in this order, and encode the results; raises OverflowError where `pack` does."""
        return Message(self.write(Pair(self.vectors.compressed(first, t), self.vectors.compressed(second, t))))

    def joined(self, first: Message, second: Message) -> Message:
        """One message of two of the link `vectors`."""
        return Message(np.concatenate([first.data, second.data]))

    def compressed(self, v: Vector | Compressed, t: Round) -> Pair:
        assert isinstance(v, Pair)
        return Pair(self.vectors.compressed(v.first, t), self.vectors.compressed(v.second, t))

    @property
    def silence(self) -> Pair:
        return Pair(self.vectors.silence, self.vectors.silence)

    def write(self, compressed: Compressed) -> Bytes:
        assert isinstance(compressed, Pair)
        return np.concatenate([self.vectors.write(compressed.first), self.vectors.write(compressed.second)])

    def read(self, data: Bytes, at: int = 0) -> tuple[Pair, int]:
        first, at = self.vectors.read(data, at)
        second, end = self.vectors.read(data, at)
        return Pair(first, second), end

    def planned_wire_bits(self, T: Any) -> Any:
        return None

    def paper_bits(self, content: Compressed) -> float:
        assert isinstance(content, Pair)
        return self.vectors.paper_bits(content.first) + self.vectors.paper_bits(content.second)


class RefreshLink(PairLink):
    """A link whose messages are one of the link `vectors`, and after it a whole vector in the codec's floats, or nothing."""

    def write(self, compressed: Compressed) -> Bytes:
        assert isinstance(compressed, Pair)
        first = self.vectors.write(compressed.first)
        return np.concatenate([first, self.whole.write(compressed.second)]) if compressed.second.elements else first

    def read(self, data: Bytes, at: int = 0) -> tuple[Pair, int]:
        first, end = self.vectors.read(data, at)
        if end == data.size:
            return Pair(first, no_coordinates(self.dim)), end
        second, end = self.whole.read(data, end)
        return Pair(first, second), end
