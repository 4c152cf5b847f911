import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from mpi_compress.algorithms.smoothness import KnowsSmoothness, Root, Roots, scaled, times
from mpi_compress.algorithms.vocabulary import (
    ADDS_UP,
    EXACT_DOWN,
    OPTIMUM,
    PLAIN,
    STRONGLY_CONVEX,
    UNBIASED_UP,
    WHOLE_GRADIENTS,
    WITHIN,
    Batch,
    Compressed,
    Direction,
    Each,
    Estimator,
    Expression,
    Lemma,
    Link,
    Message,
    Need,
    Pair,
    PairLink,
    PartialMean,
    RefreshLink,
    Round,
    Rounds,
    Setting,
    Shards,
    Step,
    Theorem,
    Vector,
    algorithms,
    constants,
    means_of_pairs,
    no_coordinates,
    sampled_omega,
    squared_norm,
    stacked,
    starts_at_0,
)


@dataclass
class Memory:
    h: Vector  # (d,) (1/n) Σ h_i


@dataclass
class Worker:
    h: Vector  # (d,) h_i, which learns ∇f_i(x*)


LEARNS_SLOWLY = Need(lambda m: m.alpha * (1 + constants(m, "omega")[0]) <= 1 + 1e-9, "the theorem of {name} has α ≤ 1/(1 + ω)")


class DIANATheorem(Theorem):
    convex = True
    needs: Sequence[Need] = (*PLAIN, OPTIMUM, WITHIN, LEARNS_SLOWLY)
    rate = "max(1 - step*mu, 1 - alpha/2)"
    share = "alpha"

    def terms(self, m, node, worker: Worker, f) -> Sequence[float]:
        return (squared_norm(worker.h - f.at_optimum),)

    def V(self, m, node, workers, master, known) -> float:
        """‖x − x*‖² + Mγ² (1/n) Σ‖h_i − ∇f_i(x*)‖², M = 4ω/(nα): Gorbunov, Hanzely, Richtárik (AISTATS 2020), Theorem 4.1."""
        γ, ω, n, α = constants(m, "step", "omega", "n", self.share)
        return known.distance2() + 4 * ω / (n * α) * γ**2 * workers[0]


@algorithms.register("diana")
class DIANA(Estimator):
    """DIANA: Mishchenko, Gorbunov, Takáč, Richtárik (2019), Algorithm 1; any unbiased Q as Horváth et al. (2019). All h start at 0.

    worker sends     m_i ← Q(∇f_i(x) − h_i);  h_i ← h_i + α m_i
    master answers   m ← (1/n) Σ m_i
    everyone         x ← x − γ (h + m);  h ← h + α m

    Q is unbiased with ω. Gorbunov, Hanzely, Richtárik (AISTATS 2020), Theorem 4.1 with M = 4ω/(nα): α ≤ 1/(1 + ω) and
    γ ≤ 1/(L_max (1 + 6ω/n)), the defaults; then E‖x_k − x*‖² falls by max(1 − γµ, 1 − α/2) a round.

    If r of n workers take part, h_i ← h_i + α (n/r) m_i, the others keep their h_i; m ← (1/r) Σ m_i (Artemis, PP2:
    Philippenko and Dieuleveut 2020). That is DIANA with the unbiased "(n/r) Q, or 0", whose ω is that of the formulas.
    """

    paper = "DIANA, Algorithm 1"
    theorem = DIANATheorem()
    compressor = "random-k"
    partial_mean: ClassVar[PartialMean] = "over participants"
    needs = (*ADDS_UP, UNBIASED_UP)
    shares = ("alpha",)
    theory = "1/(L_max*(1 + 6*omega/n))"
    step: Step = "theory"  # γ, the step size
    alpha: Expression = "1/(1 + omega)"  # α, the step size of the shifts h_i

    def knows(self) -> Mapping[str, float]:
        known = super().knows()
        sampled = {"omega": sampled_omega(known["omega"], self.setting.n, self.setting.r)} if "omega" in known else {}
        return {**known, **sampled}

    def start_memory(self, x0: Vector) -> Memory:
        return Memory(np.zeros_like(x0))

    start_workers = starts_at_0(Worker)

    def workers_send(self, node: Any, w: Worker, fs: Shards, t: Rounds) -> Batch:
        m = self.up.pack(fs.gradients(node.x) - w.h, t)
        self.up.unpack(m).add_to(w.h, self.alpha * (self.setting.n / self.setting.r))
        return m

    def estimate(self, node: Any, memory: Memory, mean: Compressed, t: Round) -> Direction:
        h = memory.h.copy()
        mean.add_to(memory.h, self.alpha)
        return h, mean


class RandDIANATheorem(DIANATheorem):
    """V is DIANA's, with p for α."""

    needs: Sequence[Need] = (*PLAIN, OPTIMUM, WITHIN)
    rate = "max(1 - step*mu, 1 - p/2)"
    share = "p"

    def tossed(self, node, ups, gradients):
        return sum(up.second.elements > 0 for up in ups), len(ups)


@algorithms.register("rand-diana")
class RandDIANA(Estimator):
    """Rand-DIANA: Shulgin and Richtárik (2021): DIANA whose shifts are gradients of rounds before. All h start at 0.

    worker sends     m_i ← Q(∇f_i(x) − h_i);  with probability p, by a coin of its own, also c_i ← ∇f_i(x) − h_i whole, else c_i = 0
                     h_i ← h_i + c_i, which then is ∇f_i(x)
    master answers   m ← (1/n) Σ m_i and c ← (1/n) Σ c_i
    everyone         x ← x − γ (h + m);  h ← h + c

    Q is unbiased with ω. For σ² = (1/n) Σ‖h_i − ∇f_i(x*)‖² the coins give E σ₊² = (1 − p)σ² + (p/n) Σ‖∇f_i(x) − ∇f_i(x*)‖², and
    Gorbunov, Hanzely, Richtárik (AISTATS 2020), Theorem 4.1 with M = 4ω/(np) says: γ ≤ 1/(L_max (1 + 6ω/n)), then E‖x_k − x*‖²
    falls by max(1 − γµ, 1 − p/2) a round. This γ and p = 1/(1 + ω) are the defaults. They were derived here, and not checked
    against Rand-DIANA's paper.
    """

    paper = "Rand-DIANA"
    theorem = RandDIANATheorem()
    compressor = "random-k"
    needs = (*ADDS_UP, UNBIASED_UP)
    shares = ("p",)
    theory = "1/(L_max*(1 + 6*omega/n))"
    step: Step = "theory"  # γ, the step size
    p: Expression = "1/(1 + omega)"  # p, the probability that a worker sends its difference whole, too, and renews h_i
    lemma = Lemma()

    def uplink(self, node: Any, k: int) -> RefreshLink:
        return RefreshLink(self.up)

    def downlink(self, node: Any, k: int) -> Link:
        link = super().downlink(node, k)
        return PairLink(link) if self.by.everyone_remembers else link

    start_memory, start_workers = DIANA.start_memory, DIANA.start_workers

    def workers_send(self, node: Any, w: Worker, fs: Shards, t: Rounds) -> Batch:
        link, Δ = self.uplink(node, t.k), fs.gradients(node.x) - w.h
        each = [self._two(Δ_i, t_i) for Δ_i, t_i in zip(Δ, t, strict=True)]  # a coin after what C draws
        sent = link.encode(Pair(stacked([m for m, _ in each]), Each([c for _, c in each])))
        seen: Any = link.unpack(sent)
        seen.second.add_to(w.h)
        return sent

    def _two(self, Δ: Vector, t: Round) -> tuple[Compressed, Compressed]:
        m = self.up.compressed(Δ, t)
        return m, self.up.whole.compress(Δ, t) if t.rng.random() < self.p else no_coordinates(Δ.size)

    def answer(self, ups: Any) -> Pair:
        return means_of_pairs(self.mean, ups)

    def estimate(self, node: Any, memory: Memory, mean: Any, t: Round) -> Direction:
        h = memory.h.copy()
        mean.second.add_to(memory.h)
        return h, mean.first


_R = "((1 - lam + lam*bias)**2 + lam**2*spread)"
_R_AV = "((1 - nu + nu*bias)**2 + nu**2*spread_of_mean)"


@algorithms.register("ef-bv")
class EFBV(Estimator):
    """EF-BV: Condat, Yi, Richtárik (NeurIPS 2022), Algorithm 1: EF21 and DIANA, and what lies between. All h start at 0.

    worker sends     m_i ← C(∇f_i(x) − h_i);  h_i ← h_i + λ m_i
    master answers   m ← (1/n) Σ m_i
    everyone         x ← x − γ (h + ν m);  h ← h + λ m

    λ = ν is a sum of differences: with λ = ν = 1 it is EF21. With ν = 1 and λ = 1/(1 + ω) it is DIANA.

    C has ‖E C(v) − v‖ ≤ η‖v‖ and E‖C(v) − E C(v)‖² ≤ ω‖v‖²; formulas name η `bias` and ω `spread`. An unbiased C has η = 0, a
    contraction with δ has η = √(1−δ), ω = 0. The mean of n workers that draw independently has the variance ω/n, `spread_of_mean`.
    λ = min{(1−η)/((1−η)² + ω), 1} and ν likewise with ω/n are the defaults, with r = (1−λ+λη)² + λ²ω, and r_av likewise of ν and
    ω/n. The default step, γ ≤ 1/(L + L̃ √r_av/(1 − √r)), L̃ = √((1/n) Σ L_i²), is for E‖∇f‖² = O(1/T); for λ = ν = 1 it is EF21's.
    Where f is µ-PŁ, γ ≤ 1/(L + L̃ √r_av/(√ρ − √r)) with ρ = (1+r)/2, about half as long, makes f − f* + (γ/2θ) (1/n) Σ ‖∇f_i − h_i‖²
    fall by max{1 − γµ, ρ} a round; in terms of s* = √(ρ/r) − 1 it is 1/(L + L̃ √(r_av/r)/s*), and θ = s*(1+s*) r/r_av. Both steps
    were derived here, and are the longest by their proof; the paper's text was not at hand.
    """

    paper = "EF-BV, Algorithm 1"
    compressor = "top-k"
    needs = (WHOLE_GRADIENTS, EXACT_DOWN)
    shares = ("lam", "nu")
    theory = f"1/(L + L_rms*sqrt({_R_AV})/(1 - sqrt({_R})))"
    step: Step = "theory"  # γ, the step size
    lam: Expression = "min((1 - bias)/((1 - bias)**2 + spread), 1)"  # λ, the share of a message that the shifts h_i take in
    nu: Expression = "min((1 - bias)/((1 - bias)**2 + spread_of_mean), 1)"  # ν, the share that the direction takes in

    def knows(self) -> Mapping[str, float]:
        C, d, n = self.up.compressor, self.setting.dim, self.setting.n
        ω, δ = C.omega(d), C.delta(d)
        if C.unbiased(d) and ω is not None:
            return {**super().knows(), "bias": 0.0, "spread": ω, "spread_of_mean": ω / n}
        named = {"bias": math.sqrt(1 - δ), "spread": 0.0, "spread_of_mean": 0.0} if δ is not None else {}
        return {**super().knows(), **named}

    start_memory, start_workers = DIANA.start_memory, DIANA.start_workers

    def workers_send(self, node: Any, w: Worker, fs: Shards, t: Rounds) -> Batch:
        m = self.up.pack(fs.gradients(node.x) - w.h, t)
        self.up.unpack(m).add_to(w.h, self.lam)
        return m

    def estimate(self, node: Any, memory: Memory, mean: Compressed, t: Round) -> Direction:
        λ, ν, h = self.lam, self.nu, memory.h
        if λ == ν:
            mean.add_to(h, λ)
            return (h,)
        before = h.copy()
        mean.add_to(h, λ)
        return before, mean if ν == 1 else ν * mean.dense()


@dataclass
class DIANAPlusWorker(Worker):
    L: Root  # L_i^{1/2}


@algorithms.register("diana-plus")
class DIANAPlus(KnowsSmoothness, DIANA):
    """DIANA+: Safaryan, Hanzely, Richtárik (NeurIPS 2021): DIANA by smoothness matrices L_i. All h start at 0.

    worker sends     Δ_i ← Q(L_i^{−1/2} (∇f_i(x) − h_i));  h_i ← h_i + α L_i^{1/2} Δ_i;  in round 0 also L_i^{1/2}
    master answers   m ← (1/n) Σ L_i^{1/2} Δ_i
    everyone         x ← x − γ (h + m);  h ← h + α m

    Q is unbiased with ω, and f_i is convex with ∇²f_i ⪯ L_i, so that in the norm of L_i⁻¹ ‖∇f_i(x) − ∇f_i(y)‖² is at most twice
    the Bregman divergence. With σ² = (1/n) Σ‖h_i − ∇f_i(x*)‖² in that norm and M = 4𝓛̃/(nα), Gorbunov, Hanzely, Richtárik (AISTATS
    2020), Theorem 4.1 says: for α ≤ 1/(1 + ω) and γ ≤ 1/(L + 6𝓛̃/n) E‖x_k − x*‖² + Mγ²σ² falls by max(1 − γµ, 1 − α/2) a round.
    This was derived here; a public implementation has the same γ and α. The default takes 𝓛̃ = ω L_max, which suits every Q; for
    coordinates that are drawn independently, ω times the largest entry on the diagonals of the L_i would do.
    """

    paper = "DIANA+"
    needs = (*DIANA.needs, STRONGLY_CONVEX, *KnowsSmoothness.needs)
    partial_mean = ""
    theory = "1/(L + 6*omega*L_max/n)"

    def bind(self, setting: Setting) -> Self:
        bound: Any = super().bind(setting)
        if not hasattr(bound, "answers"):
            return bound
        answers, point = bound.answers, bound.point  # each worker hears a message of its own
        return bound.bound_to(
            answers=lambda node, master, ups, t: answers(node, master.own, bound.undone(master, ups, t), t),
            point=lambda master: point(master.own),
        )

    def start_workers(self, node: Any, fs: Shards) -> Any:
        return DIANAPlusWorker(fs.zeros(), self.no_root(len(fs)))

    def start_master(self, node: Any) -> Roots:
        return self.no_roots(super().start_master(node))

    def workers_send(self, node: Any, w: Any, fs: Shards, t: Rounds) -> Batch:
        root = None if t.k else self.learn(w.L, fs, t)
        Δ = self.up.pack(times(w.L.inverse, fs.gradients(node.x) - w.h), t)
        scaled(w.L.S, self.up.unpack(Δ)).add_to(w.h, self.alpha)
        return self.with_root(node, Δ, root)

    def master_answers(self, node: Any, master: Roots, ups: Sequence[Compressed], t: Round) -> Message:
        undone: Any = self.undone(master, ups, t)
        return super().master_answers(node, master.own, undone, t)

    def undone(self, master: Roots, ups: Any, t: Round) -> Compressed:
        """L_i^{1/2} Δ_i of every worker."""
        return scaled(*self.received(master, ups, t))


@algorithms.register("ef21-p-diana")
class DIANAByEF21P(DIANA):
    """EF21-P with DIANA, both directions compressed: Gruntkowska, Tyurin, Richtárik (ICML 2023), Algorithm 2. All h start at 0.

    worker sends     m_i ← Q(∇f_i(w) − h_i);  h_i ← h_i + β m_i
    master answers   m ← (1/n) Σ m_i;  x ← x − γ (h + m);  h ← h + β m;  q ← C(x − w)
    everyone         w ← w + q

    Q, the uplink's, is unbiased with ω, and C, the downlink's, contractive with δ. β = 1/(1 + ω) and
    γ = min{n/(160ωL_max), √(nδ/ω)/(20 L_max), δ/(100 L), 1/((1 + ω)µ)} are the defaults. 160, 20 and 100 were not checked against
    the paper; their order is that of 2Direction's abstract. Results are of w, as in `ef21-p`.
    """

    parts = "step", "ef21-p"
    paper = "EF21-P + DIANA, Algorithm 2"
    partial_mean = ""
    shares = ("beta",)
    theory = "1/max(160*omega*L_max/n, 20*sqrt(omega/(n*delta_down))*L_max, 100*L/delta_down, (1 + omega)*mu)"
    alpha: Expression = field(default="beta", init=False)  # DIANA's name of it
    beta: Expression = "1/(1 + omega)"  # β, the step size of the shifts h_i
