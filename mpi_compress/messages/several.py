"""Messages of several links in one, or of one link twice."""

from collections.abc import Callable, Sequence
from typing import Any, Self

from mpi_compress.core.errors import UserError
from mpi_compress.core.sums import added
from mpi_compress.messages.batch import Batch
from mpi_compress.messages.fields import Field, Reader, joined, some_of
from mpi_compress.messages.kinds import Compressed, Dense, Each, Pair, Several, no_coordinates
from mpi_compress.messages.link import Arrived, Link


class SeveralLink(Link):
    """A link whose messages hold a message of each of its `parts`, one after the other, with one length before all."""

    def __init__(self, *links: Link):
        super().__init__(links[0].compressor, links[0].codec, links[0].dim, parts=links)

    def at(self, **known: Any) -> Self:
        raise UserError(f"{', '.join(known)} cannot be set here: a message has parts of several links")

    def join(self, *parts: Batch) -> Batch:
        """One message of a message of each link, in their order, of each sender."""
        contents = [link.unpack(part) for link, part in zip(self.parts, parts, strict=True)]
        refused = {i: error for part in parts for i, error in part.refused.items()}
        data, ends = joined(*[(part.in_one(), part.ends) for part in parts])
        return Batch(data, ends, self.together(contents), refused, parts[0].one)

    def together(self, contents: Sequence[Compressed]) -> Any:
        """What the links' messages decode to, as the content of one message."""
        return Several(contents)

    @property
    def silence(self) -> Any:
        return self.together([link.silence for link in self.parts])

    def write(self, rows: Any) -> Field:
        return joined(*[link.write(part) for link, part in zip(self.parts, rows.parts, strict=True)])

    def read(self, r: Reader) -> Any:
        return self.together([link.read(r) for link in self.parts])

    def planned_wire_bits(self, T: Any) -> Any:
        return None

    def paper_bits(self, content: Any) -> Any:
        return added(link.paper_bits(part) for link, part in zip(self.parts, content.parts, strict=True))


class PairLink(SeveralLink):
    """A link whose messages are two messages of one link, one after the other, with one length before both."""

    def __init__(self, vectors: Link):
        super().__init__(vectors, vectors)

    def at(self, **known: Any) -> Self:
        return type(self)(self.parts[0].at(**known))

    def together(self, contents: Sequence[Compressed]) -> Pair:
        return Pair(*contents)

    def pack_two(self, first: Any, second: Any, t: Any) -> Batch:
        """Compress two vectors (dim,), or rows of them, in this order, and encode the results; raises OverflowError where `pack`
        does."""
        link = self.parts[0]
        return self.encode(Pair(link.compressed(first, t), link.compressed(second, t)))

    def pack(self, v: Any, t: Any) -> Batch:
        return self.pack_two(v.first, v.second, t)


class RefreshLink(PairLink):
    """A link whose messages are one of another link, and after it a whole vector in the codec's floats, or nothing."""

    def write(self, rows: Any) -> Field:
        second = rows.second
        return joined(self.parts[0].write(rows.first), some_of(self.whole.write(Dense(second.dense())), second.elements > 0))

    def read(self, r: Reader) -> Pair:
        first, nothing = self.parts[0].read(r), no_coordinates(self.dim)
        return Pair(first, Each([self.whole.read(one)[0] if one.left(0) else nothing for one in r.each()]))


def means_of_pairs(mean: Callable[[Sequence[Compressed]], Compressed], ups: Arrived) -> Pair:
    """The mean of the first vectors of these pairs, and that of the second ones."""
    return Pair(mean(ups.of(lambda pair: pair.first)), mean(ups.of(lambda pair: pair.second)))
