from collections.abc import Mapping
from typing import Any

from mpi_compress.algorithms.estimators.ef import ErrorFeedback
from mpi_compress.algorithms.vocabulary import (
    ERRORS,
    NO_GRADIENT,
    WHOLE_GRADIENTS,
    AtLeastOne,
    Batch,
    Direction,
    Estimator,
    MinibatchParameters,
    Need,
    OfConvex,
    Positive,
    Rounds,
    ServerState,
    Shards,
    Share,
    Step,
    algorithms,
)

SENDS_STEPS = Need(
    lambda m: m.server.name != "l-bfgs", "the server l-bfgs takes differences of gradients, and {name} sends local steps"
)


@algorithms.register("local-sgd")
class LocalSGD(MinibatchParameters, Estimator):
    """Local SGD, or FedAvg: McMahan, Moore, Ramage, Hampson, Agüera y Arcas (AISTATS 2017); with a compressor FedPAQ.

    worker sends     y ← x;  y ← y − γ g_i(y), τ times;  C(y − x)
    master answers   Δ ← the mean of what was sent
    everyone         x ← x + η Δ

    g_i(y) is ∇f_i(y), or its estimate by a minibatch of its own in each local step. Khaled, Mishchenko, Richtárik (AISTATS 2020):
    for convex f_i γ ≤ min{1/(4L_max), 1/(8L_max(τ−1))}, the default; 4 and 8 were not checked against the paper. Where the f_i
    differ, the limit is apart from x* by O(γ(τ−1)). If some of the workers take part, Δ is the mean of theirs, as in FedAvg.
    """

    paper = "FedAvg; Khaled et al. 2020"
    theorem = OfConvex()
    partial_mean = "over participants"
    needs = (WHOLE_GRADIENTS, SENDS_STEPS)
    theory = "1/(4*L_max*max(1, 2*(local_steps - 1)))"
    step: Step = "theory"  # γ, the step size of local steps
    local_steps: AtLeastOne = 10  # τ, the local steps of a round; with 1 it is gradient descent
    server_step: Positive = 1.0  # η, the step size of the mean

    def knows(self) -> Mapping[str, float]:
        return {**super().knows(), "local_steps": float(self.local_steps)}

    def workers_send(self, node: Any, w: None, fs: Shards, t: Rounds) -> Batch:
        γ, τ, y = self.gamma(t.k), self.local_steps, fs.zeros() + node.x
        for j in range(τ):
            y -= γ * fs.gradients(y, self.rows(fs, t, t.k * τ + j))
        return self.up.pack(y - node.x, t)

    def move(self, s: ServerState, g: Direction | None, k: int) -> None:
        self.server.advance(s, g, -self.server_step, k)  # what is sent points downhill


@algorithms.register("sparse-loco")
class SparseLoCo(ErrorFeedback):
    """SparseLoCo: Sarfi, Thérien, Lidin, Belilovsky (2025): local steps with error feedback. All e_i start at 0.

    worker sends     y ← x;  y ← y − γ g_i(y), τ times;  p ← β e_i + x − y;  Δ_i ← γ C(p/γ);  e_i ← p − Δ_i
    everyone         x ← x − η (1/n) Σ Δ_i

    The errors, which decay, take the place of the outer momentum of DiLoCo. The paper's local steps are AdamW's, and its C keeps
    the largest of each 4096 coordinates in 2 bits: `blocks` of top-k, and `chain`. Its updates are those of a public page of
    formulas. With β = 1 and τ = 1 it is `ef`. No theorem was at hand; the default γ is that of `local-sgd`.
    """

    paper = "SparseLoCo"
    partial_mean = "over participants"
    needs = [WHOLE_GRADIENTS, NO_GRADIENT]
    log = ERRORS
    is_in_units_of_x = True
    theory = ""
    step: Step = LocalSGD.theory  # γ, the step size of local steps
    local_steps: AtLeastOne = 10  # τ, the local steps of a round
    server_step: Positive = 1.0  # η, the step size of the mean
    beta: Share = 0.95  # β, the share of an error that stays

    def knows(self) -> Mapping[str, float]:
        return {**super().knows(), "local_steps": float(self.local_steps)}

    def grow(self, w: Any, x: Any, fs: Shards, t: Rounds) -> None:
        γ, τ, y = self.gamma(t.k), self.local_steps, fs.zeros() + x
        w.e *= self.beta
        for j in range(τ):
            g = fs.gradients(y, self.rows(fs, t, t.k * τ + j))
            w.e += g
            y -= γ * g

    def move(self, s: ServerState, g: Direction | None, k: int) -> None:
        self.server.advance(s, g, self.server_step * self.gamma(k), k)
