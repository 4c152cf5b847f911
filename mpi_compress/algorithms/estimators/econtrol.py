from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.algorithms.contract import First, algorithms
from mpi_compress.algorithms.needs import EXACT_DOWN, WHOLE_GRADIENTS
from mpi_compress.algorithms.parts import Direction
from mpi_compress.algorithms.product import Estimator
from mpi_compress.algorithms.sampling import Sampling
from mpi_compress.algorithms.steps import Step
from mpi_compress.core.expressions import Expression
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Message
from mpi_compress.problem.objective import Objective


@dataclass
class Memory:
    h: Vector  # (d,) (1/n) Σ h_i


@dataclass
class Worker:
    h: Vector  # (d,) h_i: what everyone believes ∇f_i(x) is
    e: Vector  # (d,) e_i, the error: the sum of what was not sent


@algorithms.register("econtrol")
@dataclass(frozen=True)
class EControl(Estimator):
    """EControl: Gao, Islamov, Stich (ICLR 2024), Algorithm 1. e_i starts at 0, h_i at the first gradient.

    worker sends     g_i ← ∇f_i(x; ξ);  c_i ← C(η e_i + g_i − h_i);  e_i ← e_i + g_i − h_i − c_i;  h_i ← h_i + c_i
    master answers   c ← (1/n) Σ c_i
    everyone         h ← h + c;  x ← x − γ h

    So x − γ (1/n) Σ e_i is always x_0 − γ Σ (1/n) Σ g_i. C is contractive with δ. η = δ/(3s(1 + s)) with s = √(1−δ), at most 1, and
    γ = δ/(8√6 L_max) are the defaults; their constants were not checked against the paper. η = 0 is EF21.
    """

    paper = "EControl, Algorithm 1"
    compressor = "top-k"
    needs = (WHOLE_GRADIENTS, EXACT_DOWN)
    theory = "delta/(8*sqrt(6)*L_max)"
    step: Step = "theory"  # γ, the step size
    eta: Expression = "delta/max(delta, 3*sqrt(1 - delta)*(1 + sqrt(1 - delta)))"  # η, the share of the error in a message
    batch: int | None = None  # rows of each worker's minibatch; left out: full gradients
    sampling: Sampling = "with-replacement"  # rows drawn uniformly over the shard, or from a new permutation in each epoch
    first: First = "gradient"  # what round 0 sends: whole gradients, or compressed ones

    def check(self) -> None:
        super().check()
        if not 0 <= float(self.eta) <= 1:
            raise ValueError(f"eta = {self.eta} must be from 0 to 1")

    def start_memory(self, x0: Vector) -> Memory:
        return Memory(np.zeros_like(x0))

    def start_worker(self, node: Any, f: Objective) -> Worker:
        return Worker(np.zeros(f.dim), np.zeros(f.dim))

    def worker_sends(self, node: Any, worker: Worker, f: Objective, t: Round) -> Message:
        link, e, h = self.uplink(node, t.k), worker.e, worker.h
        Δ = f.gradient(node.x, self.rows(f, t)) - h
        message = link.pack(float(self.eta) * e + Δ, t)
        c = link.unpack(message)
        e += Δ
        c.add_to(e, -1.0)
        c.add_to(h)
        return message

    def estimate(self, node: Any, memory: Memory, mean: Compressed, t: Round) -> Direction:
        mean.add_to(memory.h)
        return (memory.h,)
