from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mpi_compress.algorithms.base import Algorithm, algorithms, check_adding_up
from mpi_compress.algorithms.participation import sampled_delta
from mpi_compress.algorithms.steps import Step
from mpi_compress.core.streams import Round
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
class EF21(Algorithm):
    """EF21: Richtárik, Sokolov, Fatkhullin (NeurIPS 2021), Algorithm 2. All g start at 0, so that at first g_i = C(∇f_i(x)).

    worker sends     c_i ← C(∇f_i(x) − g_i);  g_i ← g_i + c_i
    master answers   c ← (1/n) Σ c_i
    everyone         g ← g + c;  x ← x − γ g

    C is contractive with δ. Theorem 1: γ ≤ 1/(L + L̃ √(β/θ)) with θ = 1 − √(1−δ), β = (1−δ)/θ, L̃ = √((1/n) Σ L_i²): the default.

    If r of n workers take part, the others keep their g_i, and c is the sum over n still (EF21-PP: Fatkhullin et al. 2021). To
    update g_i by C with probability r/n is to update it by a contraction with δr/n, which is the δ of the formulas.
    """

    paper = "EF21, Algorithm 2"
    compressor = "top-k"
    partial_mean = "over all"
    step: Step = "1/(L + L_rms*sqrt(1 - delta)/(1 - sqrt(1 - delta)))"  # γ, the step size

    def knows(self) -> Mapping[str, float]:
        known = super().knows()
        sampled = {"delta": sampled_delta(known["delta"], self.setting.n, self.setting.r)} if "delta" in known else {}
        return {**known, **sampled}

    def check(self) -> None:
        check_adding_up(self)

    def start(self, x0: Vector) -> Node:
        return Node(x0.copy(), np.zeros_like(x0))

    def start_worker(self, node: Node, f: Objective) -> Worker:
        return Worker(np.zeros(f.dim))

    def worker_sends(self, node: Node, worker: Worker, f: Objective, t: Round) -> Message:
        c = self.up.pack(f.gradient(node.x) - worker.g, t)
        self.up.unpack(c).add_to(worker.g)
        return c

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        down.add_to(node.g)
        node.x -= self.gamma(t.k) * node.g
