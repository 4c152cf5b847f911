"""The round loop. It knows no algorithm, and no layout."""

import time
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec

from mpi_compress.algorithms import Algorithm
from mpi_compress.algorithms.hosted import HostedWorkers, OneByOne
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.engine.checkpoint import Keeper, States
from mpi_compress.engine.observer import Observer
from mpi_compress.exchange import Exchange
from mpi_compress.job.stop import Verdict
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import REFUSED, Link, Message, attempt
from mpi_compress.problem.objective import Objective


def run(
    algorithm: Algorithm,
    objectives: Mapping[int, Objective],
    exchange: Exchange,
    streams: Streams,
    x0: Vector,
    observer: Observer,
    keeper: Keeper | None = None,
) -> tuple[Verdict, Vector]:
    """Play rounds of an algorithm, bound to its setting, until the observer ends them; its verdict, and the last iterate (d,).

    Args:
        objectives: f_i of the workers hosted here.
        keeper: saves the states, and gives back what was saved.
    """
    s = _begin(algorithm, objectives, exchange, x0, keeper)
    hosted = _faster(OneByOne(algorithm, objectives, s.workers, streams))
    clock, finite = observer.clock, True
    while True:
        if verdict := _look(algorithm, s, finite, observer, keeper):
            return verdict, algorithm.iterate(s.node)
        start = time.perf_counter()
        sent = hosted.messages(s.node, s.k)
        clock.sends += time.perf_counter() - start
        arrived = exchange.gather(sent)
        begun = time.perf_counter()
        uplink = algorithm.uplink(s.node, s.k)
        answer = _answer(algorithm, s, arrived, uplink, streams) if exchange.has_master else None
        clock.update += time.perf_counter() - begun
        down = exchange.broadcast(answer)
        begun = time.perf_counter()
        downlink = algorithm.downlink(s.node, s.k)
        finite = _hear(algorithm, s, down, downlink, streams)
        now = time.perf_counter()
        clock.update += now - begun
        clock.wall += now - start
        if not finite:
            observer.refusals = _refusals(s, sent, down)
        elif exchange.is_root:
            observer.count(uplink, arrived, downlink, down)


def _begin(
    algorithm: Algorithm, objectives: Mapping[int, Objective], exchange: Exchange, x0: Vector, keeper: Keeper | None
) -> States:
    """The states before the first round, or those that were saved."""
    node = algorithm.start(x0)
    workers = {i: algorithm.start_worker(node, f) for i, f in objectives.items()}
    first = States(0, node, algorithm.start_master(node) if exchange.has_master else None, workers)
    return first if keeper is None else keeper.restore(first)


def _look(algorithm: Algorithm, s: States, finite: bool, observer: Observer, keeper: Keeper | None) -> Verdict:
    """Log the round if it is due, and save it if it is time to; whether the run ends here."""
    verdict = observer.look(s.k, algorithm, s.node, s.workers, finite)
    return verdict if verdict or keeper is None else keeper.look(s)


def _faster(hosted: HostedWorkers) -> HostedWorkers:
    """The same workers, played faster where engine/fast has a way, to the same bits."""
    if find_spec("mpi_compress.engine.fast") is None:
        return hosted
    return import_module("mpi_compress.engine.fast").faster(hosted)


def _answer(algorithm: Algorithm, s: States, arrived: list[Message], uplink: Link, streams: Streams) -> Message:
    """The master's message. An update that cannot be finite is not computed: the empty message says so to every rank."""
    ups = [m.content or (None if m.data.size == 0 else uplink.unpack(m)) for m in arrived]
    if not _all_finite(ups):
        return Message(REFUSED)
    return attempt(algorithm.master_answers, s.node, s.master, ups, Round(s.k, streams, Role.MASTER))


def _hear(algorithm: Algorithm, s: States, down: Message, downlink: Link, streams: Streams) -> bool:
    """Go on to the next round by the master's message; False where the update is not finite, and nothing changes."""
    answer = None if down.data.size == 0 else downlink.unpack(down)
    if answer is None or not answer.is_finite():
        return False
    algorithm.all_hear(s.node, answer, Round(s.k, streams, Role.MASTER))
    s.k += 1
    return True


def _refusals(s: States, sent: list[Message], down: Message) -> dict[str, OverflowError | None]:
    """Who could not send, and why."""
    return {**{f"worker {i}": m.refusal for i, m in zip(s.workers, sent, strict=True)}, "the master": down.refusal}


def _all_finite(ups: list[Compressed | None]) -> bool:
    before = None
    for c in ups:
        if c is None or (c is not before and not c.is_finite()):  # silent workers hosted together share one
            return False
        before = c
    return True
