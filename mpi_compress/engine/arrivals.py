"""What the master gets of a round: the messages of all workers, or their sum by the tree of folds; and what is counted of them."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from mpi_compress.algorithms import Setting
from mpi_compress.exchange import Exchange
from mpi_compress.messages.attacks import Byzantine
from mpi_compress.messages.kinds import Compressed, Dense
from mpi_compress.messages.link import Link, Message, attempt
from mpi_compress.messages.mean import Folded
from mpi_compress.messages.tree import TreeAdder


class InOrder:
    """The master gets every message, and decodes it."""

    def __init__(self, exchange: Exchange):
        self.exchange = exchange
        self.sent: list[Message] = []  # in this round by the workers here, those of byzantine ones as they went out

    def gather(self, sent: list[Message], uplink: Link) -> list[Message]:
        """Exchange a round's messages. What is returned is counted: all of them at rank 0, or with a tree those of each rank."""
        self.sent = sent
        return self.exchange.gather(sent)

    def contents(self, arrived: Sequence[Message], uplink: Link) -> Sequence[Compressed] | None:
        """What the master answers to, at ranks with its part; None: some message is refused, or not finite."""
        ups: list[Any] = [m.content or (None if m.is_refused else uplink.unpack(m)) for m in arrived]
        distinct = {id(c): c for c in ups}.values()  # silent workers hosted together share one
        return ups if all(c is not None and c.is_finite() for c in distinct) else None


class InTree(InOrder):
    """Ranks decode the messages of their workers and add them up by the exchange's tree; the master finishes the sum."""

    def __init__(self, exchange: Exchange, dim: int):
        super().__init__(exchange)
        assert exchange.tree is not None
        self._adder = TreeAdder(exchange.tree, dim)

    def gather(self, sent: list[Message], uplink: Link) -> list[Message]:
        arrived = super().gather(sent, uplink)
        self._pieces = self.exchange.rise(arrived, lambda pieces, workers: self._adder.added(pieces, workers, uplink))
        return arrived

    def contents(self, arrived: Sequence[Message], uplink: Link) -> Sequence[Compressed] | None:
        total = self._adder.total(self._pieces, uplink)
        return None if total is None else Folded(total, self.exchange.n)


class UnderAttack(InOrder):
    """The last workers are byzantine: they encode something else, or know what the master decodes of the others."""

    def __init__(self, exchange: Exchange, byzantine: Byzantine, hosted: Collection[int]):
        super().__init__(exchange)
        self._hosted = hosted
        self._attack, self._f, self._honest = byzantine.attack, byzantine.count, exchange.n - byzantine.count

    def gather(self, sent: list[Message], uplink: Link) -> list[Message]:
        told = [m if i < self._honest else self._told(m, uplink) for i, m in zip(self._hosted, sent, strict=True)]
        return super().gather(told, uplink)

    def _told(self, message: Message, uplink: Link) -> Message:
        """What a byzantine worker sends that would honestly send this message."""
        if self._attack.knows_all or message.is_refused or message.is_silent:
            return message
        return attempt(lambda: uplink.encode(self._attack.told(uplink.unpack(message))))

    def contents(self, arrived: Sequence[Message], uplink: Link) -> Sequence[Compressed] | None:
        ups = super().contents(arrived, uplink)
        if ups is None or not self._attack.knows_all:
            return ups
        honest = ups[: self._honest]
        return [*honest, *[Dense(self._attack.knowing(np.array([c.dense() for c in honest]), self._f))] * self._f]


def arrivals_of(exchange: Exchange, setting: Setting, hosted: Collection[int]) -> InOrder:
    """The way in which messages reach the master over this exchange; `hosted` are the workers here, as they send."""
    if setting.byzantine is not None:
        return UnderAttack(exchange, setting.byzantine, hosted)
    return InOrder(exchange) if exchange.tree is None else InTree(exchange, setting.dim)
