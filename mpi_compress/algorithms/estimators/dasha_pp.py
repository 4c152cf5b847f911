from dataclasses import dataclass
from typing import Any

from mpi_compress.algorithms.contract import algorithms
from mpi_compress.algorithms.estimators.dasha import DASHA, Worker
from mpi_compress.core.expressions import Expression
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.objective import Objective


@algorithms.register("dasha-pp")
@dataclass(frozen=True)
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
    shares = ("a", "b")
    looks_back = True
    theory = "1/(L + L_rms*n/r*sqrt(48*omega*(2*omega + 1)/n + 16*(n - r)/(max(n - 1, 1)*n)))"
    b: Expression = "r/(2*n - r)"  # b, the weight of a new gradient in h_i

    def tracked(self, node: Any, worker: Worker, f: Objective, t: Round) -> Vector:
        g = f.gradient(node.x).copy()
        if self.starts_whole(t.k):
            return g
        b, before = float(self.b), f.gradient(node.known.before)
        k = g - (1 - b) * before - b * worker.h
        return worker.h + (self.setting.n / self.setting.r) * k
