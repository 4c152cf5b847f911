from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.algorithms.base import algorithms, check_share, check_unbiased
from mpi_compress.algorithms.steps import Step
from mpi_compress.algorithms.whole_start import First, WholeStart
from mpi_compress.core.expressions import Expression
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
    h: Vector  # (d,) h_i, the worker's estimate of ∇f_i(x)
    g: Vector  # (d,) g_i: what everyone believes h_i is


@algorithms.register("dasha")
@dataclass(frozen=True)
class DASHA(WholeStart):
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
    theory = "1/(L + L_rms*sqrt(16*omega*(2*omega + 1)/n))"
    step: Step = "theory"  # γ, the step size
    a: Expression = "1/(2*omega + 1)"  # a, the share of g_i − h_i that a message corrects
    first: First = "gradient"  # what round 0 sends: whole gradients, or compressed ones

    def check(self) -> None:
        super().check()
        check_unbiased(self)
        check_share(self, "a")

    def start(self, x0: Vector) -> Node:
        return Node(x0.copy(), np.zeros_like(x0))

    def start_worker(self, node: Node, f: Objective) -> Worker:
        return Worker(np.zeros(f.dim), np.zeros(f.dim))

    def estimate(self, node: Any, worker: Worker, f: Objective, t: Round) -> Vector:
        """h_i⁺ (d,), a new array."""
        return f.gradient(node.x).copy()

    def worker_sends(self, node: Node, worker: Worker, f: Objective, t: Round) -> Message:
        link, h = self.uplink(node, t.k), self.estimate(node, worker, f, t)
        m = link.pack(h - worker.h - float(self.a) * (worker.g - worker.h), t)
        link.unpack(m).add_to(worker.g)
        worker.h[:] = h
        return m

    def all_hear(self, node: Any, down: Compressed, t: Round) -> None:
        down.add_to(node.g)
        node.x -= self.gamma(t.k) * node.g


@dataclass
class NodeWithBefore(Node):
    before: Vector  # (d,) x⁻, the iterate before


class WithBefore(DASHA):
    """A DASHA whose h_i⁺ needs gradients at the iterate before, too."""

    def start(self, x0: Vector) -> NodeWithBefore:
        return NodeWithBefore(x0.copy(), np.zeros_like(x0), x0.copy())

    def all_hear(self, node: Any, down: Compressed, t: Round) -> None:
        node.before[:] = node.x
        super().all_hear(node, down, t)
