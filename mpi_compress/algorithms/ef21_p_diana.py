from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpi_compress.algorithms import ef21_p
from mpi_compress.algorithms.base import algorithms, check_share, check_unbiased, whole_gradients
from mpi_compress.core.expressions import Expression
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Message
from mpi_compress.problem.objective import Objective


@dataclass
class Worker:
    h: Vector  # (d,) h_i, which learns ∇f_i(x*)


@dataclass
class Master(ef21_p.Master):
    h: Vector  # (d,) (1/n) Σ h_i


@algorithms.register("ef21-p-diana")
@dataclass(frozen=True)
class EF21PDIANA(ef21_p.EF21P):
    """EF21-P with DIANA, both directions compressed: Gruntkowska, Tyurin, Richtárik (ICML 2023), Algorithm 2. All h start at 0.

    worker sends     m_i ← Q(∇f_i(w) − h_i);  h_i ← h_i + β m_i
    master answers   m ← (1/n) Σ m_i;  x ← x − γ (h + m);  h ← h + β m;  q ← C(x − w)
    everyone         w ← w + q

    Q, the uplink's, is unbiased with ω, and C, the downlink's, contractive with δ. β = 1/(1 + ω) and
    γ = min{n/(160ωL_max), √(nδ/ω)/(20 L_max), δ/(100 L), 1/((1 + ω)µ)} are the defaults. 160, 20 and 100 were not checked against
    the paper; their order is that of 2Direction's abstract. Results are of w, as in `ef21-p`.
    """

    paper = "EF21-P + DIANA, Algorithm 2"
    compressor = "random-k"
    theory = "1/max(160*omega*L_max/n, 20*sqrt(omega/(n*delta_down))*L_max, 100*L/delta_down, (1 + omega)*mu)"
    beta: Expression = "1/(1 + omega)"  # β, the step size of the shifts h_i

    def check(self) -> None:
        whole_gradients(self)
        check_unbiased(self)
        check_share(self, "beta")

    def start_worker(self, node: ef21_p.Node, f: Objective) -> Worker:
        return Worker(np.zeros(f.dim))

    def start_master(self, node: ef21_p.Node) -> Master:
        return Master(node.w.copy(), np.zeros_like(node.w))

    def worker_sends(self, node: ef21_p.Node, worker: Worker, f: Objective, t: Round) -> Message:
        m = self.up.pack(f.gradient(node.w) - worker.h, t)
        self.up.unpack(m).add_to(worker.h, float(self.beta))
        return m

    def master_answers(self, node: ef21_p.Node, master: Master, ups: Sequence[Compressed], t: Round) -> Message:
        m, γ = self.mean(ups), self.gamma(t.k)
        master.x -= γ * master.h
        m.add_to(master.x, -γ)
        m.add_to(master.h, float(self.beta))
        return self.down.pack(master.x - node.w, t)
