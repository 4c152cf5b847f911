"""The exchange by a tree of ranks: sums of messages go up, and the answer goes down the same way."""

from collections.abc import Callable, Sequence

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from mpi_compress.exchange.base import Pieces, heads, last_below
from mpi_compress.exchange.bell import Bell
from mpi_compress.exchange.mpi import DOWN, REPORT, UP, PointToPoint
from mpi_compress.messages.link import LENGTH_BYTES, Message
from mpi_compress.messages.tree import Piece, Tree, as_message


class TreeOfRanks(PointToPoint):
    """Every rank adds up what its workers send, and what ranks below it have sent; rank 0 gets the sums of at most 8 ranks.

    Which rank gets the sums of which others is in `heads`. A message that no sum can take in yet goes on as it is.
    """

    def __init__(self, comm: MPI.Comm, n: int, master_hosts: bool, patience: float = 0.0, bell: Bell | None = None):
        super().__init__(comm, n, master_hosts, patience, bell)
        self.tree = tree = Tree(n)
        hosts, blocks = [*self._blocks], [*self._blocks.values()]
        above = heads(len(hosts), tree.height)
        last = last_below(above)
        below = {rank: range(blocks[p].start, blocks[last[p]].stop) for p, rank in enumerate(hosts)}
        parents = {rank: hosts[above[p]] if above[p] >= 0 else 0 for p, rank in enumerate(hosts)}
        self._parent, self._below = parents.get(comm.rank, 0), below.get(comm.rank, range(0))
        self._children = [rank for rank, parent in parents.items() if parent == comm.rank != rank]
        self._arriving = {rank: below[rank] for rank in self._children if below[rank]}

    def gather(self, ups: list[Message]) -> list[Message]:
        return ups

    def rise(self, gathered: Sequence[Message], added: Callable[[Pieces, range], Pieces]) -> Pieces:
        of_workers: Pieces = {range(i, i + 1): message for i, message in zip(self.mine, gathered, strict=True)}
        pieces: dict[range, Piece] = {**added(of_workers, self.mine)}
        assert self.tree is not None
        expected = {rank: self.tree.pieces(workers) for rank, workers in self._arriving.items()}
        arrived = self._data.receive_messages({rank: len(each) for rank, each in expected.items()}, UP)
        for rank, messages in arrived.items():
            pieces.update(zip(expected[rank], messages, strict=True))
        if self.is_root:
            self.bytes_received_up += sum(LENGTH_BYTES + m.data.size for messages in arrived.values() for m in messages)
            return pieces
        if self._below:
            whole = added(pieces, self._below) if arrived else pieces
            self._data.send_messages([as_message(piece) for piece in whole.values()], [self._parent], UP)
        return {}

    def broadcast(self, down: Message | None) -> Message:
        if down is None:
            down = self._data.receive_messages({self._parent: 1}, DOWN)[self._parent][0]
        self._data.send_messages([down], self._children, DOWN)
        return down

    def counts(self, own: NDArray[np.float64]) -> NDArray[np.float64]:
        below = [self._control.receive(rank, REPORT, np.float64).reshape(-1, own.shape[1]) for rank in self._arriving]
        everyone = np.concatenate([own, *below])
        if not self.is_root and self._below:
            self._control.send(everyone, [self._parent], REPORT)
        return everyone
