from collections.abc import Sequence
from typing import Any

import numpy as np

from mpi_compress.algorithms.estimators.diana import DIANA, Memory, Worker
from mpi_compress.algorithms.needs import EXACT_DOWN, OPTIMUM, UNBIASED_UP, WHOLE_GRADIENTS
from mpi_compress.algorithms.theorem import PLAIN, WITHIN, constants
from mpi_compress.algorithms.vocabulary import Direction, Estimator, Expression, Link, Message, Objective, Round, Step, algorithms
from mpi_compress.messages.kinds import Compressed, Pair, Vector, no_coordinates
from mpi_compress.messages.several import PairLink, RefreshLink, means_of_pairs


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
    compressor = "random-k"
    needs = (WHOLE_GRADIENTS, EXACT_DOWN, UNBIASED_UP)
    shares = ("p",)
    theory = "1/(L_max*(1 + 6*omega/n))"
    theory_is_convex = True
    step: Step = theory  # γ, the step size
    p: Expression = "1/(1 + omega)"  # p, the probability that a worker sends its difference whole, too, and renews h_i
    theorem_needs = (*PLAIN, OPTIMUM, WITHIN)
    rate = "max(1 - step*mu, 1 - p/2)"
    lyapunov_terms = DIANA.lyapunov_terms
    fixed_budget = None
    needs_each = True  # each has two vectors

    def uplink(self, node: Any, k: int) -> RefreshLink:
        return RefreshLink(self.up)

    def downlink(self, node: Any, k: int) -> Link:
        link = super().downlink(node, k)
        return PairLink(link) if self.by.everyone_remembers else link

    def lyapunov(self, node: Any, workers: Any, master: Any, known: Any) -> float:
        """‖x − x*‖² + Mγ² (1/n) Σ‖h_i − ∇f_i(x*)‖², M = 4ω/(np): as DIANA's."""
        γ, ω, n, p = constants(self, "step", "omega", "n", "p")
        return float(known.distance2() + 4 * ω / (n * p) * γ**2 * workers[0])

    def start_memory(self, x0: Vector) -> Memory:
        return Memory(np.zeros_like(x0))

    def start_worker(self, node: Any, f: Objective) -> Worker:
        return Worker(np.zeros(f.dim))

    def worker_sends(self, node: Any, worker: Worker, f: Objective, t: Round) -> Message:
        link, Δ = self.uplink(node, t.k), f.gradient(node.x) - worker.h
        m = self.up.compressed(Δ, t)
        message = link.encode(Pair(m, self.up.whole.compress(Δ, t) if t.rng.random() < float(self.p) else no_coordinates(Δ.size)))
        seen = link.unpack(message)
        assert isinstance(seen, Pair)
        seen.second.add_to(worker.h)
        return message

    def answer(self, ups: Sequence[Compressed]) -> Pair:
        return means_of_pairs(self.mean, ups)

    def estimate(self, node: Any, memory: Memory, mean: Compressed, t: Round) -> Direction:
        assert isinstance(mean, Pair)
        h = memory.h.copy()
        mean.second.add_to(memory.h)
        return h, mean.first
