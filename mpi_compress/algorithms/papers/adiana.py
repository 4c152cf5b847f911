import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from mpi_compress.algorithms.smoothness import KnowsSmoothness, Root, scaled, times
from mpi_compress.algorithms.vocabulary import (
    ONE_STEP_SIZE,
    OPTIMUM,
    ROUNDED_DOWN,
    STRONGLY_CONVEX,
    UNBIASED_UP,
    WHOLE_GRADIENTS,
    WITHIN,
    Algorithm,
    Batch,
    Expression,
    Message,
    Need,
    Pair,
    PairLink,
    Residual,
    Round,
    Rounds,
    Shards,
    Step,
    Theorem,
    Vector,
    algorithms,
    means_of_pairs,
    no_coordinates,
    packed,
    squared_norm,
    starts_at_0,
)


@dataclass
class Node:
    x: Vector  # (d,) θ₁ z + w/2 + (½ − θ₁) y, where gradients are taken
    y: Vector  # (d,) iterate
    z: Vector  # (d,)
    w: Vector  # (d,) the reference point
    h: Vector  # (d,) (1/n) Σ h_i
    is_new: bool = True  # True if w changed in the last round


@dataclass
class Worker:
    h: Vector  # (d,) h_i, which learns ∇f_i(w)
    of_w: Vector  # (d,) ∇f_i(w)


class ADIANATheorem(Theorem):
    convex = True
    needs = (WITHIN, OPTIMUM)

    def rate(self, m, t: Round) -> float:
        """max{1 − γµ, 1 − θ₁/2, 1 − pθ₁/(1 + θ₁), 1 − α/2}, of the terms of V."""
        (_, θ1, _, β, α), p = m.constants, m.p
        return max(β, 1 - θ1 / 2, 1 - p * θ1 / (1 + θ1), 1 - α / 2)

    def terms(self, m, node: Node, worker: Worker, f) -> Sequence[float]:
        value, of_w = f.at(node.w)
        return value, squared_norm(worker.h - of_w)

    def V(self, m, node: Node, workers, master, known) -> float:
        """‖z−x*‖² + a (f(y)−f*) + a (1+θ₁)/(2p) (f(w)−f*) + 4aηω/(αn) mean‖h_i−∇f_i(w)‖², a = 2γβ/θ₁: constants not checked."""
        (w, h), (η, θ1, γ, β, α), n = workers, m.constants, m.setting.n
        a = 2 * γ * β / θ1
        gaps = known.gap + (1 + θ1) / (2 * m.p) * (w - known.f_star)
        return known.distance2(node.z) + a * gaps + 4 * a * η * (1 / α - 1) / (α * n) * h

    def tossed(self, node, ups, gradients):
        return node.is_new, 1


@algorithms.register("adiana")
class ADIANA(Algorithm):
    """ADIANA, accelerated DIANA: Li, Kovalev, Qian, Richtárik (ICML 2020), Algorithm 1. At first y = z = w = x0, and all h are 0.

    every node       x ← θ₁ z + w/2 + (½ − θ₁) y
    worker sends     m_i ← Q(∇f_i(x) − h_i) and c_i ← Q(∇f_i(w) − h_i);  h_i ← h_i + α c_i
    master answers   m ← (1/n) Σ m_i and c ← (1/n) Σ c_i
    everyone         g ← h + m;  h ← h + α c;  y⁺ ← x − ηg;  z ← βz + (1−β)x + (γ/η)(y⁺ − x)
                     w ← y with probability p, by a coin that all toss alike;  y ← y⁺

    Q is unbiased with ω, α = 1/(1+ω). Their theorem for µ-convex f has the defaults η = min{1/(2L_max), n/(64ω(2p(1+ω)+1)²L_max)},
    p = min{1, max{1, √(n/(32ω)) − 1}/(2(1+ω))}, θ₁ = min{¼, √(ηµ/p)}, γ = η/(2(θ₁+ηµ)), β = 1 − γµ. Without compression p = 1.
    These constants were not checked against the paper; its abstract has their order.
    """

    paper = "ADIANA, Algorithm 1"
    theorem = ADIANATheorem()
    compressor = "random-k"
    needs: ClassVar[Sequence[Need]] = (WHOLE_GRADIENTS, ROUNDED_DOWN, UNBIASED_UP, ONE_STEP_SIZE, STRONGLY_CONVEX)
    shares = ("p",)
    theory = "min(1/(2*L_max), n/(64*max(omega, 1e-300)*(2*p*(omega + 1) + 1)**2*L_max))"
    step: Step = "theory"  # η, the step size
    p: Expression = "min(1, max(1, sqrt(n/(32*max(omega, 1e-300))) - 1)/(2*(1 + omega)))"  # p, the probability that w is set to y

    @cached_property
    def constants(self) -> tuple[float, float, float, float, float]:
        """η, θ₁, γ, β and α."""
        η, µ, ω = self.gamma(0), self.setting.numbers["mu"], float(self.up.compressor.omega(self.setting.dim) or 0.0)
        θ1 = min(0.25, math.sqrt(η * µ / self.p))
        γ = η / (2 * (θ1 + η * µ))
        return η, θ1, γ, 1 - γ * µ, 1 / (1 + ω)

    def uplink(self, node: Node, k: int) -> PairLink:
        return PairLink(self.up)

    def downlink(self, node: Node, k: int) -> PairLink:
        return PairLink(self.down)

    def start(self, x0: Vector) -> Node:
        return Node(x0.copy(), x0.copy(), x0.copy(), x0.copy(), np.zeros_like(x0))

    start_workers = starts_at_0(Worker)

    def workers_send(self, node: Node, w: Worker, fs: Shards, t: Rounds) -> Batch:
        link, α = self.uplink(node, t.k), self.constants[-1]
        if node.is_new:
            w.of_w[:] = fs.gradients(node.w)
        sent = link.pack_two(fs.gradients(node.x) - w.h, w.of_w - w.h, t)
        seen: Any = link.unpack(sent)
        seen.second.add_to(w.h, α)
        return sent

    def master_answers(self, node: Node, master: Residual | None, ups: Any, t: Round) -> Message:
        return packed(master, self.downlink(node, t.k), means_of_pairs(self.mean, ups), t)

    def all_hear(self, node: Node, down: Any, t: Round) -> None:
        η, θ1, γ, β, α = self.constants
        g = node.h.copy()
        down.first.add_to(g)
        down.second.add_to(node.h, α)
        x, y = node.x, node.x - η * g
        node.z = β * node.z + (1 - β) * x + (γ / η) * (y - x)
        node.is_new = bool(t.shared.random() < self.p)
        node.w, node.y = (node.y if node.is_new else node.w), y
        node.x = θ1 * node.z + 0.5 * node.w + (0.5 - θ1) * node.y

    def iterate(self, node: Node) -> Vector:
        return node.y


@dataclass
class ADIANAPlusWorker(Worker):
    L: Root  # L_i^{1/2}


@algorithms.register("adiana-plus")
class ADIANAPlus(KnowsSmoothness, ADIANA):
    """ADIANA+: Safaryan, Hanzely, Richtárik (NeurIPS 2021): ADIANA by smoothness matrices L_i. All h start at 0.

    every node       x ← θ₁ z + w/2 + (½ − θ₁) y
    worker sends     Δ_i ← Q(L_i^{−1/2} (∇f_i(x) − h_i)) and δ_i ← Q(L_i^{−1/2} (∇f_i(w) − h_i));  h_i ← h_i + α L_i^{1/2} δ_i
                     in round 0 also L_i^{1/2}
    master answers   m ← (1/n) Σ L_i^{1/2} Δ_i and c ← (1/n) Σ L_i^{1/2} δ_i
    everyone         as in `adiana`

    Q is unbiased with ω. In ADIANA's proof f is L-smooth, and ωL_max bounds the variance that Q adds. Here 𝓛̃ bounds it, in the
    norms of the L_i⁻¹. So η = min{1/(2L), n/(64𝓛̃(2p(1+ω)+1)²)}, and all else is as in `adiana`, whose constants were not checked
    against its paper. The default takes 𝓛̃ = ω L_max, which suits every Q.
    """

    paper = "ADIANA+"
    needs = (*ADIANA.needs, *KnowsSmoothness.needs)
    theory = "min(1/(2*L), n/(64*max(omega, 1e-300)*(2*p*(omega + 1) + 1)**2*L_max))"

    def start_workers(self, node: Node, fs: Shards) -> Any:
        return ADIANAPlusWorker(fs.zeros(), fs.zeros(), self.no_root(len(fs)))

    def start_master(self, node: Node) -> Any:
        return self.no_roots(super().start_master(node))

    def workers_send(self, node: Node, w: Any, fs: Shards, t: Rounds) -> Batch:
        root, L, link = None if t.k else self.learn(w.L, fs, t), w.L, PairLink(self.up)
        if node.is_new:
            w.of_w[:] = fs.gradients(node.w)
        Δ, δ = (times(L.inverse, g - w.h) for g in (fs.gradients(node.x), w.of_w))
        sent = link.pack_two(Δ, δ, t)
        seen: Any = link.unpack(sent)
        scaled(L.S, seen.second).add_to(w.h, self.constants[-1])
        return self.with_root(node, sent, root)

    def master_answers(self, node: Node, master: Any, ups: Any, t: Round) -> Message:
        S, pairs = self.received(master, ups, t)
        nothing = no_coordinates(self.setting.dim)
        ups = replace(ups, content=Pair(scaled(S, pairs.first), scaled(S, pairs.second)), silence=Pair(nothing, nothing))
        return super().master_answers(node, master.own, ups, t)
