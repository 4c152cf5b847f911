from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from mpi_compress.algorithms.contract import Average
from mpi_compress.algorithms.needs import ADDS_UP, HEARS_MEAN, OPTIMUM, Need, exact_up
from mpi_compress.algorithms.theorem import PLAIN, WHOLE
from mpi_compress.algorithms.tuning.search import Sparsification, improvement_of
from mpi_compress.algorithms.vocabulary import Estimator, Message, Objective, PartialMean, Round, Sampling, Step, Vector, algorithms
from mpi_compress.core.registry import fact
from mpi_compress.kernels import select


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
