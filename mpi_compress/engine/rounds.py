"""The round loop. It knows no algorithm, and no layout."""

from importlib import import_module
from importlib.util import find_spec

from mpi_compress.algorithms import Method
from mpi_compress.algorithms.hosted import HostedWorkers
from mpi_compress.core.clock import now
from mpi_compress.core.streams import Streams
from mpi_compress.engine.answers import answers_of, arrivals_of
from mpi_compress.engine.keeper import Keeper
from mpi_compress.engine.observer import Observer
from mpi_compress.job.tables import Ending
from mpi_compress.messages.kinds import Vector
from mpi_compress.saving.checkpoint import States


def run(
    algorithm: Method, streams: Streams, x0: Vector, observer: Observer, keeper: Keeper | None = None
) -> tuple[Ending, Vector]:
    """Run rounds of an algorithm, bound to its setting, until the observer ends them; its verdict, and the last iterate (d,)."""
    s = _first_states(algorithm, x0, observer)
    s = keeper.restore(s) if keeper else s
    exchange, clock, finite = observer.exchange, observer.clock, True
    answers, arrivals = answers_of(algorithm, exchange, streams), arrivals_of(exchange, algorithm.setting, s.workers)
    hosted = _faster(HostedWorkers(algorithm, observer.objectives, s.workers, streams, s.up))
    while True:
        verdict = observer.look(s.k, algorithm, s.node, s.workers, finite, s.master)
        if keeper and not verdict:
            verdict = keeper.look(s)
        if verdict:
            return verdict, algorithm.iterate(s.node)
        observer.begin()
        hosted.second = answers.second = observer.second
        start = now()
        sent = hosted.messages(s.node, s.k)
        clock.sends += now() - start
        uplink, downlink = algorithm.uplink(s.node, s.k), algorithm.downlink(s.node, s.k)
        arrived = arrivals.gather(sent, uplink)
        begun = now()
        made = answers.made(s, arrivals.contents(arrived, uplink), downlink) if exchange.has_master else None
        clock.update += now() - begun
        heard = answers.go(made)
        begun = now()
        finite = answers.heard(s, heard, downlink)
        ended = now()
        clock.update += ended - begun
        clock.wall += ended - start
        if not finite:
            refused = {f"worker {i}": m.refusal for i, m in zip(s.workers, arrivals.sent, strict=True)}
            observer.refusals = {**refused, "the master": heard[0].refusal if heard else None}
        else:
            observer.count(uplink, arrived, downlink, made or heard)


def _first_states(algorithm: Method, x0: Vector, observer: Observer) -> States:
    node, has_master = algorithm.start(x0), observer.exchange.has_master
    workers = {i: algorithm.start_worker(node, f) for i, f in observer.objectives.items()}
    up = {i: algorithm.up.start() for i in workers}
    master, down = (algorithm.start_master(node), algorithm.down.start()) if has_master else (None, None)
    return States(0, node, master, workers, up, down)


def _faster(hosted: HostedWorkers) -> HostedWorkers:
    """The same workers, faster where engine/fast has a path, to the same bits."""
    if find_spec("mpi_compress.engine.fast") is None:
        return hosted
    return import_module("mpi_compress.engine.fast").faster(hosted)
