"""Watches a run: counts its messages, logs its rows, and decides whether it ends, as what, and why."""

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from mpi_compress.algorithms.contract import Method
from mpi_compress.algorithms.error_memory import ERRORS
from mpi_compress.algorithms.steps import as_contraction
from mpi_compress.core.clock import now
from mpi_compress.core.errors import AllSent, PrecisionExhausted, placed
from mpi_compress.core.progress import ignore
from mpi_compress.engine.counting import Clock, Counters, Counts
from mpi_compress.engine.evaluation import Evaluation, Evaluator
from mpi_compress.exchange import Exchange
from mpi_compress.job.stops.base import why_it_ends
from mpi_compress.job.tables import Ending, Stop
from mpi_compress.messages.batch import Batch
from mpi_compress.messages.conventions import Convention, add_by_conventions, bits_by
from mpi_compress.messages.costs import CostModel
from mpi_compress.messages.link import Link
from mpi_compress.results.columns import RowsSoFar
from mpi_compress.results.writer import Row

Refusals = Mapping[str, OverflowError | None]
"""Why each sender on this rank could not send in a round that is not finite; None: it could."""

_LONGEST = 300  # letters of the reason that an error gives
_MODERATE = 1e6  # up to which the magnitude of x explains no loss that is not finite, unless it had risen before


@dataclass(eq=False)
class Observer:
    """Logs a run at rank 0 and decides when it ends, for all ranks. What is not known of a run may be left out."""

    evaluator: Evaluator
    cost: CostModel
    stop: Stop
    n_samples: int  # of all workers: an epoch
    f_star: float = math.nan  # NaN if unknown
    every: int = 1  # rounds from one row to the next
    every_ns: int = 0  # or nanoseconds of the model's clock; 0: rounds
    conventions: Mapping[str, Convention] = field(default_factory=dict)  # by which bits up are counted beside
    corrects: bool = True  # True if later messages correct what round 0 sends, or compress; False: all are whole vectors, as gd's
    sink: Callable[[Row], None] = ignore  # takes every row, at rank 0
    progress: Callable[[int, float | None, float], None] = ignore  # takes round, loss or None, wire bits up; at rank 0

    def __post_init__(self) -> None:
        self.exchange, self.objectives = self.evaluator.exchange, self.evaluator.objectives
        self.counters = Counters.begun(self.exchange.n)
        self.timed: Sequence[str] = ()  # the columns of the model's clock that the run has
        self.finite = True  # False: the last round could not be finished, on all ranks alike
        self.refusals: Refusals = {}
        self.reason = ""  # why the run ends, where that needs words
        self.before_last: Callable[[], None] = ignore  # called before a row that a longer run would not have

    @property
    def clock(self) -> Clock:
        return self.counters.clock

    @property
    def second(self) -> float:
        """The second of the model's clock, which every rank keeps; 0.0 where there is none."""
        return self.counters.model_seconds

    def count(self, uplink: Link, arrived: Batch, downlink: Link, downs: Batch) -> None:
        """Add the messages of a finished round to the counts, at rank 0.

        Args:
            arrived: the messages of all workers, at rank 0.
            downs: the master's messages, one to each worker or one to all.
        """
        begun = now()
        if self.exchange.is_root:
            counts = Counts.of(arrived, uplink)
            if self.conventions:
                starts_whole = self.corrects and not self.counters.wire_bits_up
                by_convention = bits_by(self.conventions, uplink, arrived)
                add_by_conventions(self.counters.by_convention, self.conventions, by_convention, starts_whole)
            self.counters.add_up(counts, self.cost)
            if self.exchange.counts_down:
                self.counters.add_down(downlink, downs, self.cost)
            clock, took = self.clock, now() - begun
            clock.evaluate += took
            clock.counting += took

    def count_tasks(self, uplink: Link, arrived: Batch, who: Sequence[int], heard: Counts, to: Sequence[int]) -> None:
        """Add to the counts, at rank 0, messages of the workers `who`, and what the workers `to` have heard."""
        if self.conventions:
            add_by_conventions(self.counters.by_convention, self.conventions, bits_by(self.conventions, uplink, arrived), False)
        self.counters.add_tasks(Counts.of(arrived, uplink), who, heard, to, self.cost)

    def look(
        self, k: int, algorithm: Method, node: Any, workers: Any, finite: bool, master: Any = None
    ) -> Ending:
        """Log round k if it is due or the last; the verdict on the run, the same on every rank."""
        begun = now()
        verdict, self.finite = Ending.GO_ON, finite
        if not finite:
            logged = self._log(k, algorithm, node, workers, master)  # the loss helps to say why
            verdict, self.reason = verdict_without_update(k, self.exchange, self.refusals, self.counters, _remedy(algorithm))
            verdict = max(verdict, logged)
        elif k == self.stop.rounds or (self.stop.budgets and self.exchange.agree(self._is_spent(k, algorithm))):
            verdict = Ending.COMPLETE
        if verdict and not self._is_due(k):
            self.before_last()
        if verdict or self._is_due(k):
            verdict = self._log(k, algorithm, node, workers, master, verdict)
        elif self.exchange.is_root:
            self.progress(k, None, self.counters.wire_bits_up)
        self.clock.evaluate += now() - begun
        return verdict

    def _is_due(self, k: int) -> bool:
        """True if round k has a row: by its number, or by the multiples of a time that the model's clock has passed."""
        if not self.every_ns:
            return k % self.every == 0
        c = self.counters
        return c.logged < 0 or c.model_ns // self.every_ns > c.logged_ns // self.every_ns

    def _log(
        self, k: int, algorithm: Method, node: Any, workers: Any, master: Any, verdict: Ending = Ending.GO_ON
    ) -> Ending:
        """Evaluate the iterate of round k, write its row, and judge it; once. The graver of this and the given verdict."""
        c = self.counters
        if k == c.logged:
            return verdict
        before, c.logged, c.logged_ns = c.logged, k, c.model_ns
        first, meter = before < 0, self.evaluator.meter
        point = self.evaluator.evaluate(algorithm, node, workers, c.clock, master)
        if point is not None:
            if meter is not None:
                point = replace(point, columns={**point.columns, **meter.columns(c, before, k, point.lyapunov)})
            c.see_slowest(point.wall)
            c.borrowed, c.greatest_loss, c.last_loss = point.borrowed, max(c.greatest_loss, point.loss), point.loss
            if first:
                c.first_loss = point.loss
            row = self._row(k, point)
            self.sink(row)
            self.progress(k, point.loss, c.wire_bits_up)
            if verdict is Ending.COMPLETE and has_exploded(self.stop, c):
                verdict = Ending.DIVERGED
                self.reason = f"the loss rose from {c.first_loss:.3g} to {c.last_loss:.3g} in {k} rounds: {_remedy(algorithm)}"
            verdict = max(verdict, self._ending_at({**row.trace, **row.timing}, algorithm))
            if (why := why_it_ends(self.stop.own, row.trace, c.of_stops)) and verdict is Ending.GO_ON:
                verdict, self.reason = Ending.COMPLETE, f"{why}, after {k} rounds"
        verdict = Ending(self.exchange.agree(verdict))
        if verdict is Ending.DIVERGED and not self.reason:
            at = np.abs(algorithm.iterate(node)).max()
            grew = k > 0 and not (c.greatest_loss <= c.first_loss and at < _MODERATE)
            what = f"the loss is not finite after {k} rounds, at an x of magnitude up to {at:.3g}"
            self.reason = f"{what}: {_remedy(algorithm)}" if grew else what
        return verdict

    def _row(self, k: int, e: Evaluation) -> Row:
        """The row of round k."""
        c = self.counters
        return Row(
            trace={
                "round": k,
                "epoch": e.samples / self.n_samples,
                "loss": e.loss,
                "suboptimality": e.loss - self.f_star,
                "grad_norm": e.grad_norm,
                **self._counted,
                **e.columns,
            },
            workers={**c.workers, **(c.of_queue if "staleness" in self.timed else {}), **e.of_workers},
            timing={
                "seconds": c.seconds,
                "compute": e.compute,
                "pack": e.pack,
                "exchange": max(0.0, c.seconds - e.compute - e.pack - c.clock.update),
                "update": c.clock.update,
                "evaluate": max(0.0, c.clock.evaluate - e.borrowed),
            },
            theory=dict(e.theory),
        )

    @property
    def _counted(self) -> dict[str, float]:
        """The columns of the trace that are known in every round; at rank 0."""
        c, columns = self.counters, [convention.column for convention in self.conventions.values()]
        timed = {name: getattr(c, name) for name in self.timed}
        return {**c.trace, **{column: c.by_convention[column] for column in columns}, **timed}

    def _is_spent(self, k: int, algorithm: Method) -> bool:
        """True if a run has spent one of its budgets; at rank 0."""
        if not self.exchange.is_root:
            return False
        spent = {"round": k, **self._counted, "seconds": self.counters.seconds}
        return any(budget.is_met(self._rows([spent], algorithm)) for budget in self.stop.budgets)

    def _ending_at(self, row: dict[str, float], algorithm: Method) -> Ending:
        """The verdict on a row; UserError where [stop] names a column that it does not have. At rank 0."""
        c = self.counters
        c.first_row = c.first_row or row
        rows = self._rows([*{each["round"]: each for each in (c.first_row, c.last_row or row, row)}.values()], algorithm)
        c.last_row = row
        with placed("stop: "):
            met = [level.is_met(rows) for level in self.stop.levels]
        return Ending.DIVERGED if not math.isfinite(row["loss"]) else Ending.COMPLETE if any(met) else Ending.GO_ON

    def _rows(self, rows: Sequence[Mapping[str, float]], algorithm: Method) -> RowsSoFar:
        return RowsSoFar(rows, {"n_workers": self.exchange.n, "dim": algorithm.setting.dim})


def has_exploded(stop: Stop, c: Counters) -> bool:
    """True if a run ends far above its start: f > diverged · max(f(x0), 1), and above half its greatest f or 10⁶ max(f(x0), 1)."""
    return c.last_loss > max(stop.diverged * max(c.first_loss, 1.0), min(c.greatest_loss / 2, 1e6 * max(c.first_loss, 1.0)))


def _remedy(algorithm: Method) -> str:
    """What may help where the loss has risen."""
    compressor, dim = algorithm.up.compressor, algorithm.setting.dim
    if algorithm.log is ERRORS and compressor.delta(dim) is None and (ω := compressor.omega(dim)) is not None:
        would_do = f"; {other} is one" if (other := as_contraction(compressor, dim)) else ""
        return f"{compressor.name} is no contraction (ω = {ω:.3g}), so errors that are kept grow at any step size{would_do}"
    return "a smaller step size may help"


def verdict_without_update(
    k: int, exchange: Exchange, refusals: Refusals, counters: Counters, remedy: str
) -> tuple[Ending, str]:
    """Why nobody could finish round k: precision was exhausted on the way to the optimum, or the run has diverged. A run whose loss
    has risen has diverged, whatever its precision. All ranks call it together."""
    errors = [
        (who, _text(error), isinstance(error, AllSent), isinstance(error, PrecisionExhausted))
        for who, error in refusals.items()
        if error is not None
    ]

    def decide(of_ranks: list[list[tuple[str, str, bool, bool]]]) -> tuple[Ending, str]:
        given, first, last = [*chain(*of_ranks)], counters.first_loss, counters.last_loss
        for _, text, all_sent, _ in given:
            if all_sent:
                return Ending.COMPLETE, text
        if last <= first and any(exhausted for *_, exhausted in given):
            return Ending.COMPLETE, f"round {k} asks for a precision finer than floats: there is nothing more to gain"
        why = "".join(f": {who}: {text}" for who, text, *_ in given[:1])
        if last > first:
            why += f"; the loss had risen from {first:.3g} to {last:.3g}: {remedy}"
        return Ending.DIVERGED, f"the update of round {k} is not finite{why or f': {remedy}'}"

    return exchange.allreduce(errors, decide)


def _text(error: Exception) -> str:
    """An error's text in one line that is not too long, and that HDF5 can hold."""
    text = str(error.args[-1]) if error.args else ""
    return textwrap.shorten(text.replace("\0", " "), _LONGEST) or f"{type(error).__name__} without a text"
