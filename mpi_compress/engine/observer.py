"""Watches a run: counts its messages, logs its rows, and decides when it ends."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mpi_compress.algorithms.base import Method
from mpi_compress.engine.counting import Clock, Counters
from mpi_compress.engine.evaluation import Evaluator
from mpi_compress.engine.rows import Row, row_of
from mpi_compress.engine.verdicts import Refusals, is_spent, not_finite_after, verdict_at, verdict_without_update
from mpi_compress.job.stop import Stop, Verdict
from mpi_compress.messages.costs import CostModel
from mpi_compress.messages.link import Link, Message


def ignore(*_: Any) -> None:
    """Takes whatever it is given, and does nothing."""


@dataclass(frozen=True)
class Log:
    """Which rounds have rows, what is in them, and where they go."""

    n_samples: int  # of all workers: an epoch
    f_star: float = float("nan")  # NaN if unknown
    every: int = 1  # rounds
    sink: Callable[[Row], None] = ignore  # takes every row, at rank 0
    progress: Callable[[int, float | None, float], None] = ignore  # takes round, loss or None, wire bits up; at rank 0


class Observer:
    """Logs a run at rank 0 and decides when it ends, for all ranks."""

    def __init__(self, evaluator: Evaluator, cost: CostModel, stop: Stop, log: Log):
        self.evaluator, self.cost, self.stop, self.log = evaluator, cost, stop, log
        self.exchange, self.objectives = evaluator.exchange, evaluator.objectives
        self.counters = Counters.of(self.exchange.n)
        self.refusals: Refusals = {}
        self.reason = ""  # why the run ends, where that needs words

    @property
    def clock(self) -> Clock:
        return self.counters.clock

    def count(self, uplink: Link, arrived: list[Message], downlink: Link, down: Message) -> None:
        """Add one round's messages to the counts, at rank 0."""
        begun = time.perf_counter()
        self.counters.add_up(uplink, arrived, self.cost)
        if self.exchange.counts_down:
            self.counters.add_down(downlink, down, self.cost)
        self.clock.evaluate += time.perf_counter() - begun

    def look(self, k: int, algorithm: Method, node: Any, workers: Mapping[int, Any], finite: bool) -> Verdict:
        """Log round k if it is due or the last; the verdict on the run, the same on every rank."""
        begun = time.perf_counter()
        verdict = Verdict.GO_ON
        if not finite:
            logged = self._log(k, algorithm, node, workers)  # the loss helps to say why
            verdict, self.reason = verdict_without_update(k, self.exchange, self.refusals, self.counters)
            verdict = max(verdict, logged)
        elif k == self.stop.rounds or (self.stop.each_round and self.exchange.agree(is_spent(self.stop, self.counters))):
            verdict = Verdict.COMPLETE
        if verdict or k % self.log.every == 0:
            verdict = max(verdict, self._log(k, algorithm, node, workers))
        elif self.exchange.is_root:
            self.log.progress(k, None, sum(self.counters.wire_up))
        self.clock.evaluate += time.perf_counter() - begun
        return verdict

    def _log(self, k: int, algorithm: Method, node: Any, workers: Mapping[int, Any]) -> Verdict:
        """Evaluate the iterate of round k, write its row, and judge it; once."""
        c, log = self.counters, self.log
        if k == c.logged:
            return Verdict.GO_ON
        first, c.logged = c.logged < 0, k
        verdict = Verdict.GO_ON
        point = self.evaluator.evaluate(algorithm, node, workers, c.clock.sends)
        if point is not None:
            c.borrowed, c.last_loss = point.seconds.borrowed, point.loss
            if first:
                c.first_loss, c.start_distance = point.loss, point.distance
            log.sink(row_of(k, c, point, log.n_samples, log.f_star))
            log.progress(k, point.loss, sum(c.wire_up))
            verdict = verdict_at(self.stop, point.loss, log.f_star, point.distance, c.start_distance)
        verdict = Verdict(self.exchange.agree(verdict))
        if verdict is Verdict.DIVERGED and not self.reason:
            self.reason = not_finite_after(k)
        return verdict
