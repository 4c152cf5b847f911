"""Stochastic gradients, compressed without memory; and GSpar's var, spa and their product, what an unbiased compressor costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from mpi_compress.algorithms.contract import Average
from mpi_compress.algorithms.needs import HEARS_MEAN, Log, PartialMean
from mpi_compress.algorithms.sampling import Sampling, rounds_of_epoch
from mpi_compress.algorithms.vocabulary import Direction, Estimator, Link, Message, Objective, Round, Step, algorithms
from mpi_compress.core.fields import AtLeastOne
from mpi_compress.messages.kinds import Compressed, Dense, Vector


@dataclass
class SentVariance:
    """Sums over the messages Q(g) of a worker so far.

    variance      var = Σ‖Q(g)‖² / Σ‖g‖²  (GSpar §4)
    spa           the share of coordinates sent
    variance_spa  their product
    """

    sent: float = 0.0  # Σ‖Q(g)‖²
    given: float = 0.0  # Σ‖g‖²
    density: float = 0.0  # Σ elements/d
    messages: int = 0

    def count(self, g: Vector | Compressed, sent: Compressed) -> None:
        """Add the message that g (d,) became."""
        self.sent += sent.squared_norm()
        self.given += (g if isinstance(g, Compressed) else Dense(g)).squared_norm()
        self.density += sent.elements / sent.dim
        self.messages += 1

    def numbers(self) -> Sequence[float]:
        """Both sums, and the mean share of coordinates sent."""
        return self.sent, self.given, self.density / max(1, self.messages)


def _variance(means: Mapping[str, float], node: Any) -> Mapping[str, float]:
    variance = means["squares_sent"] / means["squares"] if means["squares"] > 0 else 1.0
    return {"variance": variance, "spa": means["spa"], "variance_spa": variance * means["spa"]}


VARIANCE = Log(("squares_sent", "squares", "spa"), SentVariance.numbers, _variance)


@algorithms.register("sgd")
class SGD(Estimator):
    """Stochastic gradient descent, compressed without memory: HT Algorithm 1 with e = 0.

    worker sends     C(g_i),   g_i the mean over a minibatch of its shard, weighted n|D_i|/N
    master answers   ĝ = (1/n) Σ C(g_i)
    everyone         x ← x − γ_k (ĝ + ∇r(x)),   r the regulariser where it is not in the f_i

    Where data are sparse and the regulariser is at the master, gradients are sparse vectors, and x is a scalar times a vector; with
    the identity and codec "auto" a round then costs what the minibatch holds, whatever d.

    If some of the workers take part, ĝ is the mean of theirs (Gower et al., ICML 2019), as in gd. With an unbiased compressor the
    sums of `SentVariance` are logged.
    """

    paper = "HT Algorithm 1, C(p) without e"
    proximal = True
    scaled = True
    partial_mean: ClassVar[PartialMean] = "over participants"
    step: Step = "1/L"  # γ, the step size
    batch: int | None = None  # samples of each worker's minibatch; left out: full gradients
    sampling: Sampling = "with-replacement"  # samples drawn uniformly over the shard, or from a new permutation in each epoch
    regularizer: Literal["worker", "master"] | None = None  # where (µ/2)‖x‖² is applied; left out: as [objective] says
    average: Average = "last"  # the point to evaluate: the last iterate, or a weighted mean of all (HT Theorem 9)

    @property
    def is_noisy(self) -> bool:
        """True if the compressor is unbiased, and not the identity."""
        compressor, d = self.up.compressor, self.setting.dim
        return compressor.unbiased(d) and compressor.omega(d) != 0.0

    def start_worker(self, node: Any, f: Objective) -> SentVariance | None:
        return SentVariance() if self.is_noisy else None

    def worker_sends(self, node: Any, worker: SentVariance | None, f: Objective, t: Round) -> Message:
        rows = self.rows(f, t)
        if rows is not None and f.gradients_are_sparse:
            return self.measured(worker, f.sparse_gradient(node.x, rows), t)
        return self.measured(worker, f.gradient(node.x, rows), t)

    def measured(self, sums: SentVariance | None, g: Vector | Compressed, t: Round) -> Message:
        """Q(g) for a gradient g (d,), added to a worker's sums, if it has some."""
        message = self.up.pack(g, t)
        if sums is not None:
            sums.count(g, self.up.unpack(message))
        return message

    def logged(self) -> Log:
        return VARIANCE if self.is_noisy else Log()


@dataclass
class Memory:
    w: Vector  # (d,) w̃, the reference point
    h: Vector  # (d,) ∇f(w̃), as it was heard


@algorithms.register("svrg")
class SVRG(SGD):
    """Stochastic variance-reduced gradients, compressed: GSpar eq. 2 (Johansson and Zhang 2013). With qsgd it is QSVRG.

    One round in epoch + 1 sets the reference point:

        worker sends     ∇f_i(x), exactly, or compressed where `compress_full` says so
        everyone         w̃ ← x;  h ← the mean of what was sent

    and all others take a step:

        worker sends     Q(g_i),   g_i = ∇f_B(x) − ∇f_B(w̃) + h by a minibatch B of its shard
        master answers   ĝ = (1/n) Σ Q(g_i)
        everyone         x ← x − γ (ĝ + ∇r(x)),   r the regulariser where it is not in the f_i
    """

    paper = "GSpar eq. 2"
    scaled = False
    partial_mean = ""
    needs = (HEARS_MEAN,)
    step: Step = "0.1/L_row"  # γ, the step size; L_row is the largest smoothness of one sample
    batch: int = 8  # samples of each worker's minibatch B
    epoch: AtLeastOne | None = None  # rounds between two full gradients; left out: a pass over the data
    compress_full: bool = False  # true: full gradients are compressed, too

    @cached_property
    def steps(self) -> int:
        """Steps between reference points."""
        return self.epoch or rounds_of_epoch(self.setting.numbers["N"], self.setting.n, self.batch)

    def is_full(self, k: int) -> bool:
        """True if round k sets the reference point."""
        return k % (self.steps + 1) == 0

    def steps_before(self, k: int) -> int:
        """How many rounds before k were not full: each took a minibatch."""
        return k - k // (self.steps + 1) - 1

    def uplink(self, node: Any, k: int) -> Link:
        return self.up.exact if self.is_full(k) and not self.compress_full else self.up

    def downlink(self, node: Any, k: int) -> Link:
        return self.down.exact if self.is_full(k) and not self.compress_full else self.down

    def start_memory(self, x0: Vector) -> Memory:
        return Memory(x0.copy(), np.zeros_like(x0))

    def worker_sends(self, node: Any, worker: SentVariance | None, f: Objective, t: Round) -> Message:
        if self.is_full(t.k):
            return self.uplink(node, t.k).pack(f.gradient(node.x), t)
        rows = self.rows(f, t, self.steps_before(t.k))
        g = f.gradient(node.x, rows).copy()
        g -= f.gradient(node.memory.w, rows)
        g += node.memory.h
        return self.measured(worker, g, t)

    def estimate(self, node: Any, memory: Memory, mean: Compressed, t: Round) -> Direction | None:
        if not self.is_full(t.k):
            return (mean,)
        memory.w[:] = node.x
        memory.h[:] = 0.0
        mean.add_to(memory.h)
        return None
