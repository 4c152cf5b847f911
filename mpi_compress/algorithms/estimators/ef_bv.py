import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mpi_compress.algorithms.estimators.diana import Memory, Worker
from mpi_compress.algorithms.needs import EXACT_DOWN, WHOLE_GRADIENTS
from mpi_compress.algorithms.vocabulary import Direction, Estimator, Expression, Message, Objective, Round, Step, algorithms
from mpi_compress.messages.kinds import Compressed, Vector

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
    step: Step = theory  # γ, the step size
    lam: Expression = "min((1 - bias)/((1 - bias)**2 + spread), 1)"  # λ, the share of a message that the shifts h_i take in
    nu: Expression = "min((1 - bias)/((1 - bias)**2 + spread_of_mean), 1)"  # ν, the share that the direction takes in

    def knows(self) -> Mapping[str, float]:
        C, d, n = self.up.compressor, self.setting.dim, self.setting.n
        ω, δ = C.omega(d), C.delta(d)
        if C.unbiased(d) and ω is not None:
            return {**super().knows(), "bias": 0.0, "spread": ω, "spread_of_mean": ω / n}
        named = {"bias": math.sqrt(1 - δ), "spread": 0.0, "spread_of_mean": 0.0} if δ is not None else {}
        return {**super().knows(), **named}

    def start_memory(self, x0: Vector) -> Memory:
        return Memory(np.zeros_like(x0))

    def start_worker(self, node: Any, f: Objective) -> Worker:
        return Worker(np.zeros(f.dim))

    def worker_sends(self, node: Any, worker: Worker, f: Objective, t: Round) -> Message:
        m = self.up.pack(f.gradient(node.x) - worker.h, t)
        self.up.unpack(m).add_to(worker.h, float(self.lam))
        return m

    def estimate(self, node: Any, memory: Memory, mean: Compressed, t: Round) -> Direction:
        λ, ν, h = float(self.lam), float(self.nu), memory.h
        if λ == ν:
            mean.add_to(h, λ)
            return (h,)
        before = h.copy()
        mean.add_to(h, λ)
        return before, mean if ν == 1 else ν * mean.dense()
