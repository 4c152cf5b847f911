from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from mpi_compress.algorithms.tuning.sizes import tuned
from mpi_compress.algorithms.vocabulary import (
    ADDS_UP,
    EXACT_DOWN,
    F_STAR,
    HOMOGENEOUS_UP,
    PLAIN,
    TIGHT,
    WHOLE,
    WHOLE_GRADIENTS,
    WITHIN,
    Batch,
    Decay,
    Estimator,
    Expression,
    First,
    MinibatchParameters,
    Need,
    Round,
    Rounds,
    Setting,
    Shards,
    Step,
    Theorem,
    Vector,
    algorithms,
    constants,
    fact,
    is_tight,
    sampled_delta,
    squared_norm,
    starts_at_0,
    starts_whole,
    tight_factor,
)


@dataclass
class Worker:
    g: Vector  # (d,) g_i: what everyone believes ∇f_i(x) is


class EF21Theorem(Theorem):
    tight = TIGHT
    needs = (*PLAIN, WHOLE, F_STAR, replace(WITHIN, is_met=lambda m: is_tight(m) or WITHIN.is_met(m)))

    def rate(self, m, t: Round) -> float:
        """max{1 − γµ, √(1−δ) + γ(1−δ)L̃²/(θ(1/γ − L))} where f is µ-PŁ, by the proof of Theorem 2; ρ* with the tight step."""
        γ, µ, L, L̃, δ = constants(m, "step", "mu", "L", "L_rms", "delta")
        s = np.sqrt(1 - δ)
        return tight_factor(L, µ, 1 - δ) if is_tight(m) else max(1 - γ * µ, s and s + γ * s**2 * L̃**2 / ((1 - s) * (1 / γ - L)))

    def terms(self, m, node, worker: Worker, f) -> Sequence[Any]:
        before = f.at(f.x + m.gamma(0) * worker.g)[1] if is_tight(m) else 0.0
        return squared_norm(worker.g - f.gradient), before

    def V(self, m, node, workers, master, known) -> float:
        """f − f* + θ(1/γ − L)/(2L̃²) · (1/n) Σ‖g_i − ∇f_i(x)‖²; with the tight step ‖g − ∇f(x⁻)‖² + √ε‖∇f(x⁻)‖², ε = 1 − δ."""
        (errors, before), (γ, L, L̃, δ) = workers, constants(m, "step", "L", "L_rms", "delta")
        if is_tight(m):
            return squared_norm(node.memory.g - before) + float(np.sqrt(1 - δ)) * squared_norm(before)
        return known.gap + (1 - np.sqrt(1 - δ)) * (1 / γ - L) / (2 * L̃**2) * errors


@algorithms.register("ef21")
class EF21(MinibatchParameters, Estimator):
    """EF21: Richtárik, Sokolov, Fatkhullin (NeurIPS 2021), Algorithm 2. All g start at 0.

    worker sends     c_i ← C(∇f_i(x) − g_i);  g_i ← g_i + c_i
    master answers   c ← (1/n) Σ c_i
    everyone         g ← g + c;  x ← x − γ g

    So at first g_i = C(∇f_i(x)); with first = "gradient" g_i = ∇f_i(x), as the authors' experiments start. With `batch` later
    gradients are means over minibatches. With a penalty r that is not smooth everyone takes the step x ← prox_{γr}(x − γ g)
    (Fatkhullin et al. 2021).

    C is contractive with δ. Theorem 1: γ ≤ 1/(L + L̃ √(β/θ)) with θ = 1 − √(1−δ), β = (1−δ)/θ, L̃ = √((1/n) Σ L_i²): the default.
    For µ > 0 `tight` is the step of the least worst case (`ef`).
    The proximal form takes 2L̃ in place of L̃, which convex r allow; `prox` is this factor, derived here and not checked against the
    paper.

    `budget` = "cat", here or in [up], tunes C to each ∇f_i(x) − g_i as CAT tunes it to a gradient: T = argmax α(T)/C(T). Its δ is
    the least of any budget, 1/d for top-k, and the theoretical step size is short accordingly.

    If r of n workers take part, the others keep their g_i, and c is the sum over n still (EF21-PP: Fatkhullin et al. 2021). To
    update g_i by C with probability r/n is to update it by a contraction with δr/n, which is the δ of the formulas.
    """

    paper = "EF21, Algorithm 2"
    theorem: ClassVar[Theorem] = EF21Theorem()
    compressor = "top-k"
    adds_up = True
    needs = ADDS_UP
    partial_mean = "over all"
    proximal = True
    theory = "1/(L + prox*L_rms*sqrt(1 - delta)/(1 - sqrt(1 - delta)))"
    step: Step = "theory"  # γ, the step size
    first: First = "compressed"  # what round 0 sends: whole gradients, or compressed ones
    budget: Literal["cat"] | None = None  # "cat": T of top-k, or a contraction's size, is tuned for each message; left out: fixed

    @fact
    def sets_compressor(self) -> bool:
        return self.budget is not None

    def bind(self, setting: Setting) -> Self:
        return super().bind(replace(setting, up=tuned(setting.up, setting.cost)) if self.budget else setting)

    def knows(self) -> Mapping[str, float]:
        known = super().knows()
        sampled = {"delta": sampled_delta(known["delta"], self.setting.n, self.setting.r)} if "delta" in known else {}
        return {**known, **sampled, "prox": 1.0 if self.setting.penalty_apart is None else 2.0}

    start_workers = starts_at_0(Worker)

    def workers_send(self, node: Any, w: Worker, fs: Shards, t: Rounds) -> Batch:
        link = self.uplink(node, t.k)
        c = link.pack(fs.gradients(node.x, None if starts_whole(self, t.k) else self.rows(fs, t)) - w.g, t)
        link.unpack(c).add_to(w.g)
        return c


@dataclass
class MomentumWorker:
    v: Vector  # (d,) v_i, the momentum: a mean of gradients of which the last ones weigh most
    g: Vector  # (d,) g_i: what everyone believes v_i is


class EF21SGDMTheorem(Theorem):
    needs = (*PLAIN, WHOLE, F_STAR, WITHIN)
    rate = "max(1 - step*mu, 1 - delta/4, 1 - eta/2)"

    def terms(self, m, node, worker: MomentumWorker, f) -> Sequence[Any]:
        error = worker.v - f.gradient
        return squared_norm(worker.g - worker.v), squared_norm(error), error

    def V(self, m, node, workers, master, known) -> float:
        """f − f* + (4γ/δ) mean‖g_i − v_i‖² + (20γη/δ²) mean‖v_i − ∇f_i(x)‖² + (2γ/η)‖v − ∇f(x)‖²: derived here, no noise."""
        (A, B, error), (γ, δ, η) = workers, constants(m, "step", "delta", "eta")
        return known.gap + 4 * γ / δ * A + 20 * γ * η / δ**2 * B + 2 * γ / η * squared_norm(error)


@algorithms.register("ef21-sgdm")
class EF21SGDM(MinibatchParameters, Estimator):
    """EF21 with momentum: Fatkhullin, Tyurin, Richtárik (NeurIPS 2023), Algorithm 1. v_i and g_i start at the first gradient.

    worker sends     v_i ← (1 − η) v_i + η ∇f_i(x; ξ);  c_i ← C(v_i − g_i);  g_i ← g_i + c_i
    master answers   c ← (1/n) Σ c_i
    everyone         g ← g + c;  x ← x − γ g

    C is contractive with δ. The step is γ ≤ min{δ/(20 L̃), η/(7 L)}, L̃ = √((1/n) Σ L_i²): the default; then E‖∇f‖² stays below
    O(Δ/(γT) + (η³/δ² + η²/δ + η/n) σ²). These constants
    were not checked against the paper. η = 1 is EF21.
    """

    paper = "EF21-SGDM, Algorithm 1"
    theorem = EF21SGDMTheorem()
    compressor = "top-k"
    adds_up = True
    needs = ADDS_UP
    shares = ("eta",)
    theory = "min(delta/(20*L_rms), eta/(7*L))"
    step: Step = "theory"  # γ, the step size
    eta: Expression = 0.1  # η, the weight of a new gradient
    first: First = "gradient"  # what round 0 sends: whole gradients, or compressed ones

    start_workers = starts_at_0(MomentumWorker)

    def workers_send(self, node: Any, w: MomentumWorker, fs: Shards, t: Rounds) -> Batch:
        link, η = self.uplink(node, t.k), self.eta if t.k else 1.0
        w.v *= 1 - η
        w.v += η * fs.gradients(node.x, self.rows(fs, t))
        c = link.pack(w.v - w.g, t)
        link.unpack(c).add_to(w.g)
        return c


@dataclass
class ControlWorker:
    h: Vector  # (d,) h_i: what everyone believes ∇f_i(x) is
    e: Vector  # (d,) e_i, the error: the sum of what was not sent


def is_covered(m: Any) -> bool:
    """True if the theorem of a bound EControl covers γ and η."""
    γ, L, L̃, δ = constants(m, "step", "L", "L_rms", "delta")
    η, s = m.eta, np.sqrt(1 - δ)
    return bool(η > 0 and 3 * η * s <= (1 - s) * (1 + 1e-9) and 8 * (γ * L̃ / η) ** 2 + γ * L <= 1)


class EControlTheorem(Theorem):
    needs = (*PLAIN, WHOLE, F_STAR, Need(is_covered, "V of {name} covers γ and η up to their defaults, η > 0"))
    formulas = ("L_rms",)

    def rate(self, m, t: Round) -> float:
        """max{1 − γµ, 1 − η/6, 1 − ηs/4}, s = √(1−δ)."""
        γ, µ, δ = constants(m, "step", "mu", "delta")
        η = m.eta
        return max(1 - γ * µ, 1 - η / 6, 1 - η * np.sqrt(1 - δ) / 4)

    def terms(self, m, node, worker: ControlWorker, f) -> Sequence[Any]:
        return squared_norm(worker.e), squared_norm(m.eta * worker.e + f.gradient - worker.h)

    def V(self, m, node, workers, master, known) -> float:
        """f − f* + 6γη mean‖e_i‖² + (4γs/η) mean‖ηe_i + ∇f_i(x) − h_i‖², s = √(1−δ): derived here for full gradients."""
        (e, v), (γ, δ), η = workers, constants(m, "step", "delta"), m.eta
        return known.gap + 6 * γ * η * e + 4 * γ * np.sqrt(1 - δ) / η * v


@algorithms.register("econtrol")
class EControl(MinibatchParameters, Estimator):
    """EControl: Gao, Islamov, Stich (ICLR 2024), Algorithm 1. e_i starts at 0, h_i at the first gradient.

    worker sends     g_i ← ∇f_i(x; ξ);  c_i ← C(η e_i + g_i − h_i);  e_i ← e_i + g_i − h_i − c_i;  h_i ← h_i + c_i
    master answers   c ← (1/n) Σ c_i
    everyone         h ← h + c;  x ← x − γ h

    So x − γ (1/n) Σ e_i is always x_0 − γ Σ (1/n) Σ g_i. C is contractive with δ. η = δ/(3s(1 + s)) with s = √(1−δ), at most 1, and
    γ = δ/(8√6 L_max) are the defaults; their constants were not checked against the paper. η = 0 is EF21.
    """

    paper = "EControl, Algorithm 1"
    theorem = EControlTheorem()
    compressor = "top-k"
    adds_up = True
    needs = ADDS_UP
    theory = "delta/(8*sqrt(6)*L_max)"
    step: Step = "theory"  # γ, the step size
    eta: Expression = "delta/max(delta, 3*sqrt(1 - delta)*(1 + sqrt(1 - delta)))"  # η, the share of the error in a message
    first: First = "gradient"  # what round 0 sends: whole gradients, or compressed ones

    def check(self) -> None:
        if not 0 <= self.eta <= 1:
            raise ValueError(f"eta = {self.eta} must be from 0 to 1")

    start_workers = starts_at_0(ControlWorker)

    def workers_send(self, node: Any, w: ControlWorker, fs: Shards, t: Rounds) -> Batch:
        link, e, h = self.uplink(node, t.k), w.e, w.h
        Δ = fs.gradients(node.x, self.rows(fs, t)) - h
        sent = link.pack(self.eta * e + Δ, t)
        c = link.unpack(sent)
        e += Δ
        c.add_to(e, -1.0)
        c.add_to(h)
        return sent


@algorithms.register("ef21-w")
class WeightedEF21(EF21):
    """EF21-W: Richtárik, Gasanov, Burlachenko (ICLR 2024): EF21 with the arithmetic mean of the L_i in its step.

    worker sends     c_i ← C(∇f_i(x) − g_i);  g_i ← g_i + c_i
    everyone         g ← g + (1/n) Σ c_i;  x ← x − γ g

    The paper weighs f_i by w_i = L_i/Σ L_j and compresses ∇f_i/(n w_i). Where C(tv) = t C(v), as of top-k, this is EF21 itself, and
    the theorem says more of it: γ ≤ 1/(L + L̄ √(1−δ)/(1 − √(1−δ))) with L̄ = (1/n) Σ L_i, which is at most √((1/n) Σ L_i²). Other
    compressors are refused.
    """

    paper = "EF21-W"
    needs = (WHOLE_GRADIENTS, EXACT_DOWN, HOMOGENEOUS_UP)
    theory = "1/(L + L_mean*sqrt(1 - delta)/(1 - sqrt(1 - delta)))"


@algorithms.register("ef21-norm")
class NormalisedEF21(EF21):
    """‖EF21‖: Khirirat, Sadiev, Riabinin, Gorbunov, Richtárik (2024): EF21 with steps of a length that is known beforehand.

    worker sends     c_i ← C(∇f_i(x) − g_i);  g_i ← g_i + c_i
    everyone         g ← g + (1/n) Σ c_i;  x ← x − γ g/‖g‖

    γ = γ₀/√(K + 1), K the number of rounds, for any γ₀ > 0: no L is needed, nor that there is one. The default is γ₀ = 1. It is
    `ef21` with the server `lmo`; the paper's text was not at hand.
    """

    parts = "lmo", "mean"
    paper = "‖EF21‖"
    proximal = False
    theory = ""
    theorem = Theorem()
    step: Step = "1/sqrt(rounds + 1)"  # γ, the length of a step
    beta: Decay = field(default=0.0, init=False)  # of lmo: no momentum
    norm: Literal["euclidean"] = field(default="euclidean", init=False)
