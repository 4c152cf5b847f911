"""f and ∇f at a point, over all workers: off the clock, and off the bit count.

A worker's report is a list of arrays: how many coordinates of the gradient are listed, or −1; numbers; the gradient (d,), or those
coordinates and their values; the algorithm's vector, which may be empty. From another rank it arrives as one array, joined.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mpi_compress.algorithms.contract import Method
from mpi_compress.engine.counting import Clock
from mpi_compress.engine.meter import Meter
from mpi_compress.engine.theory import Theory
from mpi_compress.exchange import Exchange
from mpi_compress.kernels.vectors import norm, scatter_add, squared_norm
from mpi_compress.messages.kinds import Indices, Vector
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.penalties import Penalty
from mpi_compress.problem.points import Point

_WHOLE = np.array([-1.0])


def report(numbers: Vector, gradient: Vector, listed: Indices | None, vector: Vector | None) -> list[Vector]:
    """A worker's report.

    Args:
        listed: increasing coordinates beyond which the gradient (d,) is 0; None: it is reported as a whole.
        vector: the algorithm's, if it has one.
    """
    head, of_gradient = (_WHOLE, [gradient]) if listed is None else (np.array([float(listed.size)]), [listed, gradient[listed]])
    return [head, numbers, *of_gradient, np.empty(0) if vector is None else vector]


class Tally:
    """Folds reports, in worker order: the largest of their first numbers, the sums of the others.

    Args:
        dim: d.
        numbers: how many there are.
        largest: the first numbers, of which the largest over workers is wanted.
        kept: numbers behind them that are kept for each worker, too.
    """

    def __init__(self, dim: int, numbers: int, largest: int, kept: int):
        self._n, self._largest, self._place = numbers, largest, slice(largest, largest + kept)
        self.numbers: Vector = np.empty(0)
        self.gradient: Vector = np.zeros(dim)
        self.vector: Vector = np.empty(0)
        self.kept: list[Vector] = []

    def add(self, report: Sequence[Vector] | Vector) -> None:
        """Take the next worker's report."""
        _, numbers, *gradient, vector = self._parted(report) if isinstance(report, np.ndarray) else report
        if len(gradient) == 1:
            self.gradient += gradient[0]
        else:
            scatter_add(gradient[0].astype(np.uint32, copy=False), gradient[1], 1.0, self.gradient)
        n = self._largest
        if not self.kept:
            self.numbers, self.vector = numbers.copy(), vector.copy()
        else:
            np.maximum(self.numbers[:n], numbers[:n], out=self.numbers[:n])
            self.numbers[n:] += numbers[n:]
            self.vector += vector
        self.kept.append(numbers[self._place].copy())

    def _parted(self, joined: Vector) -> list[Vector]:
        listed, start = int(joined[0]), 1 + self._n
        cuts = [1, start, start + self.gradient.size] if listed < 0 else [1, start, start + listed, start + 2 * listed]
        return np.split(joined, cuts)


_LARGEST = ("compute", "pack", "borrowed", "wall")  # seconds that a worker's rank reports
_ADDED = ("value", "samples", "moment")  # numbers of a worker that are added up


@dataclass(frozen=True)
class Evaluation:
    """A point as rank 0 sees it."""

    loss: float  # f(x), regulariser included
    grad_norm: float  # ‖∇f(x)‖
    samples: float  # evaluated by the algorithm so far, all workers
    compute: float  # seconds in gradients so far, as the next two of the rank that took most
    pack: float  # in compression and coding
    borrowed: float  # the part of `compute` that evaluations spent
    wall: float  # seconds of rounds, of the slowest rank that hosts workers
    columns: Mapping[str, float]  # of the trace: the algorithm's, and those that follow from x
    of_workers: Mapping[str, list[float]]  # columns of /workers, (n,) each
    theory: Mapping[str, Any] = field(default_factory=dict)
    lyapunov: float = math.nan  # V


@dataclass(frozen=True)
class Evaluator:
    """Evaluates points of a run, on every rank together.

    Args:
        objectives: f_i of the workers hosted here.
        regularizer: µ where the objectives leave the regulariser out.
        penalty: the same of a penalty.
        samples: what stands for the f_i where f and ∇f are evaluated, as [log] evaluate says; None: the f_i.
        mapping_step: γ of the gradient mapping (x − prox(x − γ∇f))/γ, whose norm is logged where the penalty is not smooth.
        further: more columns of the trace from x (d,), at rank 0; the same ones each time.
        theory: evaluates /theory, where the job asks for it; and `meter` V, where the method states it.
    """

    exchange: Exchange
    objectives: Mapping[int, Objective]
    regularizer: float = 0.0
    further: Callable[[Vector], Mapping[str, float]] | None = None
    theory: Theory | None = None
    penalty: Penalty | None = None
    mapping_step: float = 1.0
    samples: Mapping[int, Objective] | None = None
    meter: Meter | None = None

    def evaluate(
        self, algorithm: Method, node: Any, workers: Mapping[int, Any], clock: Clock, master: Any = None
    ) -> Evaluation | None:
        """The evaluation of the iterate, at rank 0; `clock` is this rank's own."""
        x, n_peaks, n_logs = algorithm.iterate(node), self.theory.T.size + 1 if self.theory else 0, len(algorithm.log.columns)
        lengths = [len(_LARGEST), n_peaks, n_logs, len(_ADDED)]
        tally = Tally(x.size, sum(lengths), len(_LARGEST) + n_peaks, n_logs)
        self.exchange.collect(self._reports(x, algorithm, workers, clock), tally)
        terms = self.meter.means(node, workers, x) if self.meter else []
        if not self.exchange.is_root:
            return None
        cuts = itertools.pairwise(itertools.accumulate(lengths, initial=0))
        point, gradient = self._evaluation([tally.numbers[a:b] for a, b in cuts], tally, x, algorithm, node)
        return replace(point, lyapunov=self.meter.value(node, terms, master, x, point.loss, gradient)) if self.meter else point

    def _reports(self, x: Vector, algorithm: Method, workers: Mapping[int, Any], clock: Clock) -> Iterator[list[Vector]]:
        """The report of every worker hosted here: `_LARGEST`, peaks, logs, `_ADDED`, the gradient, and its vector if it has one."""
        compute = sum(f.seconds for f in self.objectives.values())
        borrowed = sum(f.borrowed for f in self.objectives.values())
        point, log, largest = Point.at(x), algorithm.log, (compute, clock.sends - (compute - borrowed), borrowed, clock.wall)
        for i, f in self.objectives.items():
            evaluated = f if self.samples is None else self.samples[i]
            value, gradient = evaluated.at(point)
            peaks, moment = self.theory.of_worker(algorithm, f, x, gradient) if self.theory else ((), 0.0)
            numbers = np.array([*largest, *peaks, *log.numbers(workers[i]), value, f.samples, moment])
            yield report(numbers, gradient, evaluated.last.listed, log.vector(workers[i]))

    def _evaluation(
        self, numbers_of: list[Vector], tally: Tally, x: Vector, algorithm: Method, node: Any
    ) -> tuple[Evaluation, Vector]:
        """The evaluation without V, and ∇f(x) (d,)."""
        n, log, (largest, peaks, logs, sums) = self.exchange.n, algorithm.log, numbers_of
        numbers = dict(zip((*_LARGEST, *_ADDED), [*largest.tolist(), *sums.tolist()], strict=True))
        loss, moment, gradient = numbers.pop("value") / n, numbers.pop("moment") / n, tally.gradient / n
        mean_square = squared_norm(gradient)
        if self.regularizer:
            gradient += self.regularizer * x
            loss += 0.5 * self.regularizer * squared_norm(x)
        if (r := self.penalty) is not None:
            loss, γ = loss + r.value(x), self.mapping_step
            gradient = gradient + r.gradient(x) if r.smooth else (x - r.prox(x - γ * gradient, γ)) / γ
        means = dict(zip(log.columns, (logs / n).tolist(), strict=True))
        columns = {**log.of_means(means, node), **(self.further(x) if self.further else {})}
        if tally.vector.size:
            columns |= log.of_mean(tally.vector / n, node)
        theory = self.theory.row(gradient, peaks, moment, mean_square) if self.theory else {}
        of_workers = {name: [float(of[j]) for of in tally.kept] for j, name in enumerate(log.columns)}
        point = Evaluation(loss, norm(gradient), **numbers, columns=columns, of_workers=of_workers, theory=theory)
        return point, gradient
