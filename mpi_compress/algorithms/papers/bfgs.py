from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mpi_compress.algorithms.contract import algorithms
from mpi_compress.algorithms.needs import STRONGLY_CONVEX
from mpi_compress.algorithms.second_order import SendsHessians, hessian, lifted, solved
from mpi_compress.algorithms.vocabulary import Compressed, Link, Message, Objective, Round, Step, Vector
from mpi_compress.core.fields import AtLeastOne
from mpi_compress.messages.kinds import square
from mpi_compress.messages.several import SeveralLink

_LEAST = 0.2  # of sᵀBs that sᵀy has in an update, as Powell damps it


@dataclass
class Node:
    x: Vector  # (d,) iterate


@dataclass
class Worker:
    h: Vector  # (d,) what the master knows of ∇f_i, where gradients are compressed


@dataclass
class Master:
    B: Vector  # (d, d) what stands for ∇²f
    g: Vector  # (d,) what stands for ∇f, of the last round
    h: Vector  # (d,) (1/n) Σ h_i
    s: Vector  # (d,) the last step


@algorithms.register("bfgs")
class BFGS(SendsHessians):
    """BFGS by the master, from one compressed Hessian and compressed gradients; ours. All h_i start at 0.

    worker sends     g_i ← C(∇f_i(x) − h_i);  h_i ← h_i + g_i;  in round 0 also S_i ← Q(n/m ∇²f_i(x)), m of them; Q(0) the others
    master answers   g ← (1/n) Σ h_i;  B ← [(1/n) Σ S_i]_µ in round 0, then BFGS's update of B by the step s and the change y of g:
                     B ← B − B s sᵀB/sᵀBs + r rᵀ/sᵀr,  r = θ y + (1 − θ) B s;  Δ ← −γ B⁻¹ g
    everyone         x ← x + Δ

    The change of the gradients along a step says what the curvature is there, and costs no bits beside theirs. So Hessians are sent
    once, by a few bits a coordinate, and BFGS keeps B up to date; where shards are alike, those of m workers will do. θ is 1, or
    less where sᵀy < 0.2 sᵀBs (Powell's damping: Nocedal and Wright 2006, Procedure 18.2), so that B stays positive definite
    whatever errors y has. No rate is claimed. With exact gradients, γ = 1 and the exact Hessians of a quadratic, round 0 ends at
    x*.
    """

    paper = "ours; BFGS: Nocedal and Wright 2006, (6.19)"
    links = {  # noqa: RUF012
        "up": {"compressor": {"name": "natural", "fraction": 2}, "codec": {"name": "entropy", "float": 32}},
        "down": {"compressor": {"name": "natural", "fraction": 4}, "codec": {"name": "entropy", "float": 32}},
    }
    needs = (*SendsHessians.needs, STRONGLY_CONVEX)
    hessian: dict[str, Any] = field(default_factory=lambda: {"compressor": {"name": "natural", "fraction": 2}, "codec": "entropy"})
    senders: AtLeastOne | None = None  # m, the workers that send a Hessian, evenly spaced; None: all
    step: Step = 1.0  # γ, the step size

    def check(self) -> None:
        super().check()
        if self.senders is not None and self.senders > self.setting.n:
            raise ValueError(f"senders: {self.senders} was given, and there are {self.setting.n} workers")

    def start(self, x0: Vector) -> Node:
        return Node(x0.copy())

    def start_worker(self, node: Node, f: Objective) -> Worker:
        return Worker(np.zeros(f.dim))

    def start_master(self, node: Node) -> Master:
        d = self.setting.dim
        return Master(np.zeros((d, d)), *np.zeros((3, d)))

    def uplink(self, node: Node, k: int) -> Link:
        return self.up if k else SeveralLink(self.up, self.hessians)

    def worker_sends(self, node: Node, worker: Worker, f: Objective, t: Round) -> Message:
        g = self.up.pack(f.gradient(node.x) - worker.h, t)
        if self.learns_gradients:
            self.up.unpack(g).add_to(worker.h)
        return g if t.k else SeveralLink(self.up, self.hessians).join(g, self.hessians.pack(self.curvature(node.x, f, t.who), t))

    def curvature(self, x: Vector, f: Objective, i: int) -> Vector:
        """(n/m) ∇²f_i(x) as its triangle (d(d+1)/2,), 0 where worker i is none of the m."""
        n, m = self.setting.n, self.senders or self.setting.n
        return n / m * hessian(f, x) if i * m % n < m else np.zeros(self.hessians.dim)

    def master_answers(self, node: Node, master: Master, ups: Sequence[Compressed], t: Round) -> Message:
        if t.k:
            g = master.h + self.mean(ups).dense()
            master.B = updated(master.B, master.s, g - master.g)
        else:
            g = self.mean_of(ups, 0, self.setting.dim)
            master.B = lifted(square(self.mean_of(ups, 1, self.hessians.dim)), self.setting.numbers["mu"])
        master.g = g
        if self.learns_gradients:
            master.h = g
        answer = self.down.pack(-self.gamma(t.k) * solved(master.B, g), t)
        master.s = self.down.unpack(answer).dense()
        return answer

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        node.x = node.x + down.dense()


def updated(B: Vector, s: Vector, y: Vector) -> Vector:
    """B (d, d) after BFGS's damped update; B itself where s is 0."""
    Bs = B @ s
    sBs, sy = float(s @ Bs), float(s @ y)
    if not sBs > 0:
        return B
    θ = 1.0 if sy >= _LEAST * sBs else (1.0 - _LEAST) * sBs / (sBs - sy)
    r = θ * y + (1.0 - θ) * Bs
    return B - np.outer(Bs, Bs) / sBs + np.outer(r, r) / float(s @ r)
