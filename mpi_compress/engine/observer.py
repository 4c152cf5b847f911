"""What is logged, and whether a run ends: off the clock, and off the bit count."""

import math
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mpi_compress.algorithms.base import Method
from mpi_compress.core.errors import PrecisionExhausted
from mpi_compress.engine.theory import Theory
from mpi_compress.exchange import Exchange
from mpi_compress.exchange.base import Fold
from mpi_compress.job.stop import Stop, Verdict
from mpi_compress.kernels.vectors import norm, squared_norm
from mpi_compress.messages.costs import CostModel
from mpi_compress.messages.kinds import Vector
from mpi_compress.messages.link import Link, Message
from mpi_compress.problem.objective import Objective
from mpi_compress.results.row import Row


@dataclass
class Clock:
    """Seconds of the algorithm on this rank, cumulative."""

    wall: float = 0.0
    sends: float = 0.0  # in what workers send: gradients, compression and coding
    update: float = 0.0  # in the master's answer and in hearing it
    evaluate: float = 0.0


_LONGEST = 300  # letters of the reason that an error gives
_SMALLER = "a smaller step size may help"

_COUNTED = (
    "wire_up", "paper_up", "elements", "wire_down", "cost_up", "cost_down", "paper_down",
    "clock", "_borrowed", "_logged", "_losses", "_start",
)  # fmt: skip


def _text(error: Exception) -> str:
    """What an error says, in one line that is not too long, and that HDF5 can hold."""
    said = str(error.args[-1]) if error.args else ""
    return textwrap.shorten(said.replace("\0", " "), _LONGEST) or f"{type(error).__name__} without a text"


class Observer:
    """Logs a run at rank 0 and decides when it ends, for all ranks.

    Args:
        regularizer: µ where the objectives leave the regulariser out.
        f_star: f*, NaN if unknown.
        sink: takes every row, at rank 0.
        progress: is told (round, loss or None, wire bits up so far), at rank 0.
        also: further columns of a row from its point x, at rank 0; the same columns each time.
        theory: evaluates /theory, where the job asks for it.
    """

    def __init__(
        self,
        exchange: Exchange,
        objectives: Mapping[int, Objective],
        n_samples: int,
        regularizer: float,
        f_star: float,
        cost: CostModel,
        stop: Stop,
        every: int,
        sink: Callable[[Row], None],
        progress: Callable[[int, float | None, float], None],
        also: Callable[[Vector], dict[str, float]] | None = None,
        theory: Theory | None = None,
    ):
        self.exchange, self.objectives, self.n_samples = exchange, objectives, n_samples
        self.regularizer, self.f_star, self.cost, self.stop, self.every = regularizer, f_star, cost, stop, every
        self.sink, self.progress, self.also, self.theory = sink, progress, also, theory
        self.clock = Clock()
        self.wire_up, self.paper_up = [0] * exchange.n, [0.0] * exchange.n
        self.elements = self.wire_down = 0
        self.cost_up = self.cost_down = self.paper_down = 0.0
        self._borrowed = 0.0  # seconds of the algorithm that evaluations spent, as of the last row
        self.reason = ""
        self._logged = -1
        self._losses = (math.inf, math.inf)  # the first one and the last one that were logged
        self._start = math.nan  # ‖x0 − x*‖
        self.refusals: dict[str, OverflowError | None] = {}  # by whom, on this rank, of a round that is not finite

    def count(self, uplink: Link, arrived: list[Message], downlink: Link, down: Message) -> None:
        """Add one round's messages to the counts, at rank 0; paper bits are those of what was decoded."""
        begun = time.perf_counter()
        wire_up, paper_up, cost_up, elements_up, before = self.wire_up, self.paper_up, self.cost_up, self.elements, None
        for i, message in enumerate(arrived):
            if message is not before:  # silent workers hosted together share one message
                content = message.content or uplink.unpack(message)
                wire, paper, elements = message.wire_bits, uplink.paper_bits(content), content.elements
                cost, before = self.cost.of(wire, paper), message
            wire_up[i] += wire
            paper_up[i] += paper
            cost_up += cost
            elements_up += elements
        self.cost_up, self.elements = cost_up, elements_up
        if self.exchange.counts_down:
            bits = downlink.paper_bits(downlink.unpack(down))
            self.wire_down += self.exchange.n * down.wire_bits
            self.paper_down += self.exchange.n * bits
            self.cost_down += self.exchange.n * self.cost.of(down.wire_bits, bits)
        self.clock.evaluate += time.perf_counter() - begun

    def counts(self) -> dict[str, Any]:
        """What a checkpoint saves of rank 0."""
        return {name: getattr(self, name) for name in _COUNTED}

    def go_on(self, counts: Mapping[str, Any]) -> None:
        """Count on from what was saved."""
        for name in _COUNTED:
            setattr(self, name, counts[name])

    def look(self, k: int, algorithm: Method, node: Any, workers: Mapping[int, Any], finite: bool) -> Verdict:
        """Log round k if it is due or the last; the verdict on the run, the same on every rank."""
        begun = time.perf_counter()
        verdict = Verdict.GO_ON
        if not finite:
            logged = self._log(k, algorithm, node, workers)  # what became of the loss helps to tell why
            verdict, self.reason = self._why_not(k)
            verdict = max(verdict, logged)
        elif k == self.stop.rounds or (self.stop.each_round and self.exchange.agree(self._spent())):
            verdict = Verdict.COMPLETE
        if verdict or k % self.every == 0:
            verdict = max(verdict, self._log(k, algorithm, node, workers))
        elif self.exchange.is_root:
            self.progress(k, None, sum(self.wire_up))
        self.clock.evaluate += time.perf_counter() - begun
        return verdict

    def _why_not(self, k: int) -> tuple[Verdict, str]:
        """Why nobody could finish round k: precision was exhausted on the way to the optimum, or the run has diverged.

        A run that stands higher than it started has diverged, whatever its precision.
        """
        errors = {who: error for who, error in self.refusals.items() if error is not None}
        exhausted = any(isinstance(error, PrecisionExhausted) for error in errors.values())
        first, last = self._losses
        if self.exchange.consult("exhausted" if exhausted else "", lambda wishes: any(wishes) and last <= first):
            return Verdict.COMPLETE, f"round {k} asks for a precision finer than floats: there is nothing more to gain"

        def why(told: list[str]) -> str:
            refusal = next(filter(None, told), "")
            if last > first:
                return f"{refusal}; the loss had risen from {first:.3g} to {last:.3g}: {_SMALLER}"
            return refusal or f": {_SMALLER}"

        told = next((f": {who}: {_text(error)}" for who, error in errors.items()), "")
        return Verdict.DIVERGED, f"the update of round {k} is not finite{self.exchange.consult(told, why)}"

    def _spent(self) -> bool:
        s = self.stop
        return (s.wire_bits_up is not None and sum(self.wire_up) >= s.wire_bits_up) or (
            s.seconds is not None and self.clock.wall + self._borrowed >= s.seconds
        )

    def _log(self, k: int, algorithm: Method, node: Any, workers: Mapping[int, Any]) -> Verdict:
        """Evaluate f and ∇f, write the row, and judge by what they are."""
        if k == self._logged:
            return Verdict.GO_ON
        first, self._logged = self._logged < 0, k
        x = algorithm.iterate(node)
        logs = len(algorithm.logs)
        n_theory = self.theory.n_peaks if self.theory else 0
        fold = Fold(n_peaks=3 + n_theory, n_kept=logs)
        self.exchange.collect(self._reports(x, algorithm, workers), fold)
        verdict = Verdict.GO_ON
        if self.exchange.is_root:
            n = self.exchange.n
            means, gradient = fold.sums[:logs] / n, fold.sums[logs + 3 : logs + 3 + x.size] / n
            mean_square = squared_norm(gradient)
            loss, samples = float(fold.sums[logs] / n), float(fold.sums[logs + 1])
            if self.regularizer:
                gradient += self.regularizer * x
                loss += 0.5 * self.regularizer * squared_norm(x)
            self._losses = (loss if first else self._losses[0], loss)
            logged = dict(zip(algorithm.logs, means.tolist(), strict=True))
            columns = {**algorithm.trace_logs(logged, node), **(self.also(x) if self.also else {})}
            if fold.sums.size > logs + 3 + x.size:
                columns |= algorithm.mean_logs(fold.sums[logs + 3 + x.size :] / n, node)
            each = {name: [float(kept[j]) for kept in fold.kept] for j, name in enumerate(algorithm.logs)}
            row = self._row(k, loss, samples, norm(gradient), columns, each, fold.peaks[:3])
            if self.theory:
                moment = float(fold.sums[logs + 2] / n)
                row = replace(row, theory=self.theory.row(gradient, fold.peaks[3:], moment, mean_square))
            self.sink(row)
            self.progress(k, loss, sum(self.wire_up))
            self._start = columns.get("distance", math.nan) if first else self._start
            verdict = self._judge(loss, columns.get("distance", math.nan))
        verdict = Verdict(self.exchange.agree(verdict))
        if verdict is Verdict.DIVERGED and not self.reason:
            self.reason = f"the loss is not finite after {k} rounds" + f": {_SMALLER}" * (k > 0)
        return verdict

    def _judge(self, loss: float, distance: float) -> Verdict:
        if not math.isfinite(loss):
            return Verdict.DIVERGED
        low = self.stop.is_met(loss, loss - self.f_star, distance, self._start)
        return Verdict.COMPLETE if low else Verdict.GO_ON

    def _reports(self, x: Vector, algorithm: Method, workers: Mapping[int, Any]) -> Iterator[Vector]:
        """For every worker here: this rank's seconds in gradients, in compression and coding, and borrowed from evaluations;
        theory's peaks; the worker's logs, f_i(x), samples used so far, theory's moment, ∇f_i(x), the worker's vector, if it has
        one."""
        charged = sum(f.seconds for f in self.objectives.values())
        borrowed = sum(f.borrowed for f in self.objectives.values())
        seconds = (charged, self.clock.sends - (charged - borrowed), borrowed)
        for i, f in self.objectives.items():
            value, gradient = f.value_and_gradient(x)
            peaks, moment = self.theory.of_worker(algorithm, f, x, gradient) if self.theory else ((), 0.0)
            more = algorithm.worker_vector(workers[i])
            numbers = (*seconds, *peaks, *algorithm.worker_logs(workers[i]), value, f.samples, moment)
            yield np.concatenate([numbers, gradient] if more is None else [numbers, gradient, more])

    def _row(
        self,
        k: int,
        loss: float,
        samples: float,
        grad_norm: float,
        logs: Mapping[str, float],
        each: dict[str, list[float]],
        slowest: Vector,
    ) -> Row:
        compute, pack, borrowed = (float(s) for s in slowest)
        self._borrowed = borrowed
        seconds = self.clock.wall + borrowed
        exchange = max(0.0, seconds - compute - pack - self.clock.update)
        evaluate = max(0.0, self.clock.evaluate - borrowed)
        return Row(
            trace={
                "round": k,
                "epoch": samples / self.n_samples,
                "loss": loss,
                "suboptimality": loss - self.f_star,
                "grad_norm": grad_norm,
                "wire_bits_up": sum(self.wire_up),
                "wire_bits_down": self.wire_down,
                "paper_bits_up": sum(self.paper_up),
                "paper_bits_down": self.paper_down,
                "elements_up": self.elements,
                "cost_up": self.cost_up,
                "cost_down": self.cost_down,
                **logs,
            },
            workers={"wire_bits_up": list(self.wire_up), "paper_bits_up": list(self.paper_up), **each},
            timing={
                "seconds": seconds, "compute": compute, "pack": pack, "exchange": exchange,
                "update": self.clock.update, "evaluate": evaluate,
            },
        )  # fmt: skip
