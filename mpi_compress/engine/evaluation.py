"""f and ∇f at a point, over all workers: off the clock, and off the bit count.

A rank reports some of its workers at a time, those of a block of rows.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.algorithms.contract import Method
from mpi_compress.algorithms.memories import some
from mpi_compress.engine.counting import Clock
from mpi_compress.engine.meter import Meter
from mpi_compress.engine.theory import Theory
from mpi_compress.exchange import Exchange
from mpi_compress.kernels.vectors import add_rows, norm, squared_norm
from mpi_compress.messages.kinds import Indices, Sparse, Vector
from mpi_compress.problem.objective import Shards
from mpi_compress.problem.penalties import Penalty
from mpi_compress.problem.points import Point


def report(
    largest: Sequence[float], numbers: Vector, vectors: Vector, gradients: Vector, listed: Sequence[Indices] | None = None
) -> list[NDArray]:
    """The report of m workers.

    Args:
        largest: numbers of which the largest over all workers is wanted.
        numbers: (m, K).
        vectors: those that the algorithm logs, (m, 0) if it has none.
        gradients: (m, d).
        listed: increasing coordinates beyond which each gradient is 0; None: gradients are reported as a whole.
    """
    of_gradients = [gradients]
    if listed is not None:
        values = [gradient[some] for gradient, some in zip(gradients, listed, strict=True)]
        of_gradients = [np.concatenate(listed), np.concatenate(values)]
    return [numbers, np.array(largest), vectors, *of_gradients]


class Tally:
    """Folds reports, in worker order: the largest of some numbers, and the sums of vectors and of gradients (dim,)."""

    def __init__(self, dim: int):
        self.largest: Vector = np.empty(0)
        self.numbers: list[Vector] = []  # of all workers (n, K), in parts
        self.vector: Vector = np.empty(0)
        self.gradient: Vector = np.zeros(dim)

    def add(self, report: list[NDArray]) -> None:
        """Take the report of the next workers."""
        numbers, largest, vectors, *gradients = report
        if len(gradients) == 1:
            add_rows(gradients[0], self.gradient)
        else:
            places, values = gradients
            Sparse(self.gradient.size, places.astype(np.uint32, copy=False), values).add_to(self.gradient)
        if self.numbers:
            np.maximum(self.largest, largest, out=self.largest)
            add_rows(vectors, self.vector)
        else:
            self.largest, self.vector = largest.copy(), in_order(vectors)
        self.numbers.append(numbers.copy())


def in_order(rows: Vector) -> Vector:
    """The sum (K,) of rows (n, K), one after another."""
    total = rows[0].copy()
    add_rows(rows[1:], total)
    return total


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
    of_workers: Mapping[str, Vector]  # columns of /workers, (n,) each
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
    objectives: Shards
    regularizer: float = 0.0
    further: Callable[[Vector], Mapping[str, float]] | None = None
    theory: Theory | None = None
    penalty: Penalty | None = None
    mapping_step: float = 1.0
    samples: Shards | None = None
    meter: Meter | None = None

    def evaluate(
        self, algorithm: Method, node: Any, workers: Any, clock: Clock, master: Any = None
    ) -> Evaluation | None:
        """The evaluation of the iterate, at rank 0; `clock` is this rank's own."""
        x = algorithm.iterate(node)
        tally = Tally(x.size)
        for reported in self.exchange.collect(self._reports(x, algorithm, workers, clock)):
            tally.add(reported)
        terms = self.meter.means(node, workers, x) if self.meter else []
        if not self.exchange.is_root:
            return None
        point, gradient = self._evaluation(tally, x, algorithm, node)
        return replace(point, lyapunov=self.meter.value(node, terms, master, x, point.loss, gradient)) if self.meter else point

    def _reports(self, x: Vector, algorithm: Method, workers: Any, clock: Clock) -> Iterator[list[NDArray]]:
        """The reports of the workers hosted here: `_LARGEST` and peaks, columns and `_ADDED`, their vectors and gradients."""
        fs, log, point = self.objectives, algorithm.log, Point.at(x)
        compute, borrowed, peaks = float(fs.seconds.sum()), float(fs.borrowed.sum()), ()
        columns = len(log.columns)
        for places, block in (fs if self.samples is None else self.samples).blocks():
            values, gradients = block.at(point)
            memories = some(workers, places)
            numbers = np.zeros((len(block), columns + len(_ADDED)))
            numbers[:, :columns] = log.numbers(memories, len(block))
            numbers[:, columns], numbers[:, columns + 1] = values, fs.samples[places]
            if self.theory:
                gradients = gradients.copy()  # where the next lines evaluate one function, they may use the same memory
                each = [self.theory.of_worker(algorithm, f, x, g) for f, g in zip(fs[places], gradients, strict=True)]
                peaks, numbers[:, columns + 2] = np.max([of[0] for of in each], axis=0), [of[1] for of in each]
            largest = (compute, clock.sends - (compute - borrowed), borrowed, clock.wall, *peaks)
            yield report(largest, numbers, log.vectors(memories, len(block)), gradients, block.listed)

    def _evaluation(self, tally: Tally, x: Vector, algorithm: Method, node: Any) -> tuple[Evaluation, Vector]:
        """The evaluation without V, and ∇f(x) (d,)."""
        n, log, of_each = self.exchange.n, algorithm.log, np.concatenate(tally.numbers)
        sums, columns, peaks = in_order(of_each), len(log.columns), tally.largest[len(_LARGEST) :]
        numbers = dict(zip((*_LARGEST, *_ADDED), [*tally.largest.tolist()[: len(_LARGEST)], *sums.tolist()[columns:]], strict=True))
        loss, moment, gradient = numbers.pop("value") / n, numbers.pop("moment") / n, tally.gradient / n
        mean_square = squared_norm(gradient)
        if self.regularizer:
            gradient += self.regularizer * x
            loss += 0.5 * self.regularizer * squared_norm(x)
        if (r := self.penalty) is not None:
            loss, γ = loss + r.value(x), self.mapping_step
            gradient = gradient + r.gradient(x) if r.smooth else (x - r.prox(x - γ * gradient, γ)) / γ
        means = dict(zip(log.columns, (sums[:columns] / n).tolist(), strict=True))
        found = {**log.of_means(means, node), **(self.further(x) if self.further else {})}
        if tally.vector.size:
            found |= log.of_mean(tally.vector / n, node)
        theory = self.theory.row(gradient, peaks, moment, mean_square) if self.theory else {}
        of_workers = dict(zip(log.columns, of_each.T, strict=False))
        point = Evaluation(loss, norm(gradient), **numbers, columns=found, of_workers=of_workers, theory=theory)
        return point, gradient
