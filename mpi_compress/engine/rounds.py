"""The round loop. It knows no algorithm, and no layout."""

import time
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from mpi_compress.algorithms import Algorithm
from mpi_compress.algorithms.hosted import HostedWorkers, OneByOne
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.engine.checkpoint import Keeper
from mpi_compress.engine.observer import Observer
from mpi_compress.exchange import Exchange
from mpi_compress.job.stop import Verdict
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import REFUSED, Message, attempt
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
    """Play rounds until the observer ends them.

    Args:
        algorithm: bound to its setting.
        objectives: f_i of the workers hosted here.
        observer: logs rows and decides when to stop, the same on every rank.
        keeper: saves the states, and gives back what was saved.

    Returns:
        the verdict, and the last iterate (d,).
    """
    node = algorithm.start(x0)
    workers = {i: algorithm.start_worker(node, f) for i, f in objectives.items()}
    master = algorithm.start_master(node) if exchange.has_master else None
    k, finite = 0, True
    if keeper is not None:
        k, node, master, workers = keeper.restore(k, node, master, workers)
    hosted = _faster(OneByOne(algorithm, objectives, workers, streams))
    clock = observer.clock
    while True:
        verdict = observer.look(k, algorithm, node, workers, finite)
        if keeper is not None and not verdict:
            verdict = keeper.look(k, node, master, workers)
        if verdict:
            return verdict, algorithm.iterate(node)

        start = time.perf_counter()
        sent = hosted.messages(node, k)
        clock.sends += time.perf_counter() - start
        arrived = exchange.gather(sent)
        down = None
        if exchange.has_master:
            begun = time.perf_counter()
            uplink = algorithm.uplink(node, k)
            ups = [m.content or (None if m.data.size == 0 else uplink.unpack(m)) for m in arrived]
            down = _answer(algorithm, node, master, ups, Round(k, streams, Role.MASTER))
            clock.update += time.perf_counter() - begun
        down = exchange.broadcast(down)
        begun = time.perf_counter()
        downlink = algorithm.downlink(node, k)
        answer = None if down.data.size == 0 else downlink.unpack(down)
        finite = answer is not None and answer.is_finite()
        if answer is not None and finite:
            algorithm.all_hear(node, answer, Round(k, streams, Role.MASTER))
            k += 1
        now = time.perf_counter()
        clock.update += now - begun
        clock.wall += now - start
        if finite and exchange.is_root:
            observer.count(uplink, arrived, downlink, down)
        if not finite:
            observer.refusals = {f"worker {i}": m.refusal for i, m in zip(workers, sent, strict=True)}
            observer.refusals["the master"] = down.refusal


def _faster(hosted: HostedWorkers) -> HostedWorkers:
    """The same workers, played faster where engine/fast has a way, to the same bits."""
    if find_spec("mpi_compress.engine.fast") is None:
        return hosted
    return import_module("mpi_compress.engine.fast").faster(hosted)


def _answer(algorithm: Algorithm, node: Any, master: Any, ups: list[Compressed | None], t: Round) -> Message:
    """An update that cannot be finite is not computed: the empty message tells every rank that the run has diverged."""
    if not _all_finite(ups):
        return Message(REFUSED)
    return attempt(algorithm.master_answers, node, master, ups, t)


def _all_finite(ups: list[Compressed | None]) -> bool:
    before = None
    for c in ups:
        if c is None or (c is not before and not c.is_finite()):  # silent workers hosted together share one
            return False
        before = c
    return True
