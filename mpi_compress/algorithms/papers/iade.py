import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mpi_compress.algorithms.contract import algorithms
from mpi_compress.algorithms.papers.double_encoding import DoubleEncoding, Past, Worker, ball, check_rate, refuse_rounding, xi
from mpi_compress.core.expressions import Expression
from mpi_compress.core.streams import Round
from mpi_compress.kernels.vectors import norm
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Message
from mpi_compress.problem.objective import Objective


@dataclass
class Node:
    x: Vector  # (d,) iterate
    v: Vector  # (d,) what every node takes for the gradient
    past: Past


@dataclass
class Master:
    S: Vector  # (d,) (1/n) Σ s_i


class DoublyEncoded(DoubleEncoding):
    """The lines of Algorithms 1 and 3, which differ in g_i and in σ_k. In Algorithm 2 workers and the master do the same, at y."""

    def point(self, node: Node) -> Vector:
        """Where gradients are taken (d,)."""
        return node.x

    def start(self, x0: Vector) -> Node:
        x_star = self.setting.x_star
        return Node(x0.copy(), np.zeros_like(x0), Past(math.nan if x_star is None else norm(x0 - x_star)))

    def start_worker(self, node: Node, f: Objective) -> Worker:
        return Worker(np.zeros(f.dim), np.zeros(f.dim))

    def start_master(self, node: Node) -> Master:
        return Master(np.zeros_like(node.x))

    def worker_sends(self, node: Node, worker: Worker, f: Objective, t: Round) -> Message:
        Q = self.uplink(node, t.k)
        y = self.point(node)
        worker.g[:] = f.gradient(y, self.rows(f, t))
        refuse_rounding(self, worker.g, y, t.k)
        d = Q.pack(worker.g - worker.s, t)
        worker.hear(Q.unpack(d))  # s_i ← s_i + d_i
        return d

    def master_answers(self, node: Node, master: Master, ups: Sequence[Compressed], t: Round) -> Message:
        self.mean(ups).add_to(master.S)
        return self.downlink(node, t.k).pack(master.S - node.v, t)

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        down.add_to(node.v)
        x = node.x - self.η * node.v
        self.note_round(node.past, down, node.x, x, t.k)
        node.x = x

    def note_round(self, past: Past, down: Compressed, before: Vector, after: Vector, k: int) -> None:
        """Note the message of round k, and how far the point of the gradients moved."""
        if self.up.compressor.bounds_range or self.down.compressor.bounds_range:
            past.moved = norm(after - before)
        past.k = k + 1
        past.ball = ball(down)


@algorithms.register("iade")
@dataclass(frozen=True)
class IADE(DoublyEncoded):
    """Increasing accuracy and double encoding: Ye, Xiao, Sun (2020), Algorithm 1. s_i, S and v start at 0.

    worker sends     d_i ← Q(∇f_i(x) − s_i, σ_k);  s_i ← s_i + d_i          σ_k = s c'^(k+1)/2
    master answers   S ← S + (1/n) Σ d_i;  u ← Q(S − v, σ_k)
    everyone         v ← v + u;  x ← x − η v

    ‖v_k − ∇f(x_k)‖ ≤ s c'^(k+1) at every round. Theorem 3.1, whose printed proof drops η: with η ≤ 2/(L + µ), L the largest L_i,
    and c = 1 − ηµ < c' < 1, ‖x_k − x*‖ ≤ c'^k ξ, where ξ = max{0, ‖x_0 − x*‖ − ηsc'/(c' − c)} + ηsc'/(c' − c).

    Without [up] or [down] that link is a lattice with floats of 32 bits.
    """

    paper = "AIADE, Algorithm 1"
    theory = "2/(L_max + convexity)"
    step: Expression = theory  # η, the step size
    rate: Expression = "1 - step*convexity/2"  # c', the factor by which the bound falls each round: above c = 1 − ηµ, below 1

    @cached_property
    def c(self) -> float:
        return 1 - self.η * self.µ

    @cached_property
    def c1(self) -> float:
        """c'."""
        return float(self.rate)

    def check(self) -> None:
        super().check()
        check_rate(self.c1, self.c, "1 − ηµ")

    def budget(self, k: int) -> float:
        return self.s * self.c1 ** (k + 1)

    @property
    def proved(self) -> bool:
        return self.η * (self.L + self.µ) <= 2 + 1e-9

    def bound(self, k: int, start: float) -> float:
        return self.c1**k * xi(start, self.η * self.s, self.c, self.c1)
