from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from mpi_compress.algorithms.second_order import SendsHessians, hessian, lifted, solved, value
from mpi_compress.algorithms.vocabulary import (
    OPTIMUM,
    Batch,
    Compressed,
    Link,
    Message,
    Need,
    Positive,
    Round,
    Rounds,
    SeveralLink,
    Shards,
    Theorem,
    Vector,
    algorithms,
    norm,
    square,
    squared_norm,
)
from mpi_compress.problem.second_order import hessian_lipschitz


@dataclass
class Node:
    x: Vector  # (d,) iterate
    Δ: Vector  # (d,) the direction, while its length is searched
    s: int = -1  # lengths tried so far; −1: none is searched

    @property
    def searches(self) -> bool:
        """True while the length of Δ is searched."""
        return self.s >= 0


@dataclass
class Worker:
    H: Vector  # (d(d+1)/2,) H_i, which learns ∇²f_i
    h: Vector  # (d,) what the master knows of ∇f_i, or of g_i
    l: Vector  # l_i


@dataclass
class Master:
    H: Vector  # (d(d+1)/2,) (1/n) Σ H_i
    h: Vector  # (d,) (1/n) Σ h_i
    l: float = 0.0  # (1/n) Σ l_i
    f: float = np.inf  # f(x), where lengths are searched
    slope: float = 0.0  # ⟨∇f(x), Δ⟩


@dataclass(frozen=True)
class LearnsHessians(SendsHessians):
    """What FedNL's algorithms share."""

    start_at: Literal["hessian", "zero"] = "hessian"  # H_i before round 0: ∇²f_i(x0), which round 0 sends whole; or 0
    alpha: Positive | None = None  # α, the share of S_i that H_i takes in; left out: 1/(1 + ω) of an unbiased C, 1 of a contraction

    @cached_property
    def α(self) -> float:
        C, D = self.hessians.compressor, self.hessians.dim
        ω = C.omega(D)
        if self.alpha is None and ω is None and C.delta(D) is None:
            raise ValueError(f"alpha is needed: '{C.name}' is neither unbiased nor a contraction")
        return self.alpha or (1.0 if ω is None else 1.0 / (1.0 + ω))

    def check(self) -> None:
        super().check()
        _ = self.α

    def start(self, x0: Vector) -> Node:
        return Node(x0.copy(), np.zeros_like(x0))

    def start_workers(self, node: Node, fs: Shards) -> Worker:
        return Worker(np.zeros((len(fs), self.hessians.dim)), fs.zeros(), np.zeros(len(fs)))

    def start_master(self, node: Node) -> Master:
        return Master(np.zeros(self.hessians.dim), np.zeros(self.setting.dim))

    def sends_whole(self, k: int) -> bool:
        """True in the round that sends ∇²f_i(x0)."""
        return k == 0 and self.start_at == "hessian"

    def hessians_at(self, k: int) -> tuple[Link, float]:
        """The link of Hessians in round k, and the share that H_i takes in."""
        return (self.hessians.whole, 1.0) if self.sends_whole(k) else (self.hessians, self.α)

    def together(self, k: int) -> SeveralLink:
        """The link of a gradient, a number and a Hessian."""
        return SeveralLink(self.up, self.number, self.hessians_at(k)[0])

    def uplink(self, node: Node, k: int) -> Link:
        return self.together(k)


LOCAL = Need(
    lambda m: not m.search and not m.learns_gradients and m.alpha is None and m.hessians.compressor.omega(m.hessians.dim) is None,
    "V of {name} is that of exact gradients, α = 1, no search, and Hessians by a contraction that is not unbiased, such as top-k",
)


class FedNLTheorem(Theorem):
    needs = (OPTIMUM, LOCAL)
    also = MappingProxyType({"start_at": "zero"})

    def rate(self, m, t: Round) -> float:
        """1 − min{A, 1/3}, A = δ/4."""
        return 1 - m.δ / 4

    def terms(self, m, node: Node, worker: Worker, f) -> Sequence[Any]:
        H, of_x_star = worker.H if begun(m, worker) else hessian(f.f, f.x), hessian(f.f, f.x_star)
        return H - of_x_star, squared_norm(H - of_x_star), of_x_star, hessian_lipschitz(f.f) ** 2

    def V(self, m, node: Node, workers, master, known) -> float:
        """V = Y + 6BL²‖x − x*‖², Y = (1/n) Σ‖H_i − ∇²f_i(x*)‖²_F with the master's H as their mean, B = 6/δ − 7/2, L of Hessians;
        NaN but where the theorem, which is local, covers it: V ≤ µ²/(4C) and ‖x − x*‖² ≤ µ²/(2DL²), C and D 2 and 1 (lifted), 8
        and 9. If L = 0, V = Y everywhere, or Y (1 + f − f*) where M ⪰ ∇²f (shifted), by which f never rises. Derived here."""
        (error, Y, of_x_star, L2), r2, µ = workers, known.distance2(), m.setting.numbers["mu"]
        if begun(m, master):
            Y += squared_norm(master.H - of_x_star) - squared_norm(error)
        if not L2:
            return Y if m.lifts else Y * (1 + known.gap)
        V, (C, D) = Y + 6 * (6 / m.δ - 3.5) * L2 * r2, (2, 1) if m.lifts else (8, 9)
        return V if max(4 * C * V, 2 * D * L2 * r2) <= µ**2 else np.nan


def begun(m: Any, memory: Worker | Master) -> bool:
    """True once a worker or the master has its H, which round 0 may send whole."""
    return bool(memory.H.any()) or m.start_at == "zero"


@algorithms.register("fednl")
class FedNL(LearnsHessians):
    """FedNL: Safaryan, Islamov, Qian, Richtárik (ICML 2022), Algorithm 1, and by `search` FedNL-LS, its Algorithm 3.

    worker sends     ∇f_i(x), S_i ← C(∇²f_i(x) − H_i), l_i ← ‖∇²f_i(x) − H_i‖_F;  H_i ← H_i + α S_i
    master answers   Δ ← −M⁻¹ (1/n) Σ ∇f_i(x);  H ← H + α (1/n) Σ S_i
    everyone         x ← x + Δ

    M is "shifted", H + l̄ I, the paper's option 2, or "lifted", [H]_µ, its option 1: eigenvalues of H below µ become µ. C is any
    compressor: with the identity M has the Hessians of the round before. The paper's local rates do not depend on the condition
    number.

    `search`: in rounds that follow workers send f_i(x + β^s Δ) alone, s = 0, 1, …, until f ≤ f(x) + c β^s ⟨∇f(x), Δ⟩ (M is lifted).

    Ours: gradients may be compressed, too; h_i and their mean then stand for ∇f_i and ∇f. The order, the step by the H of the round
    before, is that of the authors' code; the paper itself was not at hand. A loop in NumPy follows it to 10⁻¹⁰ from "zero",
    except where that loop parts as far from itself, started 10⁻¹⁵ away: by nearly equal eigenvalues (`low-rank`), most of all by
    "lifted", whose first step is −∇f/µ there.
    """

    paper = "FedNL, Algorithm 1"
    theorem = FedNLTheorem()
    matrix: Literal["shifted", "lifted"] = "shifted"  # M: H + l̄ I, or H with its eigenvalues below µ lifted to µ
    search: bool = False  # true: the length of a step is searched (FedNL-LS), and M is lifted
    c: Positive = 0.5  # c of the search
    beta: Positive = 0.5  # β of the search, between one length and the next

    @property
    def δ(self) -> float:
        return float(self.hessians.compressor.delta(self.hessians.dim) or np.nan)

    def check(self) -> None:
        super().check()
        if self.lifts and not self.setting.numbers["mu"] > 0:
            raise ValueError('eigenvalues are lifted to mu, so mu > 0 is needed; matrix = "shifted" without search needs none')

    @property
    def lifts(self) -> bool:
        return self.search or self.matrix == "lifted"

    def uplink(self, node: Node, k: int) -> Link:
        return self.number if node.searches else super().uplink(node, k)

    def downlink(self, node: Node, k: int) -> Link:
        return self.number if node.searches else self.down

    def workers_send(self, node: Node, w: Worker, fs: Shards, t: Rounds) -> Batch:
        if node.searches:
            return self.number.pack(np.array([[value(f, node.x + self.beta**node.s * node.Δ)] for f in fs]), t)
        g = self.gradient(node.x, w, fs, t)
        link, α = self.hessians_at(t.k)
        D = np.array([hessian(f, node.x) for f in fs]) - w.H
        norms = [0.0 if self.sends_whole(t.k) else norm(D_i) for D_i in D]
        numbers = [value(f, node.x) for f in fs] if self.search else norms
        S = link.pack(D, t)
        link.unpack(S).add_to(w.H, α)
        return self.together(t.k).join(g, self.number.pack(np.array(numbers)[:, None], t), S)

    def master_answers(self, node: Node, master: Master, ups: Any, t: Round) -> Message:
        if node.searches:
            f = self.mean(ups).dense()[0]
            falls = f <= master.f + self.c * self.beta**node.s * master.slope
            return self.number.pack(np.array([float(falls)]), t)
        g = master.h + self.mean_of(ups, 0)
        number = float(self.mean_of(ups, 1)[0])
        H, master.H = master.H, master.H + self.hessians_at(t.k)[1] * self.mean_of(ups, 2)
        answer = self.down.pack(-solved(self.M(master.H if self.sends_whole(t.k) else H, number), g), t)
        if self.learns_gradients:
            master.h = g
        if self.search:
            master.f, master.slope = number, float(g @ self.down.unpack(answer).dense())
        return answer

    def M(self, H: Vector, l: float) -> Vector:
        """The matrix (d, d) of the step."""
        return lifted(square(H), self.setting.numbers["mu"]) if self.lifts else square(H) + l * np.eye(self.setting.dim)

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        if not self.search:
            super().all_hear(node, down, t)
        elif not node.searches:
            node.Δ, node.s = down.dense(), 0
        elif down.dense()[0]:
            node.x, node.s = node.x + self.beta**node.s * node.Δ, -1
        else:
            node.s += 1


@algorithms.register("fednl-pp")
class FedNLPP(LearnsHessians):
    """FedNL with partial participation: Safaryan, Islamov, Qian, Richtárik (ICML 2022), Algorithm 2. All workers send in round 0.

    worker sends     S_i ← C(∇²f_i(x) − H_i);  H_i ← H_i + α S_i;  l_i ← ‖∇²f_i(x) − H_i‖_F;  g_i ← (H_i + l_i I) x − ∇f_i(x)
    master answers   H, l, g ← (1/n) Σ H_i, l_i, g_i, those that workers sent last;  x⁺ ← (H + l I)⁻¹ g
    everyone         x ← x⁺

    Messages hold what l_i and g_i changed by, and x⁺ − x. With a compressed [up] the master knows h_i in place of g_i (ours). The
    paper was not at hand.
    """

    paper = "FedNL, Algorithm 2"
    first = "gradient"
    partial_mean = "over all"

    def workers_send(self, node: Node, w: Worker, fs: Shards, t: Rounds) -> Batch:
        (link, α), A, before = self.hessians_at(t.k), np.array([hessian(f, node.x) for f in fs]), w.l.copy()
        S = link.pack(A - w.H, t)
        link.unpack(S).add_to(w.H, α)
        w.l[:] = [norm(D) for D in A - w.H]
        Hx = np.array([square(H) @ node.x for H in w.H])
        g = self.up.pack(Hx + w.l[:, None] * node.x - fs.gradients(node.x) - w.h, t)
        self.up.unpack(g).add_to(w.h)
        return self.together(t.k).join(g, self.number.pack((w.l - before)[:, None], t), S)

    def master_answers(self, node: Node, master: Master, ups: Any, t: Round) -> Message:
        master.h = master.h + self.mean_of(ups, 0)
        master.l += float(self.mean_of(ups, 1)[0])
        master.H = master.H + self.hessians_at(t.k)[1] * self.mean_of(ups, 2)
        M = square(master.H) + master.l * np.eye(self.setting.dim)
        return self.down.pack(solved(M, master.h) - node.x, t)
