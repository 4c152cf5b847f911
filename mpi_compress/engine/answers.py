"""The master's answer of a round: how it is made of what arrived, how it goes to the ranks, and how it is heard there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mpi_compress.algorithms import Method
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.exchange import Exchange
from mpi_compress.messages.kinds import Compressed, Dense
from mpi_compress.messages.link import REFUSED, Link, Message, attempt
from mpi_compress.saving.checkpoint import States


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
        if hears_in_workers(self.algorithm):
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


def hears_in_workers(algorithm: Any) -> bool:
    """True if workers take the message over into memories of their own."""
    return getattr(algorithm.worker_hears, "__func__", None) is not Method.worker_hears


def answers_of(algorithm: Method, exchange: Exchange, streams: Streams) -> OneToAll:
    """The way in which this algorithm's master answers."""
    return (OneEach if algorithm.answers_each else OneToAll)(algorithm, exchange, streams)
