from dataclasses import dataclass
from typing import Any

from mpi_compress.algorithms.contract import algorithms
from mpi_compress.algorithms.estimators.marina import MARINA
from mpi_compress.algorithms.sampling import Sampling
from mpi_compress.algorithms.steps import Step
from mpi_compress.core.expressions import Expression
from mpi_compress.core.streams import Round
from mpi_compress.messages.link import Message
from mpi_compress.problem.objective import Objective


@algorithms.register("page")
@dataclass(frozen=True)
class PAGE(MARINA):
    """PAGE: Li, Bao, Zhang, Richtárik (ICML 2021), Algorithm 1; with a compressor VR-MARINA (MARINA, Algorithm 2).

    worker sends     ∇f_i(x) in a full round, else Q(∇f_i(x; B) − ∇f_i(x⁻; B)),   x⁻ the iterate before
    master answers   the mean of what was sent
    everyone         g ← that mean in a full round, else g + that mean;  x ← x − γ g;  the next round is full with probability p

    The first round is full, and full rounds are not compressed. Q is unbiased with ω, ℓ is the smoothness of one sample, and a
    worker has m = N/n rows. 1/γ ≥ L + √((1−p)/(pn) (ωL̃² + (1+ω)ℓ²/B)) and p = min{1/(1 + ω), B/(m + B)} are the defaults; with the
    identity they are 1/γ = L + ℓ√((1−p)/(pnB)), p = B/(m + B). With a compressor γ was not checked against MARINA's paper.
    """

    paper = "PAGE, Algorithm 1"
    compressor = "identity"
    looks_back = True
    theory = "1/(L + sqrt((1 - p)/(p*n)*(omega*L_rms**2 + (1 + omega)*L_row**2/batch)))"
    step: Step = "theory"  # γ, the step size
    p: Expression = "min(1/(1 + omega), batch/(N/n + batch))"  # p, the probability of a round with full gradients
    batch: int = 1  # B, rows of each worker's minibatch
    sampling: Sampling = "with-replacement"  # rows drawn uniformly over the shard, or from a new permutation in each epoch

    def worker_sends(self, node: Any, worker: None, f: Objective, t: Round) -> Message:
        link, known = self.uplink(node, t.k), node.known
        if known.full:
            return link.pack(f.gradient(node.x), t)
        rows = self.rows(f, t, known.batches)
        Δ = f.gradient(node.x, rows).copy()
        Δ -= f.gradient(known.before, rows)
        return link.pack(Δ, t)
