from collections.abc import Mapping
from typing import Any

from mpi_compress.algorithms.needs import WHOLE_GRADIENTS
from mpi_compress.algorithms.vocabulary import Estimator, Message, Objective, Round, Sampling, Step, algorithms
from mpi_compress.core.fields import AtLeastOne, Positive


@algorithms.register("local-sgd")
class LocalSGD(Estimator):
    """Local SGD, or FedAvg: McMahan, Moore, Ramage, Hampson, Agüera y Arcas (AISTATS 2017); with a compressor FedPAQ.

    worker sends     y ← x;  y ← y − γ g_i(y), τ times;  C(y − x)
    master answers   Δ ← the mean of what was sent
    everyone         x ← x + η Δ

    g_i(y) is ∇f_i(y), or its estimate by a minibatch of its own in each local step. Khaled, Mishchenko, Richtárik (AISTATS 2020):
    for convex f_i γ ≤ min{1/(4L_max), 1/(8L_max(τ−1))}, the default; 4 and 8 were not checked against the paper. Where the f_i
    differ, the limit is apart from x* by O(γ(τ−1)). If some of the workers take part, Δ is the mean of theirs, as in FedAvg.
    """

    paper = "FedAvg; Khaled et al. 2020"
    partial_mean = "over participants"
    needs = (WHOLE_GRADIENTS,)
    theory = "1/(4*L_max*max(1, 2*(local_steps - 1)))"
    theory_is_convex = True
    step: Step = theory  # γ, the step size of local steps
    local_steps: AtLeastOne = 10  # τ, the local steps of a round; with 1 it is gradient descent
    server_step: Positive = 1.0  # η, the step size of the mean
    batch: int | None = None  # samples of each local step's minibatch; left out: full gradients
    sampling: Sampling = "with-replacement"  # samples drawn uniformly over the shard, or from a new permutation in each epoch

    def knows(self) -> Mapping[str, float]:
        return {**super().knows(), "local_steps": float(self.local_steps)}

    def worker_sends(self, node: Any, worker: None, f: Objective, t: Round) -> Message:
        γ, τ, y = self.gamma(t.k), self.local_steps, node.x.copy()
        for j in range(τ):
            y -= γ * f.gradient(y, self.rows(f, t, t.k * τ + j))
        return self.up.pack(y - node.x, t)

    def pace(self, k: int) -> float:
        """−η: what is sent points downhill."""
        return -self.server_step
