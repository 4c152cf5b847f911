"""The round loop. It knows no algorithm, and no layout."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mpi_compress.algorithms import Algorithm
from mpi_compress.algorithms.hosted import HostedWorkers
from mpi_compress.core.clock import now
from mpi_compress.core.streams import Role, Round, Rounds, Streams
from mpi_compress.engine.arrivals import Arrivals, AtOnce
from mpi_compress.engine.culprits import culprits
from mpi_compress.engine.keeper import Keeper
from mpi_compress.engine.observer import Observer
from mpi_compress.engine.queue import ArrivalQueue, Queued
from mpi_compress.engine.ringleader import Ringleader, tables_at
from mpi_compress.exchange import Exchange
from mpi_compress.job.tables import Ending
from mpi_compress.messages.batch import SILENT, Batch, together
from mpi_compress.messages.kinds import Dense, Vector
from mpi_compress.messages.link import Arrived, Link
from mpi_compress.saving.checkpoint import States


def run(
    algorithm: Algorithm, streams: Streams, x0: Vector, observer: Observer, keeper: Keeper | None = None
) -> tuple[Ending, Vector]:
    """Run rounds of an algorithm, bound to its setting, until the observer ends them; its verdict, and the last iterate (d,)."""
    s = _first_states(algorithm, x0, observer)
    s = keeper.restore(s) if keeper else s
    exchange, clock, finite = observer.exchange, observer.clock, True
    hosted = HostedWorkers(algorithm, observer.objectives, s.workers, streams, s.up)
    arrivals = _arrivals(observer, hosted, s)
    while True:
        verdict = observer.look(s.k, algorithm, s.node, s.workers, finite, s.master)
        if keeper and not verdict:
            verdict = keeper.look(s)
        if verdict:
            return verdict, algorithm.iterate(s.node)
        second = hosted.second = observer.second
        start = now()
        sent = arrivals.messages(s.node, s.k)
        clock.sends += now() - start
        uplink, downlink = algorithm.uplink(s.node, s.k), algorithm.downlink(s.node, s.k)
        ups = exchange.gather(sent)
        begun, t = now(), partial(Round, s.k, streams, Role.MASTER, second=second)
        answers = _answers(algorithm, s, arrivals.arrived(ups, uplink), t(state=s.down), downlink) if exchange.has_master else None
        clock.update += now() - begun
        heard = _sent_down(algorithm, answers, exchange)
        begun = now()
        finite = _hear(algorithm, s, heard, downlink, hosted, exchange)
        ended = now()
        clock.update += ended - begun
        clock.wall += ended - start
        if finite:
            arrivals.end(s, uplink, ups, downlink, heard if answers is None else answers)
            s.k += 1
        else:
            refused = {f"worker {hosted.fs.who[i]}": error for i, error in sent.refused.items()}
            observer.refusals = {**refused, "the master": answers.refused.get(0) if answers else None}
            if not any(observer.refusals.values()):
                observer.refusals = dict(culprits(hosted, uplink, downlink, algorithm.iterate(s.node), s.k))


def _first_states(algorithm: Algorithm, x0: Vector, observer: Observer) -> States:
    node, has_master = algorithm.start(x0), observer.exchange.has_master
    fs = observer.objectives
    workers, up = algorithm.start_workers(node, fs) if len(fs) else [], [algorithm.up.start() for _ in range(len(fs))]
    master, down = (algorithm.start_master(node), algorithm.down.start()) if has_master else (None, None)
    return States(0, node, master, workers, up, down, queued_at(algorithm, node), tables_at(algorithm) if has_master else None)


def queued_at(algorithm: Algorithm, node: Any) -> Queued | None:
    """What ranks know of workers' tasks before the first one; None where all begin together."""
    rule, n = algorithm.setting.rule, algorithm.setting.n
    return None if rule is None or rule.all_begin_together else Queued.first(node, n)


def _arrivals(observer: Observer, hosted: HostedWorkers, s: States) -> AtOnce:
    """Whose messages the master waits for in each round."""
    if s.queued is not None:
        rule: Any = hosted.algorithm.setting.rule
        return (Ringleader if rule.tables else ArrivalQueue)(observer, hosted, s)
    return (Arrivals if hosted.algorithm.setting.has_clock else AtOnce)(observer, hosted)


def _answers(algorithm: Any, s: States, ups: Arrived | None, t: Round, downlink: Link) -> Batch:
    """The master's messages, one to all workers or one to each; a refused one if the update is not finite."""
    error: OverflowError | None = None
    if ups is not None:
        try:
            asked = (s.node, s.master, ups, t)
            made = together(algorithm.answers(*asked)) if hasattr(algorithm, "answers") else algorithm.master_answers(*asked)
            if not made.refused and np.all(downlink.unpack(made).is_finite()):
                return made
        except OverflowError as raised:
            error = raised
    return replace(SILENT, refused={0: error})


def _sent_down(algorithm: Algorithm, answers: Batch | None, exchange: Exchange) -> Batch:
    """The messages that this rank hears: the one to all, or those to its workers."""
    if not hasattr(algorithm, "answers"):
        return exchange.broadcast(answers)
    refused = exchange.agree(answers is not None and bool(answers.refused))
    return replace(SILENT, refused={0: None}) if refused else exchange.scatter(answers)


def _hear(algorithm: Any, s: States, downs: Batch, link: Link, hosted: HostedWorkers, exchange: Exchange) -> bool:
    """Take the master's messages over; False where the update is not finite, and nothing changes. If each worker has a message of
    its own, the iterate is the master's, and goes to the other ranks off the count, for evaluations."""
    if downs.refused:
        return False
    down = link.unpack(downs)
    if len(hosted.fs):
        t = Rounds(s.k, hosted.streams, Role.MASTER, hosted.fs.who, None, hosted.second)
        algorithm.workers_hear(s.node, s.workers, down, t)
    if hasattr(algorithm, "answers"):
        point: Any = algorithm.point(s.master) if exchange.has_master else None
        down = Dense(exchange.agree(point))
    algorithm.all_hear(s.node, down, Round(s.k, hosted.streams, Role.MASTER, second=hosted.second))
    return True
