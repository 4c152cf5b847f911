"""The round loop. It knows no algorithm, and no layout."""

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import repeat
from typing import Any

from mpi_compress.algorithms import Algorithm
from mpi_compress.algorithms.hosted import HostedWorkers
from mpi_compress.core.clock import now
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.engine.keeper import Keeper
from mpi_compress.engine.observer import Observer
from mpi_compress.exchange import Exchange
from mpi_compress.job.tables import Ending
from mpi_compress.messages.kinds import Compressed, Dense, Vector
from mpi_compress.messages.link import REFUSED, Link, Message
from mpi_compress.saving.checkpoint import States


def run(
    algorithm: Algorithm, streams: Streams, x0: Vector, observer: Observer, keeper: Keeper | None = None
) -> tuple[Ending, Vector]:
    """Run rounds of an algorithm, bound to its setting, until the observer ends them; its verdict, and the last iterate (d,)."""
    s = _first_states(algorithm, x0, observer)
    s = keeper.restore(s) if keeper else s
    exchange, clock, finite = observer.exchange, observer.clock, True
    hosted = faster(HostedWorkers(algorithm, observer.objectives, s.workers, streams, s.up))
    while True:
        verdict = observer.look(s.k, algorithm, s.node, s.workers, finite, s.master)
        if keeper and not verdict:
            verdict = keeper.look(s)
        if verdict:
            return verdict, algorithm.iterate(s.node)
        observer.begin()
        hosted.second = observer.second
        start = now()
        sent = hosted.messages(s.node, s.k)
        clock.sends += now() - start
        uplink, downlink = algorithm.uplink(s.node, s.k), algorithm.downlink(s.node, s.k)
        arrived = exchange.gather(sent)
        begun, t = now(), partial(Round, s.k, streams, Role.MASTER, second=observer.second)
        answers = _answers(algorithm, s, _decoded(arrived, uplink), t(state=s.down), downlink) if exchange.has_master else None
        clock.update += now() - begun
        heard = _sent_down(algorithm, answers, exchange)
        begun = now()
        finite = _hear(algorithm, s, _decoded(heard, downlink), t(), exchange)
        ended = now()
        clock.update += ended - begun
        clock.wall += ended - start
        if finite:
            s.k += 1
            observer.count(uplink, arrived, downlink, answers or heard)
        else:
            refused = {f"worker {i}": m.refusal for i, m in zip(s.workers, sent, strict=True)}
            observer.refusals = {**refused, "the master": answers[0].refusal if answers else None}


def _first_states(algorithm: Algorithm, x0: Vector, observer: Observer) -> States:
    node, has_master = algorithm.start(x0), observer.exchange.has_master
    workers = {i: algorithm.start_worker(node, f) for i, f in observer.objectives.items()}
    up = {i: algorithm.up.start() for i in workers}
    master, down = (algorithm.start_master(node), algorithm.down.start()) if has_master else (None, None)
    return States(0, node, master, workers, up, down)


def faster(hosted: HostedWorkers) -> HostedWorkers:
    """The same workers, faster where engine/fast has a path, to the same bits."""
    if find_spec("mpi_compress.engine.fast") is None:
        return hosted
    return import_module("mpi_compress.engine.fast").faster(hosted)


def _decoded(messages: Sequence[Message], link: Link) -> list[Compressed] | None:
    """What messages decode to; None: one of them is refused, or not finite."""
    found = [None if m.is_refused else link.unpack(m) for m in messages]
    distinct = {id(c): c for c in found}.values()  # silent workers hosted together share one
    return found if all(c is not None and c.is_finite() for c in distinct) else None  # type: ignore[return-value]


def _answers(algorithm: Any, s: States, ups: Sequence[Compressed] | None, t: Round, downlink: Link) -> list[Message]:
    """The master's messages, one to all workers or one to each; a refused one if the update is not finite."""
    error: OverflowError | None = None
    if ups is not None:
        try:
            asked = (s.node, s.master, ups, t)
            made = [*algorithm.answers(*asked)] if hasattr(algorithm, "answers") else [algorithm.master_answers(*asked)]
            if _decoded(made, downlink) is not None:
                return made
        except OverflowError as raised:
            error = raised
    return [Message(REFUSED, refusal=error)]


def _sent_down(algorithm: Algorithm, answers: list[Message] | None, exchange: Exchange) -> list[Message]:
    """The messages that this rank hears: the one to all, or those to its workers."""
    if not hasattr(algorithm, "answers"):
        return [exchange.broadcast(answers[0] if answers else None)]
    refused = exchange.agree(answers is not None and answers[0].is_refused)
    return [Message(REFUSED)] if refused else exchange.scatter(answers)


def _hear(algorithm: Any, s: States, downs: Sequence[Compressed] | None, t: Round, exchange: Exchange) -> bool:
    """Take the master's messages over; False where the update is not finite, and nothing changes. If each worker has a message of
    its own, the iterate is the master's, and goes to the other ranks off the count, for evaluations."""
    if downs is None:
        return False
    each = hasattr(algorithm, "answers")
    if getattr(algorithm.worker_hears, "__func__", None) is not Algorithm.worker_hears:  # they have memories of it
        for (i, worker), down in zip(s.workers.items(), downs if each else repeat(downs[0]), strict=False):
            algorithm.worker_hears(s.node, worker, down, t.to(i))
    if each:
        point: Any = exchange.agree(algorithm.point(s.master) if exchange.has_master else None)
    algorithm.all_hear(s.node, Dense(point) if each else downs[0], t)
    return True
