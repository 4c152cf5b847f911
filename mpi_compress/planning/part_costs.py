"""What the parts of a round cost on this machine, timed in short plays of a run with one worker and with more.

A play takes rows of the run's own set and starts at its x0. Every message is decoded again where it arrives, as on ranks. The first
round of each turn is left out. A part's time is the lower quartile of the others, since other programs can only slow it, and its
bits are their median: of methods whose rounds differ this is the usual round.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError
from mpi_compress.core.streams import Streams
from mpi_compress.engine import rounds
from mpi_compress.engine.evaluation import Evaluator
from mpi_compress.engine.hosting import objectives_of, rehearse
from mpi_compress.engine.observer import Log, Observer
from mpi_compress.exchange import Exchange
from mpi_compress.exchange.ranks import Ranks
from mpi_compress.job.runs import RunSpec
from mpi_compress.job.tables import Stop, Verdict
from mpi_compress.messages.kinds import Dense
from mpi_compress.messages.link import Message
from mpi_compress.messages.mean import Averager
from mpi_compress.messages.tree import Sum, Tree
from mpi_compress.preparing.problems import Problem, Wanted
from mpi_compress.preparing.runs import Prepared, algorithm_of, prepare
from mpi_compress.problem.models import Model
from mpi_compress.problem.rows import Rows

_WORKERS = 32  # in the larger play
_NONZEROS = 5_000_000  # of the rows that are played, at most
_ROWS_OF_A_MODEL = 256
_MEMORY = 500_000_000  # bytes of all workers' vectors
_VECTORS = 5  # of a worker
_UNDISTURBED = 0.25  # quantile of rounds
_TURNS = 3  # of each play, in turns with the others: a machine may be slow for a second
_LEAST, _MOST, _SECONDS = 3, 30, 0.2  # rounds of a turn, and how long it lasts between these


@dataclass(frozen=True)
class Linear:
    """fixed + each · m."""

    fixed: float
    each: float

    def __call__(self, m: float) -> float:
        return self.fixed + self.each * m


@dataclass(frozen=True)
class Measured:
    """Seconds by number of workers: straight lines between points, and the last line on and on."""

    points: Sequence[tuple[int, float]]

    @property
    def each(self) -> float:
        """Seconds of one more, with many."""
        (m, before), (last, seconds) = self.points[-2:]
        return max(0.0, seconds - before) / (last - m)

    def __call__(self, m: float) -> float:
        at, seconds = zip(*self.points, strict=True)
        return float(np.interp(m, at, seconds)) + self.each * max(0.0, m - at[-1])


@dataclass(frozen=True)
class Growth:
    """Bits by number of workers: a power of it between points, and the last power on and on, up to `most`."""

    points: Sequence[tuple[int, float]]
    most: float

    def __call__(self, m: float) -> float:
        at, bits = np.log(np.array(self.points)).T
        slope = max(0.0, (bits[-1] - bits[-2]) / (at[-1] - at[-2])) if len(at) > 1 else 0.0
        beyond = slope * max(0.0, np.log(m) - at[-1])
        return float(min(np.exp(np.interp(np.log(m), at, bits) + beyond), self.most))


@dataclass(frozen=True)
class PartCosts:
    """The seconds and bits of a round's parts."""

    nonzero: float  # seconds of a gradient, a nonzero
    worker: float  # seconds of a gradient besides
    samples: Linear  # that a worker's gradient takes, of the rows of its shard
    packing: Linear | Measured  # seconds of so many workers' compression and coding
    fold: Linear | Measured  # seconds in which the master decodes and adds so many messages, and answers, and a rank hears it
    bits_up: float  # of a worker's message on the wire
    bits_down: Growth  # of the master's answer to so many workers
    n_samples: int  # N
    nonzeros: float  # of a row
    dim: int  # d
    share: float = 1.0  # of the workers that take part in a round
    coordinates: float = math.inf  # of a worker's message
    merge: float = 0.0  # seconds in which a rank reads a sum of d floats of 64 bits and adds it to another

    def gradient(self, rows: float) -> float:
        """Seconds of a worker's gradient with a shard of so many rows."""
        return self.nonzero * self.samples(rows) * self.nonzeros + self.worker


class PartTimer:
    """Plays runs to time their parts; what several runs share is prepared once."""

    def __init__(self) -> None:
        self._problems: dict[str, Problem] = {}

    def of(self, spec: RunSpec) -> PartCosts:
        """The costs of a run's parts.

        Raises:
            UserError: it has no rounds, or the first of them are not finite.
        """
        if spec.algorithm.shares_memory:
            raise UserError(f"{spec.where}algorithm.name = {spec.algorithm.name}: it has no rounds, and so no parts of one")
        p = prepare(_quick(spec), Ranks(), self._problems, quiet=True, force=True)
        rows = _rows_of(p)
        rehearse(p, rows.cut(0, 1))
        many = _many(p, len(rows))
        plays = [_Play(p, rows, m) for m in sorted({1, max(1, many // 4), many})]
        for _ in range(_TURNS):
            for play in plays:
                play.turn()
        return _fitted(p, plays)


def _quick(spec: RunSpec) -> RunSpec:
    """The run without what its end needs: x* and f* are computed only where its method needs them."""
    spec = replace(spec, stop=Stop(rounds=_MOST), tune=None)
    return spec if Wanted.by(spec).optimum else replace(spec, objective=replace(spec.objective, f_star="skip"))


def _rows_of(p: Prepared) -> Rows:
    """The rows that are played."""
    data = p.problem.data
    most = _NONZEROS * data.n_samples // max(1, data.nonzeros)
    if isinstance(p.problem.loss, Model):
        most = min(most, _ROWS_OF_A_MODEL)
    return data.read(0, min(data.n_samples, max(most, _WORKERS)))


def _many(p: Prepared, rows: int) -> int:
    """The number of workers of the larger play."""
    return max(1, min(_WORKERS, rows, _MEMORY // (8 * _VECTORS * p.problem.dim)))


class _Apart(Exchange):
    """Messages arrive as from other processes: what their senders know of their content is left behind."""

    def gather(self, ups: list[Message]) -> list[Message]:
        return [_sent(m) for m in ups]

    def broadcast(self, down: Message | None) -> Message:
        assert down is not None
        return _sent(down)

    def scatter(self, downs: list[Message] | None) -> list[Message]:
        assert downs is not None
        return [_sent(m) for m in downs]


def _sent(message: Message) -> Message:
    return message if message.is_silent or message.is_refused else Message(message.data)


class _Stopwatch(Observer):
    """Reads the clocks before every round, and ends the play. It evaluates nothing."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.readings: list[list[float]] = []
        self._begun = time.perf_counter()

    def look(self, k: int, algorithm: Any, node: Any, workers: Any, finite: bool) -> Verdict:
        if not finite:
            return Verdict.DIVERGED
        fs, c = self.objectives.values(), self.counters
        gradient = sum(f.seconds for f in fs)
        nonzeros = sum(f.samples * f.rows.nonzeros / max(1, len(f.rows)) for f in fs)
        times = [gradient, max(0.0, c.clock.sends - gradient), c.clock.update]
        counts = [c.trace[name] for name in ("wire_bits_up", "wire_bits_down", "elements_up")]
        self.readings.append([*times, sum(f.samples for f in fs), nonzeros, *counts])
        over = k >= _LEAST and time.perf_counter() - self._begun > _SECONDS
        return Verdict.COMPLETE if over or k >= _MOST else Verdict.GO_ON


class _Play:
    """A usual round of m workers that share these rows: seconds, samples, nonzeros and bits, of all of them together."""

    def __init__(self, p: Prepared, rows: Rows, m: int):
        self.m, self.rows = m, len(rows) / m
        self._spec = replace(p.spec, workers=replace(p.spec.workers, count=m, participate=None))
        self._prepared = replace(p, spec=self._spec, algorithm=algorithm_of(self._spec, p.problem, p.algorithm.setting.numbers))
        cuts = [i * len(rows) // m for i in range(m + 1)]
        self._shards = {i: rows.cut(cuts[i], cuts[i + 1]) for i in range(m)}
        self._rounds: list[NDArray[np.float64]] = []  # (rounds, 8) of each turn

    def turn(self) -> None:
        """Play some rounds, from x0."""
        p, spec, exchange = self._prepared, self._spec, _Apart(self.m)
        exchange.tree = Tree(self.m) if spec.workers.fold == "tree" else None
        evaluator = Evaluator(exchange, objectives_of(p, self._shards), p.algorithm.setting.mu_apart)
        watch = _Stopwatch(evaluator, spec.cost, spec.stop, Log(p.problem.data.n_samples))
        rounds.run(p.algorithm, Streams(spec.seed), p.x0, watch)
        if len(watch.readings) < 3:
            raise UserError(f"{spec.where}its first rounds are not finite, so that their parts cannot be timed")
        self._rounds.append(np.diff(watch.readings[1:], axis=0))
        each = np.concatenate(self._rounds)
        self.gradient, self.packing, self.fold = map(float, np.quantile(each[:, :3], _UNDISTURBED, axis=0))
        self.samples, self.nonzeros, self.bits_up, self.bits_down, self.elements = map(float, np.median(each[:, 3:], axis=0))


def _fitted(p: Prepared, plays: Sequence[_Play]) -> PartCosts:
    """The parts' costs that explain the plays."""
    of_gradient = _least([(play.nonzeros, play.m) for play in plays], [play.gradient for play in plays])
    last, data, workers = plays[-1], p.problem.data, p.spec.workers
    downs = [(play.m, play.bits_down / play.m) for play in plays]
    share = 1.0 if workers.participants is None else workers.participants / workers.count
    return PartCosts(
        nonzero=of_gradient[0],
        worker=of_gradient[1],
        samples=_samples(plays),
        packing=_measured(plays, lambda play: play.packing),
        fold=_measured(plays, lambda play: play.fold),
        bits_up=last.bits_up / last.m,
        bits_down=Growth(downs, max(64.0 * p.problem.dim + 64.0, *(bits for _, bits in downs))),
        n_samples=data.n_samples,
        nonzeros=data.nonzeros / data.n_samples,
        dim=p.problem.dim,
        share=share,
        coordinates=last.elements / last.m,
        merge=_merging(p.problem.dim),
    )


def _merging(dim: int) -> float:
    """Seconds in which a rank reads a sum of dim floats and adds it to another."""
    averager, took = Averager(dim), []
    own = Sum(dim, Dense(np.ones(dim)))
    message = own.message()
    for _ in range(9):
        start = time.perf_counter()
        Sum.of(averager, [own, Sum.read(message, dim)])
        took.append(time.perf_counter() - start)
    return float(np.quantile(took, _UNDISTURBED))


def _least(columns: Sequence[tuple[float, float]], wanted: Sequence[float]) -> tuple[float, float]:
    """Two factors, 0 or more, of least relative errors."""
    weights = np.maximum(np.array(wanted), 1e-12)
    found, _ = scipy.optimize.nnls(np.array(columns) / weights[:, None], np.array(wanted) / weights)
    return float(found[0]), float(found[1])


def _measured(plays: Sequence[_Play], seconds: Callable[[_Play], float]) -> Linear | Measured:
    """More workers never take less."""
    if len(plays) == 1:
        return Linear(0.0, seconds(plays[0]) / plays[0].m)
    rising = np.maximum.accumulate([seconds(play) for play in plays]).tolist()
    return Measured([(play.m, s) for play, s in zip(plays, rising, strict=True)])


def _samples(plays: Sequence[_Play]) -> Linear:
    """The whole shard, a minibatch of as many rows whatever the shard has, or something between."""
    each = [play.samples / play.m for play in plays]
    if len(plays) == 1:
        return Linear(0.0, each[0] / plays[0].rows)
    if max(each) - min(each) <= 0.05 * max(each):
        return Linear(each[-1], 0.0)
    return Linear(*_least([(1.0, play.rows) for play in plays], each))
