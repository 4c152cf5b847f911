"""Means of what workers sent, in worker order; and the tree of sums, an order of additions that several ranks can share.

The workers are assigned to 2^h leaves, h the largest number for which each leaf has at least 16 workers (0 below 32 workers):
leaf a has the workers from ⌊a n/2^h⌋ to before ⌊(a+1) n/2^h⌋. A leaf's sum is the left fold of its workers' vectors in worker
order, begun with 0. The sum of two neighbours, of two leaves first, then of two such pairs and so on, is the sum of the left one
plus that of the right one, rounded once for each coordinate. So the order of additions follows from n alone, and below 32 workers
it is worker order.

A rank adds up the largest nodes of the tree whose workers it has, and passes on the messages of workers whose leaf it has in part.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mpi_compress.core.errors import CorruptMessage, UserError
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.kinds import Compressed, Dense, Sparse, no_coordinates
from mpi_compress.messages.link import REFUSED, Link, Message

_FEW = 16  # coordinates in all, up to which plain Python is faster than setting up arrays


class Folded(Sequence[Compressed]):
    """What n workers sent, of which only the sum is known: `total`."""

    def __init__(self, total: Compressed, n: int):
        self.total, self._n = total, n

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, which: Any) -> Any:
        raise UserError(
            'workers.fold = "tree": this master asks for single messages, and gets their sum alone; fold = "order" would do'
        )


class Averager:
    """Takes means of compressed vectors, added in the order given, whatever ranks they came from. The mean of sparse vectors is
    sparse: it holds the union of their indices. Its scratch space (dim,) is kept from call to call."""

    def __init__(self, dim: int):
        self._make_room(dim)

    def _make_room(self, dim: int) -> None:
        self.dim, self._total, self._seen = dim, np.zeros(dim), np.zeros(dim, dtype=np.bool_)

    def mean(self, parts: Sequence[Compressed], n: int | None = None) -> Compressed:
        """(1/n) Σ parts of vectors of one length, n = len(parts) if not given; UserError if their lengths differ."""
        n = n or len(parts)
        if isinstance(parts, Folded):
            parts = [parts.total]
        dim = parts[0].dim
        if any(part.dim != dim for part in parts):
            lengths = ", ".join(str(size) for size in sorted({part.dim for part in parts}))
            raise UserError(f"mean: the messages have {lengths} coordinates; only vectors of one length have a mean")
        if dim != self.dim:
            self._make_room(dim)
        sparse = _nonempty(parts)
        if sparse is not None and is_few(held := sum([p.indices.size for p in sparse]), self.dim):
            return _sum_of_few(self.dim, sparse, n) if held <= _FEW else self._sum_of(sparse, float(n))
        total = np.zeros(self.dim)
        for part in parts:
            part.add_to(total)
        total /= n
        return Dense(total)

    def _sum_of(self, parts: Sequence[Sparse], divisor: float) -> Sparse:
        indices, values = np.concatenate([p.indices for p in parts]), np.concatenate([p.values for p in parts])
        indices = np.sort(kernels.scatter_add_noting(indices, values, self._total, self._seen))
        values = np.empty(indices.size)
        kernels.take_and_clear(indices, divisor, self._total, self._seen, values)
        return Sparse(self.dim, indices, values)


def is_few(held: int, dim: int) -> bool:
    """True if the sum of sparse vectors (dim,) that hold so many coordinates, of each again, is sparse."""
    return 4 * held <= 3 * dim


def _nonempty(parts: Sequence[Compressed]) -> list[Sparse] | None:
    """The parts with any coordinates, as sparse vectors; None if some part is not sparse."""
    found: list[Sparse] = []
    before = sparse = None
    for part in parts:
        if part is not before:  # workers of one process that send nothing share one message
            before, sparse = part, part.sparse()
        if sparse is None:
            return None
        if sparse.indices.size:
            found.append(sparse)
    return found


def _sum_of_few(dim: int, parts: Sequence[Sparse], divisor: int) -> Sparse:
    """(1/divisor) Σ parts, the same numbers as `_sum_of` gives."""
    sums: dict[int, float] = {}
    for part in parts:
        for i, value in zip(part.indices.tolist(), part.values.tolist(), strict=True):
            sums[i] = sums.get(i, 0.0) + value
    if not sums:
        return no_coordinates(dim)
    indices = sorted(sums)
    return Sparse(dim, np.array(indices, dtype=np.uint32), np.array([sums[i] / divisor for i in indices]))


LEAF = 16  # workers, at least
_DENSE = -1  # what a message of all coordinates has for `held`
_HEAD = 8  # the bytes of `held`


@dataclass(frozen=True)
class Tree:
    """The tree of n workers; `leaf` workers at least are in each leaf, if there are as many."""

    n: int
    leaf: int = LEAF

    @property
    def height(self) -> int:
        """h, where there are 2^h leaves."""
        return max(0, (self.n // self.leaf).bit_length() - 1)

    def node(self, level: int, a: int) -> range:
        """The workers of the a-th of 2^level nodes."""
        return range(a * self.n >> level, (a + 1) * self.n >> level)

    def pieces(self, workers: range) -> tuple[range, ...]:
        """The largest nodes whose workers are all among these, and the others of these one by one: in worker order."""
        return _pieces(self, workers.start, workers.stop)


@lru_cache(maxsize=4096)
def _pieces(tree: Tree, start: int, stop: int) -> tuple[range, ...]:
    def within(level: int, a: int) -> list[range]:
        node = tree.node(level, a)
        if start <= node.start and node.stop <= stop:
            return [node] if node else []
        if level == tree.height:
            return [range(i, i + 1) for i in node if start <= i < stop]
        return within(level + 1, 2 * a) + within(level + 1, 2 * a + 1) if node.start < stop and start < node.stop else []

    return tuple(within(0, 0))


@dataclass(frozen=True)
class PartialSum:
    """The sum of some workers' vectors (dim,), exact in 64-bit floats. It is sparse where a mean of all these messages in worker
    order would be: then a mean by the tree is of the same kind, and holds the same coordinates."""

    held: int  # the sum of how many coordinates each added vector holds; one that is not sparse holds all dim
    vector: Compressed

    @classmethod
    def of(cls, averager: Averager, parts: Sequence["PartialSum"]) -> "PartialSum":
        """Parts added in the order given, begun with 0."""
        held, total = sum(part.held for part in parts), averager.mean([part.vector for part in parts], 1)
        return cls(held, total if is_few(held, total.dim) or isinstance(total, Dense) else Dense(total.dense()))

    def message(self) -> Message:
        """It as it goes from rank to rank: `held` in 8 bytes, −1 for all coordinates; values; and the indices of a sparse one."""
        v = self.vector
        held, parts = (self.held, [v.values, v.indices]) if isinstance(v, Sparse) else (_DENSE, [v.dense()])
        return Message(np.concatenate([part.view(np.uint8) for part in (np.array([held], np.int64), *parts)]))

    @classmethod
    def read(cls, data: Message, dim: int) -> "PartialSum":
        """What `message` wrote; CorruptMessage for other bytes."""
        size = data.data.size - _HEAD
        held = int(data.data[:_HEAD].copy().view(np.int64)[0]) if size >= 0 else _DENSE
        if size != 8 * dim if held == _DENSE else size % 12 or not size // 12 <= held <= dim:
            raise CorruptMessage(f"a sum of vectors of {dim} coordinates has {data.data.size} bytes")
        if held == _DENSE:
            return cls(dim, Dense(data.data[_HEAD:].copy().view(np.float64)))
        cut = _HEAD + 8 * (size // 12)
        values, indices = data.data[_HEAD:cut].copy().view(np.float64), data.data[cut:].copy().view(np.uint32)
        if np.any(indices[1:] <= indices[:-1]) or np.any(indices[-1:] >= dim):
            raise CorruptMessage(f"the indices of a sum are no increasing ones below {dim}")
        return cls(held, Sparse(dim, indices, values))


Piece = Message | PartialSum | None
"""A worker's message, as it was sent; a node's sum, or a message with it; None: a message of the node's workers is not finite."""


class TreeAdder:
    """Adds messages up by a tree; `dim` is their usual number of coordinates."""

    def __init__(self, tree: Tree, dim: int):
        self.tree, self._averager = tree, Averager(dim)

    def added(self, pieces: Mapping[range, Piece], workers: range, link: Link) -> dict[range, Piece]:
        """The tree's pieces for these workers, added up from smaller ones that `link` reads."""
        return {r: pieces[r] if r in pieces else self._sum(r, 0, 0, pieces, link) for r in self.tree.pieces(workers)}

    def total(self, pieces: Mapping[range, Piece], link: Link) -> Compressed | None:
        """The sum over all workers; None: some message is not finite."""
        found = self._sum(range(self.tree.n), 0, 0, pieces, link)
        return None if found is None else found.vector

    def _sum(self, wanted: range, level: int, a: int, pieces: Mapping[range, Piece], link: Link) -> PartialSum | None:
        """The sum of the node with the wanted workers, below or at this node."""
        node = self.tree.node(level, a)
        if node != wanted:
            right = wanted.start >= self.tree.node(level + 1, 2 * a + 1).start
            return self._sum(wanted, level + 1, 2 * a + right, pieces, link)
        if len(node) > 1 and node in pieces:
            piece = pieces[node]
            if isinstance(piece, Message):
                return None if piece.is_refused else PartialSum.read(piece, link.dim)
            return piece
        if level == self.tree.height:
            parts = [_decoded(pieces[range(i, i + 1)], link) for i in node]
        else:
            children = [self.tree.node(level + 1, 2 * a + b) for b in (0, 1)]
            parts = [self._sum(child, level + 1, 2 * a + b, pieces, link) for b, child in enumerate(children)]
        found = [part for part in parts if part is not None]
        return PartialSum.of(self._averager, found) if len(found) == len(parts) else None


def _decoded(piece: Piece, link: Link) -> PartialSum | None:
    """A worker's vector, once its message is decoded; None if it is not finite."""
    assert isinstance(piece, Message)
    content = piece.content or (None if piece.is_refused else link.unpack(piece))
    if content is None or not content.is_finite():
        return None
    sparse = content.sparse()
    return PartialSum(content.dim if sparse is None else sparse.indices.size, content)


def as_message(piece: Piece) -> Message:
    """A piece as it is sent."""
    if isinstance(piece, PartialSum):
        return piece.message()
    return Message(REFUSED) if piece is None else piece
