"""Methods that are products of parts with files of their own: each states its parts, its theoretical step size, and its paper."""

import math
from dataclasses import field
from typing import Any, Literal

from mpi_compress.algorithms.contract import algorithms
from mpi_compress.algorithms.error_memory import ERRORS
from mpi_compress.algorithms.estimators.diana import DIANA
from mpi_compress.algorithms.estimators.ef import ErrorFeedback
from mpi_compress.algorithms.estimators.ef21 import EF21
from mpi_compress.algorithms.estimators.gd import GD
from mpi_compress.algorithms.needs import EXACT_DOWN, HOMOGENEOUS_UP, ONE_STEP_SIZE, OPTIMUM, WHOLE_GRADIENTS, exact_up
from mpi_compress.algorithms.parts import dense
from mpi_compress.algorithms.steps import Step
from mpi_compress.algorithms.theorem import OWN_MOMENTUM, OWN_PARTS, WITHIN, constants
from mpi_compress.core.expressions import Expression
from mpi_compress.core.fields import AtLeastOne, Decay, Positive
from mpi_compress.core.streams import Round
from mpi_compress.kernels.vectors import squared_norm
from mpi_compress.problem.objective import Objective


@algorithms.register("nesterov")
class Nesterov(GD):
    """Nesterov's accelerated gradient method, with compressed gradients: Nesterov (2004), scheme 2.2.9; AIADE paper, baseline.

    worker sends     Q(∇f_i(y))
    master answers   ĝ = (1/n) Σ Q(∇f_i(y))
    everyone         x⁺ ← y − γ (ĝ + ∇r(y));  y ← x⁺ + τ (x⁺ − x);  x ← x⁺

    τ = (√L − √µ)/(√L + √µ) if not given, and k/(k + 3) where µ = 0. Batches and the place of the regulariser as in gd.
    """

    parts = "nesterov", "mean"
    paper = "Nesterov 2004, 2.2.9"
    partial_mean = ""
    momentum: Expression | None = None  # τ, the momentum; left out: (√L − √µ)/(√L + √µ), and k/(k + 3) where µ = 0
    theorem_needs = (*GD.theorem_needs, OWN_MOMENTUM, WITHIN)
    rate = "1 - sqrt(mu/L)"

    def lyapunov(self, node: Any, workers: Any, master: Any, known: Any) -> float:
        """f(x) − f* + (µ/2)‖z − x*‖², z = x + (1 + √(L/µ))(y − x): Nesterov (2004), Theorem 2.2.3, by its estimate sequence."""
        L, µ = constants(self, "L", "mu")
        z = known.x + (1 + math.sqrt(L / µ)) * (node.moved.y - known.x)
        return float(known.gap + µ / 2 * known.distance2(z))


@algorithms.register("adam")
class Adam(ErrorFeedback):
    """Adam (Kingma and Ba 2015) on the mean of compressed gradients: GSpar §4.1 without errors, HT's NCF with error feedback.

    worker sends     Δ_i ← g_i + e_i;  C(Δ_i);  e_i ← Δ_i − C(Δ_i)
    everyone         ĝ ← (1/n) Σ C(Δ_i);  x moves by the server `adam`

    `feedback` = false drops e_i after every round, which an unbiased C wants.
    """

    parts = "adam", "mean"
    paper = "GSpar §4.1; HT table 5"
    log = ERRORS
    theory = ""
    step: Step = 1e-3  # γ, the step size
    feedback: bool = True  # false: the error e is dropped after every round
    reset: AtLeastOne | None = None  # rounds after which the error e is dropped, again and again; left out: it is kept
    beta1: Decay = 0.9  # β1, the share that m keeps
    beta2: Decay = 0.999  # β2, the share that v keeps
    epsilon: Positive = 1e-8  # ε, added to √v


@algorithms.register("double-squeeze")
class DoublySqueezed(ErrorFeedback):
    """DoubleSqueeze: Tang, Lian, Yu, Zhang, Liu (ICML 2019), Algorithm 1: error memory in both directions. All start at 0.

    worker sends     u_i ← ∇f_i(x; ξ) + e_i;  c_i ← C(u_i);  e_i ← u_i − c_i
    master answers   V ← (1/n) Σ c_i + E;  q ← C(V);  E ← V − q
    everyone         x ← x − γ q

    So x − γ (E + (1/n) Σ e_i) is always x_0 − γ Σ (1/n) Σ ∇f_i(x; ξ). With a constant γ a floor of O(γ²) remains. γ = 1/(4L) is the
    default, the paper's step without its terms for the noise and the number of rounds; the 4 was not checked against it.
    """

    parts = "step", "double-squeeze"
    paper = "DoubleSqueeze, Algorithm 1"
    theory = "1/(4*L)"
    step: Step = "theory"  # γ, the step size

    def grow(self, worker: Any, x: Any, f: Objective, t: Round) -> None:
        worker.e += f.gradient(x, self.rows(f, t))


@algorithms.register("ef21-p")
class GDByEF21P(GD):
    """EF21-P: Gruntkowska, Tyurin, Richtárik (ICML 2023), Algorithm 1: the downlink alone is compressed. w starts at x_0.

    worker sends     ∇f_i(w)
    master answers   x ← x − γ (1/n) Σ ∇f_i(w);  q ← C(x − w)
    everyone         w ← w + q

    C, the downlink's, is contractive with δ. The step is γ = δ/(16 L), the default; then x and w converge like (1 − γµ/2)^k. The
    16 was not checked against the paper. x is the master's own: results are of w, which all nodes know. `ef21-p-diana` compresses
    the uplink as well.
    """

    parts = "step", "ef21-p"
    paper = "EF21-P, Algorithm 1"
    proximal = False
    partial_mean = ""
    needs = (WHOLE_GRADIENTS, exact_up("ef21-p sends whole gradients up: leave [up] out, or use ef21-p-diana"))
    theory = "delta_down/(16*L)"
    step: Step = "theory"  # γ, the step size
    theorem_needs = (ONE_STEP_SIZE, OWN_PARTS, OPTIMUM, WITHIN)
    rate = "max(1 - step*mu/2, 1 - delta_down/3)"

    def lyapunov(self, node: Any, workers: Any, master: Any, known: Any) -> float:
        """‖x − x*‖² + ‖w − x‖² for convex f and γ ≤ δ/(16L): derived here; 1 − γµ/2 is the paper's."""
        x = dense(master.moved.x)
        return float(known.distance2(x) + squared_norm(known.x - x))


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
    step: Step = "theory"  # γ, the step size
    alpha: Expression = field(default="beta", init=False)  # DIANA's name of it
    beta: Expression = "1/(1 + omega)"  # β, the step size of the shifts h_i


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
    step: Step = theory  # γ, the step size


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
    theory = tight = ""
    step: Step = "1/sqrt(rounds + 1)"  # γ, the length of a step
    beta: Decay = field(default=0.0, init=False)  # of lmo: no momentum
    norm: Literal["euclidean"] = field(default="euclidean", init=False)


@algorithms.register("marina-p")
class GDByMARINAP(GD):
    """MARINA-P: Gruntkowska, Tyurin, Richtárik (2024). Each worker gets a message of its own down; the uplink is whole. w_i = x0.

    worker sends     ∇f_i(w_i)
    master answers   x⁺ ← x − γ (1/n) Σ ∇f_i(w_i);  to worker i x⁺ in a full round, else Q_i(x⁺ − x);  x ← x⁺
    worker hears     w_i ← x⁺ in a full round, else w_i + what came
    everyone         the next round is full with probability p

    Q_i is unbiased with ω, and perm-k by default: its messages of a round do not overlap, and the mean of the w_i moves as x does.
    p = 1/(1 + ω), which is 1/n for perm-k, and 1/γ ≥ L + L_max √(ω(1−p)/p) are the defaults: the theorem with L_A = L_max and
    L_B = 0, which hold for every f (derived here, not quoted). Then (1/T) Σ E‖∇f(x_k)‖² ≤ 2(f(x0) − f*)/(γT).
    """

    parts = "step", "marina-p"
    paper = "MARINA-P"
    proximal = False
    partial_mean = ""
    links = {"down": {"compressor": "perm-k"}}  # noqa: RUF012
    needs = (WHOLE_GRADIENTS, exact_up("marina-p sends whole gradients up: leave up.compressor out"))
    theory = "1/(L + L_max*sqrt(omega_down*(1 - p)/p))"
    step: Step = "theory"  # γ, the step size
    p: Expression = "1/(1 + omega_down)"  # p, the probability of a full round, whose messages down are whole
