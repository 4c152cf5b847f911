"""Seconds and bits of the parts of a round, timed here in short trials of a run with one worker and with more.

A trial takes samples of the run's own set and starts at its x0. Every message is decoded where it arrives, as on ranks. The first
round of each turn is left out. A part's time is the lower quartile of the others, since other programs can only slow it, and its
bits are their median: of a method whose rounds differ this is the usual round.
"""

import math
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from mpi_compress.algorithms import Algorithm
from mpi_compress.core.errors import UserError
from mpi_compress.core.streams import Streams
from mpi_compress.engine import rounds
from mpi_compress.engine.evaluation import Evaluator
from mpi_compress.engine.hosting import objectives_of
from mpi_compress.engine.observer import Observer
from mpi_compress.engine.warm_up import warm_up
from mpi_compress.exchange import Exchange
from mpi_compress.exchange.ranks import Ranks
from mpi_compress.job.runs import RunSpec
from mpi_compress.job.tables import Ending, Stop
from mpi_compress.messages.batch import Batch
from mpi_compress.messages.costs import costs as cost_models
from mpi_compress.preparing.needs import algorithm_of
from mpi_compress.preparing.problems import Problem, without_optimum
from mpi_compress.preparing.runs import Prepared, prepare
from mpi_compress.problem.models import Model
from mpi_compress.problem.rows import Rows

_WORKERS = 32  # in the larger trial
_NONZEROS, _ROWS_OF_A_MODEL = 5_000_000, 256  # the samples of a trial have at most as many
_COORDINATES = 12_500_000  # all workers' points have at most as many
_UNDISTURBED = 0.25  # quantile of rounds
_TURNS = 3  # each trial has so many, in turns with the others: a machine may be slow for a second
_LEAST, _MOST, _SECONDS = 3, 30, 0.2  # rounds of a turn, and how long it lasts between these


@dataclass(frozen=True)
class Curve:
    """A number by the number of workers: straight lines between points, and the last line on and on, up to `most`."""

    points: Sequence[tuple[float, float]]
    power: bool = False  # True: the lines are those of the logarithms
    most: float = math.inf

    @classmethod
    def line(cls, fixed: float, each: float) -> "Curve":
        return cls([(0.0, fixed), (1.0, fixed + each)])

    @cached_property
    def _lines(self) -> NDArray[np.float64]:
        return np.log(self.points).T if self.power else np.array(self.points, dtype=np.float64).T

    @property
    def each(self) -> float:
        """What one more adds where there are many."""
        at, values = self._lines
        return max(0.0, float((values[-1] - values[-2]) / (at[-1] - at[-2]))) if len(at) > 1 else 0.0

    def __call__(self, m: float) -> float:
        at, values = self._lines
        m = math.log(m) if self.power else m
        found = float(np.interp(m, at, values)) + self.each * max(0.0, m - float(at[-1]))
        return min(math.exp(found) if self.power else found, self.most)


@dataclass(frozen=True)
class PartCosts:
    """The seconds and bits of a round's parts."""

    nonzero: float  # seconds of a gradient, a nonzero
    worker: float  # seconds of a gradient besides
    samples: Curve  # that a worker's gradient takes, of the samples of its shard
    packing: Curve  # seconds of so many workers' compression and coding
    fold: Curve  # seconds in which the master decodes and adds so many messages, and answers, and a rank hears it
    bits_up: float  # a worker's message on the wire
    bits_down: Curve  # the master's answer to so many workers
    n_samples: int  # N
    nonzeros: float  # of a sample
    dim: int  # d
    share: float = 1.0  # the part of the workers that take part in a round


class PartTimer:
    """Runs trials to time the parts of runs; what several runs share is prepared once."""

    def __init__(self) -> None:
        self._problems: dict[str, Problem] = {}

    def of(self, spec: RunSpec) -> PartCosts:
        """The costs of a run's parts; UserError where it has no rounds, or where the first of them are not finite."""
        if not isinstance(spec.algorithm, Algorithm):
            raise UserError(f"{spec.where}algorithm.name = {spec.algorithm.name}: it has no rounds, and so no parts of one")
        spec = without_optimum(replace(spec, stop=Stop(rounds=_MOST), tune=None))
        p = prepare(spec, Ranks(), self._problems, quiet=True, force=True)
        data = p.problem.data
        most = _NONZEROS * data.n_samples // max(1, data.nonzeros)
        most = min(most, _ROWS_OF_A_MODEL) if isinstance(p.problem.loss, Model) else most
        rows = data.read(0, min(data.n_samples, max(most, _WORKERS)))
        warm_up(p, rows.cut(0, 1))
        many = max(1, min(_WORKERS, len(rows), _COORDINATES // p.problem.dim))
        plays = [_TimedRound(p, rows, m) for m in sorted({1, max(1, many // 4), many})]
        for _ in range(_TURNS):
            for play in plays:
                play.turn()
        return _fitted(p, plays)


class _Apart(Exchange):
    """Messages arrive as from other processes: what their senders know of their content is left behind."""

    def gather(self, ups: Batch) -> Batch:
        return replace(ups, content=None)

    def broadcast(self, down: Batch | None) -> Batch:
        return self.gather(super().broadcast(down))

    def scatter(self, downs: Batch | None) -> Batch:
        return self.gather(super().scatter(downs))


class _Stopwatch(Observer):
    """Reads the clocks before every round, and ends the trial. It evaluates nothing."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.readings: list[list[float]] = []
        self._begun = time.perf_counter()

    def look(self, k: int, algorithm: Any, node: Any, workers: Any, finite: bool, master: Any = None) -> Ending:
        fs, c = self.objectives, self.counters
        gradient = float(fs.seconds.sum())
        nonzeros = sum(n * f.rows.nonzeros / max(1, len(f.rows)) for n, f in zip(fs.samples, fs, strict=True))
        times = [gradient, max(0.0, c.clock.sends - gradient), c.clock.update]
        counts = [c.trace[name] for name in ("wire_bits_up", "wire_bits_down")]
        self.readings.append([*times, float(fs.samples.sum()), nonzeros, *counts])
        over = k >= _LEAST and time.perf_counter() - self._begun > _SECONDS
        return Ending.DIVERGED if not finite else Ending.COMPLETE if over or k >= _MOST else Ending.GO_ON


class _TimedRound:
    """A usual round of m workers that share these rows: seconds, samples, nonzeros and bits, of all of them together."""

    def __init__(self, p: Prepared, rows: Rows, m: int):
        self.m, self.rows = m, len(rows) / m
        spec = replace(p.spec, workers=replace(p.spec.workers, count=m, participate=None))
        self._prepared = replace(p, spec=spec, algorithm=algorithm_of(spec, p.problem, p.algorithm.setting.numbers))
        cuts = [i * len(rows) // m for i in range(m + 1)]
        self._shards = {i: rows.cut(cuts[i], cuts[i + 1]) for i in range(m)}
        self._rounds: list[NDArray[np.float64]] = []  # (rounds, 7) of each turn

    def turn(self) -> None:
        """Run some rounds, from x0."""
        p, spec, exchange = self._prepared, self._prepared.spec, _Apart(self.m)
        assert isinstance(p.algorithm, Algorithm)
        evaluator = Evaluator(exchange, objectives_of(p, self._shards), p.algorithm.setting.mu_apart)
        watch = _Stopwatch(evaluator, spec.cost, spec.stop, p.problem.data.n_samples)
        verdict, _ = rounds.run(p.algorithm, Streams(spec.seed), p.x0, watch)
        readings = watch.readings[1 : -1 if verdict is Ending.DIVERGED else None]
        if len(readings) < 2:
            raise UserError(f"{spec.where}its first rounds are not finite, so that their parts cannot be timed")
        self._rounds.append(np.diff(readings, axis=0))
        each = np.concatenate(self._rounds)
        self.gradient, self.packing, self.fold = map(float, np.quantile(each[:, :3], _UNDISTURBED, axis=0))
        self.samples, self.nonzeros, self.bits_up, self.bits_down = map(float, np.median(each[:, 3:], axis=0))


def _fitted(p: Prepared, plays: Sequence[_TimedRound]) -> PartCosts:
    last, data, workers, dim = plays[-1], p.problem.data, p.spec.workers, p.problem.dim
    nonzero, worker = _least([(play.nonzeros, play.m) for play in plays], [play.gradient for play in plays])
    downs = [(float(play.m), play.bits_down / play.m) for play in plays]
    return PartCosts(
        nonzero=nonzero, worker=worker, n_samples=data.n_samples, dim=dim,
        samples=Curve.line(*_least([(1.0, play.rows) for play in plays], [play.samples / play.m for play in plays])),
        packing=_rising([(play.m, play.packing) for play in plays]), fold=_rising([(play.m, play.fold) for play in plays]),
        bits_up=last.bits_up / last.m, nonzeros=data.nonzeros / data.n_samples,
        bits_down=Curve(downs, True, max(64.0 * dim + 64.0, *(bits for _, bits in downs))),
        share=1.0 if workers.participants is None else workers.participants / workers.count,
    )  # fmt: skip


def _least(columns: Sequence[tuple[float, float]], wanted: Sequence[float]) -> tuple[float, float]:
    """Two factors, 0 or more, of least relative errors."""
    weights = np.maximum(np.array(wanted), 1e-12)
    found, _ = scipy.optimize.nnls(np.array(columns) / weights[:, None], np.array(wanted) / weights)
    return float(found[0]), float(found[1])


def _rising(points: Sequence[tuple[int, float]]) -> Curve:
    """Seconds by number of workers: more workers never take less."""
    rising = np.maximum.accumulate([seconds for _, seconds in points]).tolist()
    return Curve([*[(0.0, 0.0)] * (len(points) == 1), *((float(m), s) for (m, _), s in zip(points, rising, strict=True))])


@dataclass(frozen=True)
class LinkCosts:
    """A link in seconds and bits, as the model takes it."""

    c0: float = 0.0  # seconds of a message
    c1: float = 0.0  # seconds a bit
    message: float = 0.0  # seconds of the processor for a message: where many meet, it takes them in turn

    @classmethod
    def of(cls, file: Path) -> "LinkCosts":
        """The affine model of a table that `calibrate` wrote; UserError if it is none."""
        table = cost_models.build({"name": "table", "file": str(file)}, "--link")
        known = tomllib.loads(file.read_text(encoding="utf-8")).get("compute", {})
        message: Any = known.get("message", 0.0) if isinstance(known, Mapping) else None
        is_number = isinstance(message, int | float) and not isinstance(message, bool)
        if not is_number or not 0 <= message <= sys.float_info.max:
            raise UserError(f"--link: file = '{file}': compute.message should be a time in seconds, 0 or more")
        c0 = float(table.cost(0.0))
        return cls(c0, float(table.cost(1e9) - c0) / 1e9, float(message))

    def port(self, ranks: int, up: float, down: float) -> float:
        """Seconds in which one rank gets so many bits from others, together, and sends `down` bits to each of them."""
        return 2.0 * self.c0 + self.c1 * (up + ranks * down) + 2.0 * self.message * (ranks - 1) if ranks else 0.0
