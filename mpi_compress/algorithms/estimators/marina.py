from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mpi_compress.algorithms.vocabulary import (
    ADDS_UP,
    F_STAR,
    PLAIN,
    UNBIASED_UP,
    WITHIN,
    Batch,
    Compressed,
    Direction,
    Estimator,
    Expression,
    Link,
    Message,
    Residual,
    Round,
    Rounds,
    Sampling,
    Shards,
    Step,
    Sum,
    Theorem,
    Vector,
    algorithms,
    constants,
    evaluate,
    quantities,
    squared_norm,
)


@dataclass
class Worker:
    before: Vector  # (d,) ∇f_i at the iterate before


class MARINATheorem(Theorem):
    needs = (*PLAIN, F_STAR, WITHIN)
    formulas = ("omega*L_rms**2/n",)  # K of E‖g⁺−∇f(x)‖² ≤ (1−p)(‖g−∇f(x⁻)‖² + K‖x−x⁻‖²)

    def rate(self, m, t: Round) -> float:
        """max{1 − γµ, 1 − p + γ(1−p)K/(1/γ − L)} where f is µ-PŁ: the proof of the step, with the largest w."""
        (γ, µ, L, p), K = constants(m, "step", "mu", "L", "p"), evaluate(self.formulas[0], quantities(m))
        return max(1 - γ * µ, 1 - p + (γ * (1 - p) * K / (1 / γ - L) if p < 1 else 0.0))

    def terms(self, m, node, worker, f) -> Sequence[Vector]:
        return (f.at(node.known.before)[1] if "before" in m.beside else worker.before,)

    def V(self, m, node, workers, master, known) -> float:
        """f − f* + w (‖g − ∇f(x⁻)‖² + K‖x − x⁻‖²), w = (1/γ − L)/(2K): the step's proof, at the g⁺ of the round to come."""
        (before,), (γ, L), g = workers, constants(m, "step", "L"), node.memory.g
        K = evaluate(self.formulas[0], quantities(m))
        w = (1 / γ - L) / (2 * K) if K else 0.0
        return known.gap + w * (squared_norm(g - before) + K * squared_norm(γ * g))

    def tossed(self, node, ups, gradients):
        return node.known.full, 1


@algorithms.register("marina")
class MARINA(Estimator):
    """MARINA: Gorbunov, Burlachenko, Li, Richtárik (ICML 2021), Algorithm 1. The first round is a full one.

    worker sends     ∇f_i(x) in a full round, else Q(∇f_i(x) − ∇f_i(x⁻)),   x⁻ the iterate before
    master answers   the mean of what was sent
    everyone         g ← that mean in a full round, else g + that mean;  x ← x − γ g;  the next round is full with probability p

    Q is unbiased with ω, and workers draw independently. 1/γ ≥ L + L̃ √((1−p)ω/(pn)), L̃ = √((1/n) Σ L_i²), is the default: the
    analysis of Szlendak, Tyurin, Richtárik (ICLR 2022), which their code uses too. Theorem 2.1 of MARINA's own paper has L̃ ≥ L in
    L's place, a step that is shorter where the f_i differ. p = 1/(1 + ω) is ζ/d for random-k: both kinds of round cost alike.
    """

    paper = "MARINA, Algorithm 1"
    theorem = MARINATheorem()
    compressor = "random-k"
    adds_up = True
    needs = (*ADDS_UP, UNBIASED_UP)
    beside = ["coin"]
    shares = ("p",)
    theory = "1/(L + L_rms*sqrt((1 - p)*omega/(p*n)))"
    step: Step = "theory"  # γ, the step size
    p: Expression = "1/(1 + omega)"  # p, the probability of a full round, whose gradients are not compressed

    def uplink(self, node: Any, k: int) -> Link:
        return self.up.whole if node.known.full else self.up

    def start_workers(self, node: Any, fs: Shards) -> Worker | None:
        return None if "before" in self.beside else Worker(fs.zeros())

    def workers_send(self, node: Any, w: Any, fs: Shards, t: Rounds) -> Batch:
        g = fs.gradients(node.x)
        sent = self.uplink(node, t.k).pack(g if node.known.full else g - w.before, t)
        w.before[:] = g
        return sent

    def weight(self, node: Any) -> float:
        """The factor with which the mean of this round is added to g."""
        return 1.0 if node.known.full else self.setting.n / self.setting.r

    def master_answers(self, node: Any, master: Any, ups: Sequence[Compressed], t: Round) -> Message:
        if not isinstance(master, Residual):
            return super().master_answers(node, master, ups, t)
        if node.known.full:
            master.e[:] = 0.0
        return master.pack(self.downlink(node, t.k), self.answer(ups), t, self.weight(node))

    def estimate(self, node: Any, memory: Sum, mean: Compressed, t: Round) -> Direction | None:
        if node.known.full:
            memory.g[:] = 0.0
        mean.add_to(memory.g, self.weight(node))
        return (memory.g,)


@algorithms.register("marina-pp")
class MARINAPP(MARINA):
    """MARINA with partial participation: Gorbunov, Burlachenko, Li, Richtárik (ICML 2021), PP-MARINA. The first round is full.

    worker sends     ∇f_i(x) in a full round, else Q(∇f_i(x) − ∇f_i(x⁻)) if it is one of the r that take part
    master answers   the mean of what was sent
    everyone         g ← that mean in a full round, else g + that mean;  x ← x − γ g;  the next round is full with probability p

    r is that of [workers] participate, drawn without replacement; full rounds have all workers. Q is unbiased with ω.
    p = r/(n(1 + ω)) and 1/γ ≥ L + L̃ √((1−p)(1 + ω)/(pr)), L̃ = √((1/n) Σ L_i²), are the defaults.
    """

    paper = "PP-MARINA"
    partial_mean = "over all"
    beside = ["before", "coin"]
    theory = "1/(L + L_rms*sqrt((1 - p)*(1 + omega)/(p*r)))"
    p: Expression = "r/(n*(1 + omega))"  # p, the probability of a full round, whose gradients are not compressed

    def workers_send(self, node: Any, w: None, fs: Shards, t: Rounds) -> Batch:
        g, known = fs.gradients(node.x), node.known
        return self.uplink(node, t.k).pack(g if known.full else g.copy() - fs.gradients(known.before), t)


class PAGETheorem(MARINATheorem):
    formulas = ("(omega*L_rms**2 + (1 + omega)*L_row**2/batch)/n",)


@algorithms.register("page")
class PAGE(MARINA):
    """PAGE: Li, Bao, Zhang, Richtárik (ICML 2021), Algorithm 1; with a compressor VR-MARINA (MARINA, Algorithm 2).

    worker sends     ∇f_i(x) in a full round, else Q(∇f_i(x; B) − ∇f_i(x⁻; B)),   x⁻ the iterate before
    master answers   the mean of what was sent
    everyone         g ← that mean in a full round, else g + that mean;  x ← x − γ g;  the next round is full with probability p

    The first round is full, and full rounds are not compressed. Q is unbiased with ω, ℓ is the smoothness of one sample, and a
    worker has m = N/n rows. 1/γ ≥ L + √((1−p)/(pn) (ωL̃² + (1+ω)ℓ²/B)) and p = min{1/(1 + ω), B/(m + B)} are the defaults; with the
    identity they are 1/γ = L + ℓ√((1−p)/(pnB)), p = B/(m + B). With a compressor γ was not checked against MARINA's paper.
    """

    paper = "PAGE, Algorithm 1"
    theorem = PAGETheorem()
    compressor = "identity"
    beside = ["before", "coin"]
    theory = "1/(L + sqrt((1 - p)/(p*n)*(omega*L_rms**2 + (1 + omega)*L_row**2/batch)))"
    p: Expression = "min(1/(1 + omega), batch/(N/n + batch))"  # p, the probability of a round with full gradients
    batch: int = 1  # B, samples of each worker's minibatch
    sampling: Sampling = "with-replacement"  # samples drawn uniformly over the shard, or from a new permutation in each epoch

    def workers_send(self, node: Any, w: None, fs: Shards, t: Rounds) -> Batch:
        link, known = self.uplink(node, t.k), node.known
        if known.full:
            return link.pack(fs.gradients(node.x), t)
        rows = self.rows(fs, t, known.batches)
        Δ = fs.gradients(node.x, rows).copy()
        Δ -= fs.gradients(known.before, rows)
        return link.pack(Δ, t)
