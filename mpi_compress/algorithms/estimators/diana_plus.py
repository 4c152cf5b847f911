from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.algorithms.estimators.diana import DIANA
from mpi_compress.algorithms.needs import STRONGLY_CONVEX
from mpi_compress.algorithms.smoothness import KnowsSmoothness, Root, Roots, scaled, times
from mpi_compress.algorithms.vocabulary import Compressed, Message, Objective, Round, Step, Vector, algorithms


@dataclass
class Worker:
    h: Vector  # (d,) h_i, which learns ∇f_i(x*)
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
    step: Step = theory  # γ, the step size

    def start_worker(self, node: Any, f: Objective) -> Any:
        return Worker(np.zeros(f.dim), self.no_root())

    def start_master(self, node: Any) -> Roots:
        return self.no_roots(super().start_master(node))

    def worker_sends(self, node: Any, worker: Any, f: Objective, t: Round) -> Message:
        root = None if t.k else self.learn(worker.L, f, t)
        Δ = self.up.pack(times(worker.L.inverse, f.gradient(node.x) - worker.h), t)
        scaled(worker.L.S, self.up.unpack(Δ)).add_to(worker.h, float(self.alpha))
        return self.with_root(node, Δ, root)

    def master_answers(self, node: Any, master: Roots, ups: Sequence[Compressed], t: Round) -> Message:
        return super().master_answers(node, master.own, self.undone(master, ups, t), t)

    def answers(self, node: Any, master: Roots, ups: Sequence[Compressed], t: Round) -> Sequence[Message]:
        return super().answers(node, master.own, self.undone(master, ups, t), t)

    def undone(self, master: Roots, ups: Sequence[Compressed], t: Round) -> list[Compressed]:
        """L_i^{1/2} Δ_i of every worker."""
        return [scaled(S, Δ) for S, Δ in self.received(master, ups, t)]

    def point(self, master: Roots) -> Vector:
        return super().point(master.own)
