"""The round loop. It knows no algorithm, and no layout."""

import time
from importlib import import_module
from importlib.util import find_spec

from mpi_compress.algorithms import Algorithm
from mpi_compress.algorithms.hosted import HostedWorkers, OneByOne
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.engine.checkpoint import Keeper, States
from mpi_compress.engine.observer import Observer
from mpi_compress.job.tables import Verdict
from mpi_compress.messages.kinds import Vector
from mpi_compress.messages.link import REFUSED, Link, Message, attempt


def run(
    algorithm: Algorithm, streams: Streams, x0: Vector, observer: Observer, keeper: Keeper | None = None
) -> tuple[Verdict, Vector]:
    """Play rounds of an algorithm, bound to its setting, until the observer ends them; its verdict, and the last iterate (d,)."""
    s = _first_states(algorithm, x0, observer)
    s = keeper.restore(s) if keeper else s
    exchange, clock, finite = observer.exchange, observer.clock, True
    hosted = _faster(OneByOne(algorithm, observer.objectives, s.workers, streams, s.up))
    while True:
        verdict = observer.look(s.k, algorithm, s.node, s.workers, finite)
        if keeper and not verdict:
            verdict = keeper.look(s)
        if verdict:
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
            refused = {f"worker {i}": m.refusal for i, m in zip(s.workers, sent, strict=True)}
            observer.refusals = {**refused, "the master": down.refusal}
        elif exchange.is_root:
            observer.count(uplink, arrived, downlink, down)


def _first_states(algorithm: Algorithm, x0: Vector, observer: Observer) -> States:
    """The states before the first round."""
    node, has_master = algorithm.start(x0), observer.exchange.has_master
    workers = {i: algorithm.start_worker(node, f) for i, f in observer.objectives.items()}
    up = {i: algorithm.up.start() for i in workers}
    master, down = (algorithm.start_master(node), algorithm.down.start()) if has_master else (None, None)
    return States(0, node, master, workers, up, down)


def _faster(hosted: HostedWorkers) -> HostedWorkers:
    """The same workers, played faster where engine/fast has a way, to the same bits."""
    if find_spec("mpi_compress.engine.fast") is None:
        return hosted
    return import_module("mpi_compress.engine.fast").faster(hosted)


def _answer(algorithm: Algorithm, s: States, arrived: list[Message], uplink: Link, streams: Streams) -> Message:
    """The master's message. An update that cannot be finite is not computed: a refused message says so to every rank."""
    ups = [m.content or (None if m.is_refused else uplink.unpack(m)) for m in arrived]
    distinct = {id(c): c for c in ups}.values()  # silent workers hosted together share one
    if not all(c is not None and c.is_finite() for c in distinct):
        return Message(REFUSED)
    return attempt(algorithm.master_answers, s.node, s.master, ups, Round(s.k, streams, Role.MASTER, state=s.down))


def _hear(algorithm: Algorithm, s: States, down: Message, downlink: Link, streams: Streams) -> bool:
    """Go on to the next round by the master's message; False where the update is not finite, and nothing changes."""
    answer = None if down.is_refused else downlink.unpack(down)
    if answer is None or not answer.is_finite():
        return False
    algorithm.all_hear(s.node, answer, Round(s.k, streams, Role.MASTER))
    s.k += 1
    return True
