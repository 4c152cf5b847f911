from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.algorithms.vocabulary import (
    ONE_STEP_SIZE,
    ROUNDED_DOWN,
    WHOLE_GRADIENTS,
    Algorithm,
    Batch,
    Message,
    MinibatchParameters,
    PairLink,
    Residual,
    Round,
    Rounds,
    Shards,
    Vector,
    algorithms,
    means_of_pairs,
    residual_of,
    starts_at_0,
)


@dataclass
class Node:
    x: Vector  # (d,) iterate
    y: Vector  # (d,) (A x + a v)/(A + a), where gradients are taken
    v: Vector  # (d,) x0 − Σ a ĝ
    h: Vector  # (d,) (1/n) Σ h_i


@dataclass
class Worker:
    h: Vector  # (d,) h_i, which learns ∇f_i(y)
    e: Vector  # (d,) e_i = Σ a c_i − Σ a (g_i − h_i)


@dataclass
class Master:
    h: Residual  # of the messages m, which h adds up
    v: Residual  # of a ĝ, which v adds up


@algorithms.register("adef")
class ADEF(MinibatchParameters, Algorithm):
    """ADEF, accelerated error feedback: Gao, Rodomanov, Rack, Stich (2025), Algorithm 1. x = y = v = x0; h and e start at 0.

    every node       a ← γ(k+1)/2 and A ← γk(k+1)/4, so that A + a is the next A;  y ← (A x + a v)/(A + a)
    worker sends     g_i ← ∇f_i(y; ξ);  m_i ← C(g_i − h_i);  h_i ← h_i + m_i
                     u_i ← g_i − h_i − e_i/a;  c_i ← C(u_i);  e_i ← a (c_i − u_i)
    master answers   m ← (1/n) Σ m_i and c ← (1/n) Σ c_i
    everyone         h ← h + m;  ĝ ← h + c;  v ← v − a ĝ;  x ← (A x + a v)/(A + a)

    So v + (1/n) Σ e_i is always x0 − Σ a (1/n) Σ g_i. Where C loses nothing this is Nesterov's method: f(x) − f* ≤ ‖x0 − x*‖²/(2A)
    for convex f and γ ≤ 1/L, the default. The paper's text was not at hand. Its updates were read in a public collection of
    optimisers (zij), which has no theorem: γ is to be tuned for a C that loses something.
    """

    paper = "ADEF, Algorithm 1"
    compressor = "top-k"
    needs = (WHOLE_GRADIENTS, ROUNDED_DOWN, ONE_STEP_SIZE)

    def weights(self, k: int) -> tuple[float, float]:
        """A and a of round k."""
        γ = self.gamma(k)
        return γ * k * (k + 1) / 4, γ * (k + 1) / 2

    def between(self, x: Vector, v: Vector, k: int) -> Vector:
        """(A x + a v)/(A + a)."""
        A, a = self.weights(k)
        return (A * x + a * v) / (A + a)

    def uplink(self, node: Node, k: int) -> PairLink:
        return PairLink(self.up)

    def downlink(self, node: Node, k: int) -> PairLink:
        return PairLink(self.down)

    def start(self, x0: Vector) -> Node:
        return Node(x0.copy(), x0.copy(), x0.copy(), np.zeros_like(x0))

    start_workers = starts_at_0(Worker)

    def workers_send(self, node: Node, w: Worker, fs: Shards, t: Rounds) -> Batch:
        _, a = self.weights(t.k)
        g = fs.gradients(node.y, self.rows(fs, t))
        m = self.up.pack(g - w.h, t)
        self.up.unpack(m).add_to(w.h)
        u = g - w.h - w.e / a
        c = self.up.pack(u, t)
        w.e[:] = -a * u
        self.up.unpack(c).add_to(w.e, a)
        return self.uplink(node, t.k).join(m, c)

    def start_master(self, node: Node) -> Master | None:
        return None if (rest := residual_of(self)) is None else Master(rest, Residual(np.zeros_like(node.x)))

    def master_answers(self, node: Node, master: Master | None, ups: Any, t: Round) -> Message:
        mean, link, (_, a) = means_of_pairs(self.mean, ups), self.downlink(node, t.k), self.weights(t.k)
        if master is None:
            return link.pack(mean, t)
        m = master.h.pack(self.down, mean.first, t)
        master.v.e += a * master.h.e  # ĝ has the h of all nodes
        return link.join(m, master.v.pack(self.down, mean.second, t, a))

    def all_hear(self, node: Node, down: Any, t: Round) -> None:
        _, a = self.weights(t.k)
        down.first.add_to(node.h)
        node.v -= a * node.h
        down.second.add_to(node.v, -a)
        node.x = self.between(node.x, node.v, t.k)
        node.y = self.between(node.x, node.v, t.k + 1)
