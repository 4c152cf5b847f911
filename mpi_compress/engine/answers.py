"""What the master gets of a round, all messages or their sum by a tree; and how its answer is made, goes out, and is heard."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.algorithms import Method, Setting
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.exchange import Exchange
from mpi_compress.messages.attacks import Byzantine
from mpi_compress.messages.kinds import Compressed, Dense
from mpi_compress.messages.link import REFUSED, Link, Message, attempt
from mpi_compress.messages.mean import Folded, TreeAdder
from mpi_compress.saving.checkpoint import States


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


@dataclass
class OneToAll:
    """One message, which all ranks hear. `second` is that of the model's clock."""

    algorithm: Any
    exchange: Exchange
    streams: Streams
    second: float = 0.0

    def made(self, s: States, ups: Sequence[Compressed] | None, downlink: Link) -> list[Message]:
        """The messages, at ranks with the master's part. If the update is not finite (ups = None), they are refused, and say so."""
        return self._refused(None) if ups is None else self._answered(s, ups, downlink)

    def go(self, answers: list[Message] | None) -> list[Message]:
        """The messages that this rank hears."""
        return [self.exchange.broadcast(None if answers is None else answers[0])]

    def heard(self, s: States, downs: Sequence[Message], downlink: Link) -> bool:
        """Go on to the next round by what was heard; False where the update is not finite, and nothing changes."""
        answer = None if downs[0].is_refused else downlink.unpack(downs[0])
        if answer is None or not answer.is_finite():
            return False
        t = self._round(s.k)
        if getattr(self.algorithm.worker_hears, "__func__", None) is not Method.worker_hears:  # they have memories of it
            for i, worker in s.workers.items():
                self.algorithm.worker_hears(s.node, worker, answer, t.to(i))
        self.algorithm.all_hear(s.node, answer, t)
        s.k += 1
        return True

    def _answered(self, s: States, ups: Sequence[Compressed], downlink: Link) -> list[Message]:
        return [attempt(self.algorithm.master_answers, s.node, s.master, ups, self._round(s.k, s.down))]

    def _refused(self, error: OverflowError | None) -> list[Message]:
        return [Message(REFUSED, refusal=error)]

    def _round(self, k: int, state: Any = None) -> Round:
        return Round(k, self.streams, Role.MASTER, state=state, second=self.second)


class OneEach(OneToAll):
    """A message to each worker. The iterate is the master's, and goes to the other ranks off the count, for evaluations."""

    def go(self, answers: list[Message] | None) -> list[Message]:
        refused = self.exchange.agree(answers is not None and answers[0].is_refused)
        return self._refused(answers[0].refusal if answers else None) if refused else self.exchange.scatter(answers)

    def heard(self, s: States, downs: Sequence[Message], downlink: Link) -> bool:
        if downs and downs[0].is_refused:
            return False
        t = self._round(s.k)
        for (i, worker), down in zip(s.workers.items(), downs, strict=True):
            self.algorithm.worker_hears(s.node, worker, downlink.unpack(down), t.to(i))
        point: Any = self.exchange.agree(self.algorithm.point(s.master) if self.exchange.has_master else None)
        self.algorithm.all_hear(s.node, Dense(point), t)
        s.k += 1
        return True

    def _answered(self, s: States, ups: Sequence[Compressed], downlink: Link) -> list[Message]:
        try:
            answers = [*self.algorithm.answers(s.node, s.master, ups, self._round(s.k))]
        except OverflowError as error:
            return self._refused(error)
        return answers if all(downlink.unpack(m).is_finite() for m in answers) else self._refused(None)


def answers_of(algorithm: Method, exchange: Exchange, streams: Streams) -> OneToAll:
    """The way in which this algorithm's master answers."""
    return (OneEach if algorithm.answers_each else OneToAll)(algorithm, exchange, streams)
