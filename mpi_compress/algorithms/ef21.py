from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from mpi_compress.algorithms.base import Setting, algorithms
from mpi_compress.algorithms.participation import sampled_delta
from mpi_compress.algorithms.sampling import Sampling
from mpi_compress.algorithms.steps import Step
from mpi_compress.algorithms.tuned_link import tuned
from mpi_compress.algorithms.whole_start import First, WholeStart
from mpi_compress.core.streams import Round
from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Message
from mpi_compress.problem.objective import Objective


@dataclass
class Node:
    x: Vector  # (d,) iterate
    g: Vector  # (d,) (1/n) Σ g_i


@dataclass
class Worker:
    g: Vector  # (d,) g_i: what everyone believes ∇f_i(x) is


@algorithms.register("ef21")
@dataclass(frozen=True)
class EF21(WholeStart):
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

    `budget` = "cat" tunes C to each ∇f_i(x) − g_i as CAT tunes it to a gradient: T = argmax α(T)/C(T). Its δ is the least of any
    budget, 1/d for top-k, and the theorem's step is short accordingly.

    If r of n workers take part, the others keep their g_i, and c is the sum over n still (EF21-PP: Fatkhullin et al. 2021). To
    update g_i by C with probability r/n is to update it by a contraction with δr/n, which is the δ of the formulas.
    """

    paper = "EF21, Algorithm 2"
    compressor = "top-k"
    partial_mean = "over all"
    proximal = True
    theory = "1/(L + prox*L_rms*sqrt(1 - delta)/(1 - sqrt(1 - delta)))"
    step: Step = theory  # γ, the step size
    first: First = "compressed"  # what round 0 sends: whole gradients, or compressed ones
    batch: int | None = None  # rows of each worker's minibatch; left out: full gradients
    sampling: Sampling = "with-replacement"  # rows drawn uniformly over the shard, or from a new permutation in each epoch
    budget: Literal["cat"] | None = None  # "cat": T of top-k, or a contraction's size, is tuned for each message; left out: fixed

    def within(self, setting: Setting) -> Self:
        return super().within(setting if self.budget is None else replace(setting, up=tuned(setting.up, setting.cost)))

    def settles(self, compressor: Compressor, way: str = "up") -> bool:
        return (way == "up" and self.budget is not None) or super().settles(compressor, way)

    @property
    def fixed_budget(self) -> int | None:
        return None if self.budget is not None else super().fixed_budget

    def knows(self) -> Mapping[str, float]:
        known = super().knows()
        sampled = {"delta": sampled_delta(known["delta"], self.setting.n, self.setting.r)} if "delta" in known else {}
        return {**known, **sampled, "prox": 1.0 if self.setting.penalty_apart is None else 2.0}

    def check(self) -> None:
        super().check()
        if self.setting.penalty_apart is not None and self.setting.penalty_apart.smooth:
            raise ValueError(f'{self.name} needs the whole of ∇f_i: set regularizer = "worker"')

    def start(self, x0: Vector) -> Node:
        return Node(x0.copy(), np.zeros_like(x0))

    def start_worker(self, node: Node, f: Objective) -> Worker:
        return Worker(np.zeros(f.dim))

    def worker_sends(self, node: Node, worker: Worker, f: Objective, t: Round) -> Message:
        link = self.uplink(node, t.k)
        g = f.gradient(node.x, None if self.starts_whole(t.k) else self.rows(f, t))
        c = link.pack(g - worker.g, t)
        link.unpack(c).add_to(worker.g)
        return c

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        γ, r = self.gamma(t.k), self.setting.penalty_apart
        down.add_to(node.g)
        node.x -= γ * node.g
        if r is not None:
            node.x[:] = r.prox(node.x, γ)
