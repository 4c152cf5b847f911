from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mpi_compress.algorithms.contract import First, algorithms
from mpi_compress.algorithms.needs import EXACT_DOWN, WHOLE_GRADIENTS
from mpi_compress.algorithms.participation import sampled_delta
from mpi_compress.algorithms.parts import Direction
from mpi_compress.algorithms.product import Estimator
from mpi_compress.algorithms.sampling import Sampling
from mpi_compress.algorithms.steps import Step
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Message
from mpi_compress.problem.objective import Objective


@dataclass
class Memory:
    g: Vector  # (d,) (1/n) Σ g_i


@dataclass
class Worker:
    g: Vector  # (d,) g_i: what everyone believes ∇f_i(x) is


@algorithms.register("ef21")
@dataclass(frozen=True)
class EF21(Estimator):
    """EF21: Richtárik, Sokolov, Fatkhullin (NeurIPS 2021), Algorithm 2. All g start at 0.

    worker sends     c_i ← C(∇f_i(x) − g_i);  g_i ← g_i + c_i
    master answers   c ← (1/n) Σ c_i
    everyone         g ← g + c;  x ← x − γ g

    So at first g_i = C(∇f_i(x)); with first = "gradient" g_i = ∇f_i(x), as the authors' experiments start. With `batch` later
    gradients are means over minibatches. With a penalty r that is not smooth everyone takes the step x ← prox_{γr}(x − γ g)
    (Fatkhullin et al. 2021).

    C is contractive with δ. Theorem 1: γ ≤ 1/(L + L̃ √(β/θ)) with θ = 1 − √(1−δ), β = (1−δ)/θ, L̃ = √((1/n) Σ L_i²): the default.
    The proximal form takes 2L̃ in place of L̃, which convex r allow; `prox` is this factor, derived here and not checked against the
    paper.

    `budget` = "cat", here or in [up], tunes C to each ∇f_i(x) − g_i as CAT tunes it to a gradient: T = argmax α(T)/C(T). Its δ is
    the least of any budget, 1/d for top-k, and the theorem's step is short accordingly.

    If r of n workers take part, the others keep their g_i, and c is the sum over n still (EF21-PP: Fatkhullin et al. 2021). To
    update g_i by C with probability r/n is to update it by a contraction with δr/n, which is the δ of the formulas.
    """

    paper = "EF21, Algorithm 2"
    compressor = "top-k"
    partial_mean = "over all"
    proximal = True
    needs = (WHOLE_GRADIENTS, EXACT_DOWN)
    theory = "1/(L + prox*L_rms*sqrt(1 - delta)/(1 - sqrt(1 - delta)))"
    step: Step = theory  # γ, the step size
    first: First = "compressed"  # what round 0 sends: whole gradients, or compressed ones
    batch: int | None = None  # rows of each worker's minibatch; left out: full gradients
    sampling: Sampling = "with-replacement"  # rows drawn uniformly over the shard, or from a new permutation in each epoch
    budget: Literal["cat"] | None = None  # "cat": T of top-k, or a contraction's size, is tuned for each message; left out: fixed

    @property
    def tunes(self) -> bool:
        return self.budget is not None

    def knows(self) -> Mapping[str, float]:
        known = super().knows()
        sampled = {"delta": sampled_delta(known["delta"], self.setting.n, self.setting.r)} if "delta" in known else {}
        return {**known, **sampled, "prox": 1.0 if self.setting.penalty_apart is None else 2.0}

    def start_memory(self, x0: Vector) -> Memory:
        return Memory(np.zeros_like(x0))

    def start_worker(self, node: Any, f: Objective) -> Worker:
        return Worker(np.zeros(f.dim))

    def worker_sends(self, node: Any, worker: Worker, f: Objective, t: Round) -> Message:
        link = self.uplink(node, t.k)
        g = f.gradient(node.x, None if self.starts_whole(t.k) else self.rows(f, t))
        c = link.pack(g - worker.g, t)
        link.unpack(c).add_to(worker.g)
        return c

    def estimate(self, node: Any, memory: Memory, mean: Compressed, t: Round) -> Direction:
        mean.add_to(memory.g)
        return (memory.g,)
