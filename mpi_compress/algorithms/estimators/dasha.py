from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mpi_compress.algorithms.contract import First, algorithms
from mpi_compress.algorithms.needs import EXACT_DOWN, UNBIASED_UP, WHOLE_GRADIENTS, Need
from mpi_compress.algorithms.parts import Direction
from mpi_compress.algorithms.product import Estimator
from mpi_compress.algorithms.steps import Step
from mpi_compress.core.expressions import Expression
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Message
from mpi_compress.problem.objective import Objective


@dataclass
class Memory:
    g: Vector  # (d,) (1/n) Σ g_i


@dataclass
class Known:
    before: Vector | None  # (d,) x⁻, the iterate before, where gradients are taken there too
    full: bool = True  # True: this round takes full gradients, where a coin says so, which all toss alike at no cost of bits
    batches: int = 0  # minibatches so far: rounds that were not full


@dataclass
class Worker:
    h: Vector  # (d,) h_i, the worker's estimate of ∇f_i(x)
    g: Vector  # (d,) g_i: what everyone believes h_i is


@algorithms.register("dasha")
@dataclass(frozen=True)
class DASHA(Estimator):
    """DASHA: Tyurin, Richtárik (ICLR 2023), Algorithm 1. All messages but the first are compressed; no round is synchronised.

    worker sends     h_i⁺ ← ∇f_i(x);  m_i ← Q(h_i⁺ − h_i − a (g_i − h_i));  g_i ← g_i + m_i;  h_i ← h_i⁺
    master answers   m ← (1/n) Σ m_i
    everyone         g ← g + m;  x ← x − γ g

    Round 0 makes g_i = h_i = ∇f_i(x0), or Q(∇f_i(x0)) with first = "compressed". Q is unbiased with ω, drawn independently by each
    worker. Theorem: with a = 1/(2ω + 1) and γ ≤ 1/(L + L̃ √(16ω(2ω + 1)/n)), L̃ = √((1/n) Σ L_i²), the defaults,
    (1/T) Σ E‖∇f(x_k)‖² ≤ 2 (f(x_0) − f*)/(γT). The 16 was not checked against the paper; the authors' code has
    ω(4ω + 1)/n under the root, a longer step.
    """

    paper = "DASHA, Algorithm 1"
    compressor = "random-k"
    needs: ClassVar[Sequence[Need]] = (WHOLE_GRADIENTS, EXACT_DOWN, UNBIASED_UP)
    shares: ClassVar[Sequence[str]] = ("a",)
    looks_back: ClassVar[bool] = False  # True: h_i⁺ needs gradients at x⁻, too
    theory = "1/(L + L_rms*sqrt(16*omega*(2*omega + 1)/n))"
    step: Step = "theory"  # γ, the step size
    a: Expression = "1/(2*omega + 1)"  # a, the share of g_i − h_i that a message corrects
    first: First = "gradient"  # what round 0 sends: whole gradients, or compressed ones

    def start_memory(self, x0: Vector) -> Memory:
        return Memory(np.zeros_like(x0))

    def start_known(self, x0: Vector) -> Known:
        return Known(x0.copy() if self.looks_back else None)

    def start_worker(self, node: Any, f: Objective) -> Worker:
        return Worker(np.zeros(f.dim), np.zeros(f.dim))

    def tracked(self, node: Any, worker: Worker, f: Objective, t: Round) -> Vector:
        """h_i⁺ (d,), a new array."""
        return f.gradient(node.x).copy()

    def worker_sends(self, node: Any, worker: Worker, f: Objective, t: Round) -> Message:
        link, h = self.uplink(node, t.k), self.tracked(node, worker, f, t)
        m = link.pack(h - worker.h - float(self.a) * (worker.g - worker.h), t)
        link.unpack(m).add_to(worker.g)
        worker.h[:] = h
        return m

    def estimate(self, node: Any, memory: Memory, mean: Compressed, t: Round) -> Direction:
        mean.add_to(memory.g)
        return (memory.g,)

    def next_round(self, node: Any, t: Round) -> None:
        if node.known.before is not None:
            node.known.before[:] = node.x
