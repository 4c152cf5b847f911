"""Gradients, compressed without memory; and GSpar's var, spa and their product, what an unbiased compressor costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from mpi_compress.algorithms.contract import Average
from mpi_compress.algorithms.needs import ADDS_UP, HEARS_MEAN, OPTIMUM, Log, Need, PartialMean, exact_up
from mpi_compress.algorithms.sampling import rounds_of_epoch
from mpi_compress.algorithms.theorem import PLAIN, WHOLE
from mpi_compress.algorithms.tuning.search import Sparsification, improvement_of
from mpi_compress.algorithms.vocabulary import Direction, Estimator, Link, Message, Objective, Round, Sampling, Step, algorithms
from mpi_compress.core.fields import AtLeastOne
from mpi_compress.core.registry import fact
from mpi_compress.kernels import select
from mpi_compress.messages.kinds import Compressed, Dense, Vector


@algorithms.register("gd")
class GD(Estimator):
    """Gradient descent with compressed gradients: CAT eq. 1; with the identity, plain gradient descent.

    worker sends     Q(g_i),   g_i = ∇f_i(x), or its estimate by a minibatch
    master answers   ĝ = (1/n) Σ Q(g_i)
    everyone         x ← x − γ (ĝ + ∇r(x)),   r the regulariser where it is not in the f_i

    Where r is a penalty that is not smooth, everyone takes the proximal step x ← prox_{γr}(x − γ ĝ) (Beck and Teboulle 2009).

    If r of n workers take part, ĝ is the mean of theirs (Gower et al., ICML 2019, sampling without replacement). Their Theorem 3.1,
    for uncompressed gradients: γ ≤ 1/(2ℒ) with ℒ = (n(r−1) L + (n−r) L_max)/(r(n−1)); the limit is a ball around x*.
    """

    paper = "CAT eq. 1"
    theory = "1/L"
    proximal = True
    partial_mean: ClassVar[PartialMean] = "over participants"
    step: Step = "1/L"  # γ, the step size
    batch: int | None = None  # samples of each worker's minibatch; left out: full gradients
    sampling: Sampling = "with-replacement"  # samples drawn uniformly over the shard, or from a new permutation in each epoch
    regularizer: Literal["worker", "master"] | None = None  # where (µ/2)‖x‖² is applied; left out: as [objective] says
    average: Average = "last"  # the point to evaluate: the last iterate, or a weighted mean of all (HT Theorem 9)

    def worker_sends(self, node: Any, worker: Any, f: Objective, t: Round) -> Message:
        return self.up.pack(f.gradient(node.x, self.rows(f, t)), t)

    theorem_needs: ClassVar[Sequence[Need]] = (*PLAIN, WHOLE, OPTIMUM, exact_up("V of {name} is that of exact gradients"))
    rate = "max(1 - step*mu, step*L - 1)**2"

    def lyapunov(self, node: Any, workers: Any, master: Any, known: Any) -> float:
        """‖x − x*‖², for µ-convex f and γ < 2/L: Polyak (1963); no factor is less (Taylor, Hendrickx, Glineur 2018)."""
        return float(known.distance2())

    @fact
    def curve(self) -> str:
        return "alpha" if self.is_plain else ""

    def improvement(self, g: Vector) -> float:
        compressor, d = self.up.compressor, self.setting.dim
        if not self.is_lemma_step or self.batch is not None or self.setting.r < self.setting.n:
            return np.nan
        if compressor.omega(d) == 0.0:
            return 1.0
        T = compressor.keeps_largest(d)
        return np.nan if T is None or self.setting.n > 1 else improvement_of(Sparsification(), g, select.largest(g, T))


@algorithms.register("cafe")
class CAFe(Estimator):
    """CAFe, compressed aggregate feedback: Ortega, Huang, Li, Jafarkhani (2025). g starts at 0.

    worker sends     c_i ← C(∇f_i(x) − g),   g the direction of the round before
    master answers   c ← (1/n) Σ c_i
    everyone         g ← g + c;  x ← x − γ g

    What all workers have in common, and everyone knows, is not sent again. Workers remember nothing, so any of them may take part.
    Where C is biased and the ∇f_i(x*) differ, a bias stays, as with `gd`. With one worker it is `ef21`. The abstract and public
    summaries alone were at hand; γ = 1/L is no theorem's.
    """

    paper = "CAFe"
    compressor = "top-k"
    adds_up = True
    needs = (*ADDS_UP, HEARS_MEAN)
    partial_mean: ClassVar[PartialMean] = "over participants"
    step: Step = "1/L"  # γ, the step size
    batch: int | None = None  # samples of each worker's minibatch; left out: full gradients
    sampling: Sampling = "with-replacement"  # samples drawn uniformly over the shard, or from a new permutation in each epoch

    def worker_sends(self, node: Any, worker: None, f: Objective, t: Round) -> Message:
        return self.up.pack(f.gradient(node.x, self.rows(f, t)) - node.memory.g, t)


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
