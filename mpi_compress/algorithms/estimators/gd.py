import math
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from mpi_compress.algorithms.tuning.search import Improvement
from mpi_compress.algorithms.vocabulary import (
    ONE_STEP_SIZE,
    OPTIMUM,
    OWN_MOMENTUM,
    OWN_PARTS,
    PLAIN,
    WHOLE,
    WHOLE_GRADIENTS,
    WITHIN,
    Batch,
    Estimator,
    Expression,
    Lemma,
    Rounds,
    Shards,
    Sparse,
    Step,
    Theorem,
    UsualParameters,
    Vector,
    algorithms,
    constants,
    coordinates_sent,
    dense,
    exact_up,
    is_exact,
    squared_norm,
)
from mpi_compress.kernels import select


class GDTheorem(Theorem):
    needs = (*PLAIN, WHOLE, OPTIMUM, exact_up("V of {name} is that of exact gradients"))
    of_first = True
    rate = "max(1 - step*mu, step*L - 1)**2"

    def V(self, m, node, workers, master, known) -> float:
        """‖x − x*‖², for µ-convex f and γ < 2/L: Polyak (1963); no factor is less (Taylor, Hendrickx, Glineur 2018)."""
        return known.distance2()


@algorithms.register("gd")
class GD(UsualParameters, Estimator):
    """Gradient descent with compressed gradients: CAT eq. 1; with the identity, plain gradient descent.

    worker sends     Q(g_i),   g_i = ∇f_i(x), or its estimate by a minibatch
    master answers   ĝ = (1/n) Σ Q(g_i)
    everyone         x ← x − γ (ĝ + ∇r(x)),   r the regulariser where it is not in the f_i

    Where r is a penalty that is not smooth, everyone takes the proximal step x ← prox_{γr}(x − γ ĝ) (Beck and Teboulle 2009).

    If r of n workers take part, ĝ is the mean of theirs (Gower et al., ICML 2019, sampling without replacement). Their Theorem 3.1,
    for uncompressed gradients: γ ≤ 1/(2ℒ) with ℒ = (n(r−1) L + (n−r) L_max)/(r(n−1)); the limit is a ball around x*.
    """

    paper = "CAT eq. 1"
    theorem: ClassVar[Theorem] = GDTheorem()
    theory = "1/L"
    proximal = True
    partial_mean = "over participants"

    def workers_send(self, node: Any, w: Any, fs: Shards, t: Rounds) -> Batch:
        return self.up.pack(fs.gradients(node.x, self.rows(fs, t)), t)

    @property
    def is_plain(self) -> bool:
        """True if everyone moves x by the gradient step along the mean that is heard."""
        return self.server.name == "step" and self.by.name == "mean"

    @property
    def is_lemma_step(self) -> bool:
        """True if CAT's descent lemmas speak of the step: x ← x − (1/L) Q(∇f(x)), all of ∇f compressed."""
        exact = self.is_plain and is_exact(self.down)
        L = self.setting.numbers.get("L", math.nan)
        return exact and isinstance(self.step, float) and abs(self.step * L - 1) < 1e-12 and not self.setting.mu_apart

    @property
    def lemma(self) -> Lemma:
        return replace(super().lemma, curve="alpha" if self.is_plain else "", improvement=self.improvement)

    def improvement(self, g: Vector) -> float:
        compressor, d = self.up.compressor, self.setting.dim
        if not self.is_lemma_step or self.batch is not None or self.setting.r < self.setting.n:
            return np.nan
        if is_exact(self.up):
            return 1.0
        T = coordinates_sent(compressor, d)
        if compressor.name != "top-k" or T is None or self.setting.n > 1:
            return np.nan
        return Improvement.ALPHA.of(g[None], Sparse(d, *select.largest(g[None], T))).item()


class NesterovTheorem(Theorem):
    needs = (*GDTheorem.needs, OWN_MOMENTUM, WITHIN)
    rate = "1 - sqrt(mu/L)"

    def V(self, m, node, workers, master, known) -> float:
        """f(x) − f* + (µ/2)‖z − x*‖², z = x + (1 + √(L/µ))(y − x): Nesterov (2004), Theorem 2.2.3, by its estimate sequence."""
        L, µ = constants(m, "L", "mu")
        z = known.x + (1 + math.sqrt(L / µ)) * (node.state.y - known.x)
        return known.gap + µ / 2 * known.distance2(z)


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
    theorem = NesterovTheorem()
    partial_mean = ""
    momentum: Expression | None = None  # τ, the momentum; left out: (√L − √µ)/(√L + √µ), and k/(k + 3) where µ = 0


class GDByEF21PTheorem(Theorem):
    needs = (ONE_STEP_SIZE, OWN_PARTS, OPTIMUM, WITHIN)
    rate = "max(1 - step*mu/2, 1 - delta_down/3)"

    def V(self, m, node, workers, master, known) -> float:
        """‖x − x*‖² + ‖w − x‖² for convex f and γ ≤ δ/(16L): derived here; 1 − γµ/2 is the paper's."""
        x = dense(master.state.x)
        return known.distance2(x) + squared_norm(known.x - x)


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
    theorem = GDByEF21PTheorem()
    proximal = False
    partial_mean = ""
    needs = (WHOLE_GRADIENTS, exact_up("ef21-p sends whole gradients up: leave [up] out, or use ef21-p-diana"))
    theory = "delta_down/(16*L)"
    step: Step = "theory"  # γ, the step size


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
    links = {"down": {"compressor": "perm-k"}}
    needs = (WHOLE_GRADIENTS, exact_up("marina-p sends whole gradients up: leave up.compressor out"))
    theory = "1/(L + L_max*sqrt(omega_down*(1 - p)/p))"
    step: Step = "theory"  # γ, the step size
    p: Expression = "1/(1 + omega_down)"  # p, the probability of a full round, whose messages down are whole
