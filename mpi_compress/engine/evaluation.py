"""f and ∇f at a point, over all workers: off the clock, and off the bit count."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mpi_compress.algorithms.contract import Method
from mpi_compress.engine.counting import Clock
from mpi_compress.engine.theory import Theory
from mpi_compress.exchange import Exchange
from mpi_compress.kernels.vectors import norm, squared_norm
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.objective import Objective, Point
from mpi_compress.problem.penalties import Penalty


class Layout:
    """The places of named fields in the vector that a worker reports about a point, so that one message carries them to rank 0.

    Args:
        largest: names and lengths of the fields of which the largest over workers is wanted.
        added: names and lengths of the fields of which the sum is wanted. The last length may be None: all that is left.
    """

    def __init__(self, largest: Mapping[str, int], added: Mapping[str, int | None]):
        names, lengths = [*largest, *added], [*largest.values(), *added.values()]
        ends = list(itertools.accumulate(length or 0 for length in lengths))
        self._places = {
            name: slice(end - (length or 0), None if length is None else end)
            for name, length, end in zip(names, lengths, ends, strict=True)
        }
        self._known, self.n_largest = ends[-1], sum(largest.values())

    def pack(self, **fields: Any) -> Vector:
        """The vector of these fields, numbers or arrays of one axis."""
        open_ended = sum(np.size(fields[name]) for name, place in self._places.items() if place.stop is None)
        out = np.empty(self._known + open_ended)
        for name, place in self._places.items():
            out[place] = fields[name]
        return out

    def field(self, name: str, report: Vector) -> Vector:
        """A field of a report, in the report's own memory."""
        return report[self._places[name]]


class Tally:
    """Folds workers' reports in worker order: the largest of some fields, the sums of others; one field is kept as it is."""

    def __init__(self, layout: Layout, kept: str):
        self._layout, self._kept_field = layout, kept
        self._folded: Vector = np.empty(0)
        self.kept: list[Vector] = []

    def add(self, report: Vector) -> None:
        """Take the next worker's report."""
        n = self._layout.n_largest
        if not self.kept:
            self._folded = report.copy()
        else:
            np.maximum(self._folded[:n], report[:n], out=self._folded[:n])
            self._folded[n:] += report[n:]
        self.kept.append(self._layout.field(self._kept_field, report).copy())

    def __getitem__(self, name: str) -> Vector:
        """The largest over workers of a field, or its sum."""
        return self._layout.field(name, self._folded)


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

    @property
    def distance(self) -> float:
        """‖x − x*‖; NaN where x* is not known."""
        return self.columns.get("distance", float("nan"))


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
        theory: evaluates /theory, where the job asks for it.
    """

    exchange: Exchange
    objectives: Mapping[int, Objective]
    regularizer: float = 0.0
    further: Callable[[Vector], Mapping[str, float]] | None = None
    theory: Theory | None = None
    penalty: Penalty | None = None
    mapping_step: float = 1.0
    samples: Mapping[int, Objective] | None = None

    def evaluate(self, algorithm: Method, node: Any, workers: Mapping[int, Any], clock: Clock) -> Evaluation | None:
        """The evaluation of the iterate, at rank 0; `clock` is this rank's own."""
        x = algorithm.iterate(node)
        layout = Layout(
            largest={"compute": 1, "pack": 1, "borrowed": 1, "wall": 1, "peaks": self.theory.T.size + 1 if self.theory else 0},
            added={"logs": len(algorithm.logs), "value": 1, "samples": 1, "moment": 1, "gradient": x.size, "vector": None},
        )
        tally = Tally(layout, "logs")
        self.exchange.collect(self._reports(layout, x, algorithm, workers, clock), tally)
        return self._evaluation(tally, x, algorithm, node) if self.exchange.is_root else None

    def _reports(self, layout: Layout, x: Vector, algorithm: Method, workers: Mapping[int, Any], clock: Clock) -> Iterator[Vector]:
        """The report of every worker hosted here."""
        compute = sum(f.seconds for f in self.objectives.values())
        borrowed = sum(f.borrowed for f in self.objectives.values())
        point = Point.at(x)
        for i, f in self.objectives.items():
            value, gradient = (f if self.samples is None else self.samples[i]).at(point)
            peaks, moment = self.theory.of_worker(algorithm, f, x, gradient) if self.theory else ((), 0.0)
            vector = algorithm.worker_vector(workers[i])
            yield layout.pack(
                compute=compute, pack=clock.sends - (compute - borrowed), borrowed=borrowed, wall=clock.wall, peaks=peaks,
                logs=algorithm.worker_logs(workers[i]), value=value, samples=f.samples, moment=moment,
                gradient=gradient, vector=() if vector is None else vector,
            )  # fmt: skip

    def _with_penalty(self, r: Penalty, x: Vector, g: Vector) -> Vector:
        """∇(f + r) (d,), or the gradient mapping where r is not smooth."""
        γ = self.mapping_step
        return g + r.gradient(x) if r.smooth else (x - r.prox(x - γ * g, γ)) / γ

    def _evaluation(self, tally: Tally, x: Vector, algorithm: Method, node: Any) -> Evaluation:
        n = self.exchange.n
        loss, gradient = float(tally["value"][0] / n), tally["gradient"] / n
        mean_square = squared_norm(gradient)
        if self.regularizer:
            gradient += self.regularizer * x
            loss += 0.5 * self.regularizer * squared_norm(x)
        if self.penalty is not None:
            loss += self.penalty.value(x)
            gradient = self._with_penalty(self.penalty, x, gradient)
        means = dict(zip(algorithm.logs, (tally["logs"] / n).tolist(), strict=True))
        columns = {**algorithm.trace_logs(means, node), **(self.further(x) if self.further else {})}
        if tally["vector"].size:
            columns |= algorithm.mean_logs(tally["vector"] / n, node)
        theory = {}
        if self.theory:
            theory = self.theory.row(gradient, tally["peaks"], float(tally["moment"][0] / n), mean_square)
        of_workers = {name: [float(kept[j]) for kept in tally.kept] for j, name in enumerate(algorithm.logs)}
        numbers = {name: float(tally[name][0]) for name in ("samples", "compute", "pack", "borrowed", "wall")}
        return Evaluation(loss, norm(gradient), **numbers, columns=columns, of_workers=of_workers, theory=theory)
