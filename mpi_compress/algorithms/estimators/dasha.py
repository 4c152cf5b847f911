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
    Estimator,
    Expression,
    First,
    Need,
    Rounds,
    Sampling,
    Shards,
    Step,
    Theorem,
    Vector,
    algorithms,
    constants,
    squared_norm,
    starts_at_0,
    starts_whole,
)


@dataclass
class Worker:
    h: Vector  # (d,) h_i, the worker's estimate of ∇f_i(x)
    g: Vector  # (d,) g_i: what everyone believes h_i is


DEFAULTS = Need(
    lambda m: m.first == "gradient" and abs(m.a * (2 * constants(m, "omega")[0] + 1) - 1) < 1e-9,
    'V of {name} is that of first = "gradient" and a = 1/(2ω + 1)',
)


class DASHATheorem(Theorem):
    needs = (*PLAIN, F_STAR, WITHIN, DEFAULTS)
    formulas = ("L_rms",)
    rate = "max(1 - step*mu, 1 - a/2)"

    def terms(self, m, node, worker: Worker, f) -> Sequence[Any]:
        return worker.g - worker.h, squared_norm(worker.g - worker.h)

    def V(self, m, node, workers, master, known) -> float:
        """f − f* + c (X + 4aωY/n) at the messages to come: X, Y bound E‖g⁺ − h⁺‖² and mean E‖g_i⁺ − h_i⁺‖². Derived here.

        X = (1−a)²‖g − h‖² + (2ω/n)(a² mean‖g_i − h_i‖² + L̃²‖x − x⁻‖²), Y likewise without n, and c = γ/(a(3 − 2a)).
        """
        (e, squares), (γ, a, ω, n, L̃) = workers, constants(m, "step", "a", "omega", "n", "L_rms")
        new = 2 * ω * (a**2 * squares + L̃**2 * squared_norm(γ * node.memory.g))
        X, Y = (1 - a) ** 2 * squared_norm(e) + new / n, (1 - a) ** 2 * squares + new
        return known.gap + γ / (a * (3 - 2 * a)) * (X + 4 * a * ω / n * Y)


@algorithms.register("dasha")
class DASHA(Estimator):
    """DASHA: Tyurin, Richtárik (ICLR 2023), Algorithm 1. All messages but the first are compressed; no round is synchronised.

    worker sends     h_i⁺ ← ∇f_i(x);  m_i ← Q(h_i⁺ − h_i − a (g_i − h_i));  g_i ← g_i + m_i;  h_i ← h_i⁺
    master answers   m ← (1/n) Σ m_i
    everyone         g ← g + m;  x ← x − γ g

    Round 0 makes g_i = h_i = ∇f_i(x0), or Q(∇f_i(x0)) with first = "compressed". Q is unbiased with ω, drawn independently by each
    worker. Theorem: with a = 1/(2ω + 1) and γ ≤ 1/(L + L̃ √(16ω(2ω + 1)/n)), L̃ = √((1/n) Σ L_i²), the defaults,
    (1/T) Σ E‖∇f(x_k)‖² ≤ 2 (f(x_0) − f*)/(γT). The 16 was not checked against the paper; the authors' code has
    ω(4ω + 1)/n under the root, a longer step.
    """

    paper = "DASHA, Algorithm 1"
    theorem = DASHATheorem()
    compressor = "random-k"
    adds_up = True
    needs = (*ADDS_UP, UNBIASED_UP)
    shares = ["a"]
    theory = "1/(L + L_rms*sqrt(16*omega*(2*omega + 1)/n))"
    step: Step = "theory"  # γ, the step size
    a: Expression = "1/(2*omega + 1)"  # a, the share of g_i − h_i that a message corrects
    first: First = "gradient"  # what round 0 sends: whole gradients, or compressed ones

    start_workers = starts_at_0(Worker)

    def tracked(self, node: Any, w: Worker, fs: Shards, t: Rounds) -> Vector:
        """h_i⁺ (m, d), a new array."""
        return fs.gradients(node.x).copy()

    def workers_send(self, node: Any, w: Worker, fs: Shards, t: Rounds) -> Batch:
        link, h = self.uplink(node, t.k), self.tracked(node, w, fs, t)
        m = link.pack(h - w.h - self.a * (w.g - w.h), t)
        link.unpack(m).add_to(w.g)
        w.h[:] = h
        return m


@algorithms.register("dasha-mvr")
class DASHAMVR(DASHA):
    """DASHA with momentum variance reduction, for stochastic gradients: Tyurin, Richtárik (ICLR 2023). Messages are DASHA's.

    worker           h_i⁺ ← ∇f_i(x; ξ) + (1 − b) (h_i − ∇f_i(x⁻; ξ)),   the same minibatch ξ at both points

    Round 0 takes full gradients, where the authors take a large minibatch. Theorem: with a = 1/(2ω + 1), ξ of B rows and ℓ the
    smoothness of one sample, 1/γ ≥ L + √((96ω(2ω + 1)/n) ((1−b)²ℓ²/B + L̃²) + 4(1−b)²ℓ²/(nbB)): the default. The floor of ‖∇f‖
    falls with b. The authors take b = min{1/M, 1/(ω√M)} for a free M; the default has M = 16. The constants of γ were not checked
    against the paper.
    """

    paper = "DASHA-MVR"
    shares = ["a", "b"]
    beside = ["before"]
    theory = "1/(L + sqrt(96*omega*(2*omega + 1)/n*((1 - b)**2*L_row**2/batch + L_rms**2) + 4*(1 - b)**2*L_row**2/(n*b*batch)))"
    batch: int = 1  # B, samples of each worker's minibatch
    sampling: Sampling = "with-replacement"  # samples drawn uniformly over the shard, or from a new permutation in each epoch
    b: Expression = "1/max(16, 4*omega)"  # b, the weight of a new gradient

    def tracked(self, node: Any, w: Worker, fs: Shards, t: Rounds) -> Vector:
        if t.k == 0:
            return fs.gradients(node.x).copy()
        rows = self.rows(fs, t)
        h = w.h - fs.gradients(node.known.before, rows)
        h *= 1 - self.b
        h += fs.gradients(node.x, rows)
        return h


@algorithms.register("dasha-page")
class DASHAPAGE(DASHA):
    """DASHA with PAGE's estimates, for finite sums: Tyurin, Richtárik (ICLR 2023). Round 0 is full; messages are DASHA's.

    worker           h_i⁺ ← ∇f_i(x) in a full round, else h_i + ∇f_i(x; B) − ∇f_i(x⁻; B)
    everyone         the next round is full with probability p

    Theorem: with a = 1/(2ω + 1), p = B/(m + B), B rows of the m = N/n that a worker has, and ℓ the smoothness of one sample,
    1/γ ≥ L + √((48ω(2ω + 1)/n) ((1−p)ℓ²/B + L̃²) + 2(1−p)ℓ²/(pnB)): the defaults. a and p are those of
    the authors' code; the constants of γ were not checked against the paper.
    """

    paper = "DASHA-PAGE"
    shares = ["a", "p"]
    beside = ["before", "coin"]
    theory = "1/(L + sqrt(48*omega*(2*omega + 1)/n*((1 - p)*L_row**2/batch + L_rms**2) + 2*(1 - p)*L_row**2/(p*n*batch)))"
    batch: int = 1  # B, samples of each worker's minibatch
    sampling: Sampling = "with-replacement"  # samples drawn uniformly over the shard, or from a new permutation in each epoch
    p: Expression = "batch/(N/n + batch)"  # p, the probability of a round with full gradients

    def tracked(self, node: Any, w: Worker, fs: Shards, t: Rounds) -> Vector:
        if node.known.full:
            return fs.gradients(node.x).copy()
        rows = self.rows(fs, t, node.known.batches)
        h = w.h + fs.gradients(node.x, rows)
        h -= fs.gradients(node.known.before, rows)
        return h


@algorithms.register("dasha-pp")
class DASHAPP(DASHA):
    """DASHA with partial participation: Tyurin, Richtárik (2022), with full gradients. All workers take part in round 0.

    worker sends     k_i ← ∇f_i(x) − ∇f_i(x⁻) − b (h_i − ∇f_i(x⁻));  m_i ← Q(k_i/q − a (g_i − h_i))
                     h_i ← h_i + k_i/q;  g_i ← g_i + m_i,   if it is one of the r that take part; the others keep h_i and g_i
    master answers   m ← (1/n) Σ m_i
    everyone         g ← g + m;  x ← x − γ g

    q = r/n, r that of [workers] participate, drawn without replacement. Q is unbiased with ω. a = 1/(2ω + 1), the paper's a/q,
    b = q/(2 − q) and 1/γ ≥ L + L̃ √(48ω(2ω + 1)/(nq²) + 16(n − r)/((n − 1)nq²)) are the defaults. a, b and the draw are those of the
    authors' code; the constants of γ were not checked against the paper. With r = n it is DASHA.
    """

    paper = "DASHA-PP"
    partial_mean = "over all"
    shares = ["a", "b"]
    beside = ["before"]
    theory = "1/(L + L_rms*n/r*sqrt(48*omega*(2*omega + 1)/n + 16*(n - r)/(max(n - 1, 1)*n)))"
    b: Expression = "r/(2*n - r)"  # b, the weight of a new gradient in h_i

    def tracked(self, node: Any, w: Worker, fs: Shards, t: Rounds) -> Vector:
        g = fs.gradients(node.x).copy()
        if starts_whole(self, t.k):
            return g
        b, before = self.b, fs.gradients(node.known.before)
        k = g - (1 - b) * before - b * w.h
        return w.h + (self.setting.n / self.setting.r) * k
