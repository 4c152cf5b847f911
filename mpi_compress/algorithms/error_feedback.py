"""What methods with error feedback share: an uplink that follows the run, what is logged, and when errors are dropped."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from mpi_compress.algorithms.averaging import Average, IterateMean
from mpi_compress.algorithms.base import Algorithm, Setting
from mpi_compress.algorithms.descent import check_descent, take_in
from mpi_compress.algorithms.error_memory import LOGS, ErrorMemory, FollowedNorm, trace_columns
from mpi_compress.algorithms.regimes import Regime
from mpi_compress.algorithms.steps import falls_at
from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Link
from mpi_compress.problem.objective import Objective


class ErrorFeedback(Algorithm):
    """The parts of HT's Algorithms 1 to 3 that are not in their lines."""

    compressor = "top-k"
    logs = LOGS
    feedback: bool = True  # false: e is dropped after every round
    reset: int | None = None  # e is dropped after every so many rounds
    average: Average = "last"  # the point to evaluate

    def within(self, setting: Setting) -> Self:
        bound = super().within(setting)
        if setting.up.compressor.follows == "step" and isinstance(bound.step, float):  # it stays the same: settle it once
            object.__setattr__(bound, "setting", replace(setting, up=in_round(setting.up, bound.step, None)))
        return bound

    def settles(self, compressor: Compressor, way: str = "up") -> bool:
        return way == "up" and compressor.follows == "step"

    def check(self) -> None:
        check_descent(self, self.average)
        if self.reset is not None and self.reset < 1:
            raise ValueError(f"reset = {self.reset} must be at least 1 round; leave it out to keep the errors")

    def start_worker(self, node: Any, f: Objective) -> ErrorMemory:
        return first_error(self, f)

    def uplink(self, node: Any, k: int) -> Link:
        return in_round(self.up, self.gamma(k), node.regime)

    @property
    def keeps_errors(self) -> bool:
        """True if errors are never dropped."""
        return self.feedback and self.reset is None

    def drops_errors(self, k: int) -> bool:
        """True if errors are dropped after round k."""
        return not self.feedback or (self.reset is not None and (k + 1) % self.reset == 0)

    def iterate(self, node: Any) -> Vector:
        mean: IterateMean | None = node.mean
        return node.x.dense() if mean is None else mean.x

    def worker_logs(self, worker: Any) -> Sequence[float]:
        return worker.sizes.tolist()

    def trace_logs(self, means: Mapping[str, float], node: Any) -> Mapping[str, float]:
        return {**trace_columns(means), "silent": node.silent}


def in_round(link: Link, γ: float, regime: Regime | None) -> Link:
    """The uplink of a round: the threshold of an accuracy follows γ, ACCORDION's k the regime."""
    if not link.compressor.follows:
        return link
    return replace(link, compressor=link.compressor.in_round(link.dim, γ, regime is None or regime.critical))


def first_regime(compressor: Compressor, x0: Vector) -> Regime | None:
    """None where the compressor does not follow one."""
    return Regime(np.zeros_like(x0)) if compressor.follows == "regime" else None


def note_round(method: ErrorFeedback, node: Any, down: Compressed, k: int) -> None:
    """What a node keeps of round k beside its iterate: the mean of iterates, silent rounds, ACCORDION's regime."""
    if node.mean is not None:
        take_in(method, method.average, node.mean, node.x.dense(), k + 1)
    node.silent += down.elements == 0
    if node.regime is not None:
        rows = math.ceil(method.setting.numbers["N"] / method.setting.n)
        epoch = 1 if method.batch is None else math.ceil(rows / method.batch)
        node.regime.hear(method.up.compressor, down, k, epoch, falls_at(method.step, k + 1))


def first_error(method: ErrorFeedback, f: Objective) -> ErrorMemory:
    """The memory of a worker before round 0, e_i = 0.

    The norm of the error is followed, not measured, where minibatches are sparse and only their coordinates can come to be sent:
    with a threshold that is the same in all rounds, and errors that are never dropped.
    """
    compressor = method.up.compressor
    stays = compressor.follows == "" and compressor.least_sent > 0 and isinstance(method.step, float) and method.keeps_errors
    follows = stays and method.batch is not None and f.gradients_are_sparse
    return ErrorMemory(np.zeros(f.dim), FollowedNorm() if follows else None)
