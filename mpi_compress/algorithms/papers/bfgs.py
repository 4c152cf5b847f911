from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from mpi_compress.algorithms.second_order import Pairs, SendsHessians, hessian, lifted, solved
from mpi_compress.algorithms.vocabulary import (
    STRONGLY_CONVEX,
    AtLeastOne,
    Batch,
    Link,
    Message,
    Objective,
    Round,
    Rounds,
    SeveralLink,
    Shards,
    Step,
    Vector,
    algorithms,
    square,
    starts_at_0,
    within,
)

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
    pairs: Pairs | None  # where they are limited in number; B is then what the two loops begin with


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

    With `memory` the master keeps so many pairs (s, y), damped as the server l-bfgs damps them, and Δ ← −γ H g by its two loops.
    Hessians are sent in round `at`. Before it the loops begin with 1/min{L, yᵀy/sᵀy}; after it with τ B⁻¹, by newer pairs alone. B
    is (1/n) Σ S_i, its eigenvalues below max{µ, −λ_min} lifted to that, since the error of Q is as large, and stays as it is;
    τ = sᵀy/yᵀB⁻¹y of the last pair. A Hessian is worth more near x* than at x_0, most of all where κ is large.

    Its kin: EF21 + L-BFGS (Wu, Kamzolov, Takáč, OPT 2025), pairs of compressed gradients and no Hessian, here `ef21` with the
    server l-bfgs; Alimisis, Davies, Alistarh (ICML 2021), quantised Hessians and directions of linear models; Q-SHED (arXiv
    2305.10852), quantised eigenvectors of Hessians, some in each round; FedNL. Ours is a compressed Hessian that is sent once,
    followed by secant updates from changes of compressed gradients. None of these texts was at hand.
    """

    paper = "ours; BFGS: Nocedal and Wright 2006, (6.19)"
    links = {
        "up": {"compressor": {"name": "natural", "fraction": 2}, "codec": {"name": "entropy", "float": 32}},
        "down": {"compressor": {"name": "natural", "fraction": 4}, "codec": {"name": "entropy", "float": 32}},
    }
    needs = [*SendsHessians.needs, STRONGLY_CONVEX]
    hessian: dict[str, Any] = field(default_factory=lambda: {"compressor": {"name": "natural", "fraction": 2}, "codec": "entropy"})
    senders: int | float | None = None  # m, the workers that send a Hessian, evenly spaced, or below 1 their share; None: all
    memory: AtLeastOne | None = None  # the number of pairs that are kept; left out: all, in B
    at: Annotated[int, within("[0, inf)")] = 0  # the round that sends Hessians, with `memory`
    step: Step = 1.0  # γ, the step size

    def check(self) -> None:
        super().check()
        if self.at and self.memory is None:
            raise ValueError(f"at = {self.at} needs memory, the number of pairs that are kept: without it B begins with a Hessian")
        if not 1 <= self.m <= self.setting.n or not (self.senders is None or isinstance(self.senders, int) or 0 < self.senders < 1):
            raise ValueError(f"senders: {self.senders} was given, and there are {self.setting.n} workers; a share is below 1")

    @property
    def m(self) -> int:
        """The workers that send a Hessian."""
        n = self.setting.n
        given = n if self.senders is None else self.senders
        return given if isinstance(given, int) else max(1, round(given * n))

    def start(self, x0: Vector) -> Node:
        return Node(x0.copy())

    start_workers = starts_at_0(Worker)

    def start_master(self, node: Node) -> Master:
        d = self.setting.dim
        g, h, s = np.zeros((3, d))
        return Master(np.zeros((d, d)), g, h, s, Pairs.begun(self.memory, d) if self.memory else None)

    def uplink(self, node: Node, k: int) -> Link:
        return SeveralLink(self.up, self.hessians) if k == self.at else self.up

    def workers_send(self, node: Node, w: Worker, fs: Shards, t: Rounds) -> Batch:
        g = self.gradient(node.x, w, fs, t)
        if t.k != self.at:
            return g
        S = np.array([self.curvature(node.x, f, i) for f, i in zip(fs, t.who.tolist(), strict=True)])
        return SeveralLink(self.up, self.hessians).join(g, self.hessians.pack(S, t))

    def curvature(self, x: Vector, f: Objective, i: int) -> Vector:
        """(n/m) ∇²f_i(x) as its triangle (d(d+1)/2,), 0 where worker i is none of the m."""
        n, m = self.setting.n, self.m
        return n / m * hessian(f, x) if i * m % n < m else np.zeros(self.hessians.dim)

    def master_answers(self, node: Node, master: Master, ups: Any, t: Round) -> Message:
        if t.k == self.at:
            g = master.h + self.mean_of(ups, 0)
            B = square(self.mean_of(ups, 1))
            master.B = lifted(B, self.setting.numbers["mu"], noisy=self.memory is not None)
            master.pairs = Pairs.begun(self.memory, self.setting.dim) if self.memory else None
        else:
            g = master.h + self.mean(ups).dense()
            if self.memory is None:
                master.B = updated(master.B, master.s, g - master.g)
        master.g = g
        if self.learns_gradients:
            master.h = g
        answer = self.down.pack(-self.gamma(t.k) * self.direction(node, master, g, t.k), t)
        master.s = self.down.unpack(answer).dense()
        return answer

    def direction(self, node: Node, master: Master, g: Vector, k: int) -> Vector:
        """B⁻¹ g (d,), or H g by the pairs."""
        if master.pairs is None:
            return solved(master.B, g)
        pairs, L = master.pairs, self.setting.numbers["L"]
        pairs.follow(node.x, g, self.setting.numbers["mu"], L)
        if k < self.at:
            return pairs.product(g, lambda p: p / pairs.curvature(L))
        s, y = pairs.s[-1], pairs.y[-1]
        τ = (s @ y) / (y @ solved(master.B, y)) if pairs.held > 0 else 1.0
        return pairs.product(g, lambda p: τ * solved(master.B, p))


def updated(B: Vector, s: Vector, y: Vector) -> Vector:
    """B (d, d) after BFGS's damped update; B itself where s is 0."""
    Bs = B @ s
    sBs, sy = float(s @ Bs), float(s @ y)
    if not sBs > 0:
        return B
    θ = 1.0 if sy >= _LEAST * sBs else (1.0 - _LEAST) * sBs / (sBs - sy)
    r = θ * y + (1.0 - θ) * Bs
    return B - np.outer(Bs, Bs) / sBs + np.outer(r, r) / float(s @ r)
