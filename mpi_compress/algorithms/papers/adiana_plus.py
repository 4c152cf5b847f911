from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.algorithms.papers.adiana import ADIANA, Node
from mpi_compress.algorithms.smoothness import KnowsSmoothness, Root, scaled, times
from mpi_compress.algorithms.vocabulary import Compressed, Message, Objective, Round, Step, Vector, algorithms
from mpi_compress.messages.kinds import Pair
from mpi_compress.messages.several import PairLink


@dataclass
class Worker:
    h: Vector  # (d,) h_i, which learns ∇f_i(w)
    of_w: Vector  # (d,) ∇f_i(w)
    L: Root  # L_i^{1/2}


@algorithms.register("adiana-plus")
class ADIANAPlus(KnowsSmoothness, ADIANA):
    """ADIANA+: Safaryan, Hanzely, Richtárik (NeurIPS 2021): ADIANA by smoothness matrices L_i. All h start at 0.

    every node       x ← θ₁ z + w/2 + (½ − θ₁) y
    worker sends     Δ_i ← Q(L_i^{−1/2} (∇f_i(x) − h_i)) and δ_i ← Q(L_i^{−1/2} (∇f_i(w) − h_i));  h_i ← h_i + α L_i^{1/2} δ_i
                     in round 0 also L_i^{1/2}
    master answers   m ← (1/n) Σ L_i^{1/2} Δ_i and c ← (1/n) Σ L_i^{1/2} δ_i
    everyone         as in `adiana`

    Q is unbiased with ω. In ADIANA's proof f is L-smooth, and ωL_max bounds the variance that Q adds. Here 𝓛̃ bounds it, in the
    norms of the L_i⁻¹. So η = min{1/(2L), n/(64𝓛̃(2p(1+ω)+1)²)}, and all else is as in `adiana`, whose constants were not checked
    against its paper. The default takes 𝓛̃ = ω L_max, which suits every Q.
    """

    paper = "ADIANA+"
    needs = (*ADIANA.needs, *KnowsSmoothness.needs)
    theory = "min(1/(2*L), n/(64*max(omega, 1e-300)*(2*p*(omega + 1) + 1)**2*L_max))"
    step: Step = theory  # η, the step size

    def start_worker(self, node: Node, f: Objective) -> Any:
        return Worker(np.zeros(f.dim), np.zeros(f.dim), self.no_root())

    def start_master(self, node: Node) -> Any:
        return self.no_roots(super().start_master(node))

    def worker_sends(self, node: Node, worker: Any, f: Objective, t: Round) -> Message:
        root, L, link = None if t.k else self.learn(worker.L, f, t), worker.L, PairLink(self.up)
        if node.is_new:
            worker.of_w[:] = f.gradient(node.w)
        Δ, δ = (times(L.inverse, g - worker.h) for g in (f.gradient(node.x), worker.of_w))
        message = link.pack_two(Δ, δ, t)
        seen = link.unpack(message)
        assert isinstance(seen, Pair)
        scaled(L.S, seen.second).add_to(worker.h, self.constants[-1])
        return self.with_root(node, message, root)

    def master_answers(self, node: Node, master: Any, ups: Sequence[Compressed], t: Round) -> Message:
        pairs = [Pair(scaled(S, up.first), scaled(S, up.second)) for S, up in self.received(master, ups, t) if isinstance(up, Pair)]
        return super().master_answers(node, master.own, pairs, t)
