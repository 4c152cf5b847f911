from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.algorithms.contract import First, algorithms
from mpi_compress.algorithms.estimators.ef21 import Memory
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
class Worker:
    v: Vector  # (d,) v_i, the momentum: a mean of gradients of which the last ones weigh most
    g: Vector  # (d,) g_i: what everyone believes v_i is


@algorithms.register("ef21-sgdm")
@dataclass(frozen=True)
class EF21SGDM(Estimator):
    """EF21 with momentum: Fatkhullin, Tyurin, Richtárik (NeurIPS 2023), Algorithm 1. v_i and g_i start at the first gradient.

    worker sends     v_i ← (1 − η) v_i + η ∇f_i(x; ξ);  c_i ← C(v_i − g_i);  g_i ← g_i + c_i
    master answers   c ← (1/n) Σ c_i
    everyone         g ← g + c;  x ← x − γ g

    C is contractive with δ. The step is γ ≤ min{δ/(20 L̃), η/(7 L)}, L̃ = √((1/n) Σ L_i²): the default; then E‖∇f‖² stays below
    O(Δ/(γT) + (η³/δ² + η²/δ + η/n) σ²). These constants
    were not checked against the paper. η = 1 is EF21.
    """

    paper = "EF21-SGDM, Algorithm 1"
    compressor = "top-k"
    needs = (WHOLE_GRADIENTS, EXACT_DOWN)
    shares = ("eta",)
    theory = "min(delta/(20*L_rms), eta/(7*L))"
    step: Step = "theory"  # γ, the step size
    eta: Expression = 0.1  # η, the weight of a new gradient
    batch: int | None = None  # rows of each worker's minibatch; left out: full gradients
    sampling: Sampling = "with-replacement"  # rows drawn uniformly over the shard, or from a new permutation in each epoch
    first: First = "gradient"  # what round 0 sends: whole gradients, or compressed ones

    def start_memory(self, x0: Vector) -> Memory:
        return Memory(np.zeros_like(x0))

    def start_worker(self, node: Any, f: Objective) -> Worker:
        return Worker(np.zeros(f.dim), np.zeros(f.dim))

    def worker_sends(self, node: Any, worker: Worker, f: Objective, t: Round) -> Message:
        link, η = self.uplink(node, t.k), float(self.eta) if t.k else 1.0
        worker.v *= 1 - η
        worker.v += η * f.gradient(node.x, self.rows(f, t))
        c = link.pack(worker.v - worker.g, t)
        link.unpack(c).add_to(worker.g)
        return c

    def estimate(self, node: Any, memory: Memory, mean: Compressed, t: Round) -> Direction:
        mean.add_to(memory.g)
        return (memory.g,)
