from dataclasses import dataclass
from typing import Any

from mpi_compress.algorithms.contract import algorithms
from mpi_compress.algorithms.estimators.dasha import DASHA, Worker
from mpi_compress.algorithms.sampling import Sampling
from mpi_compress.core.expressions import Expression
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.objective import Objective


@algorithms.register("dasha-mvr")
@dataclass(frozen=True)
class DASHAMVR(DASHA):
    """DASHA with momentum variance reduction, for stochastic gradients: Tyurin, Richtárik (ICLR 2023). Messages are DASHA's.

    worker           h_i⁺ ← ∇f_i(x; ξ) + (1 − b) (h_i − ∇f_i(x⁻; ξ)),   the same minibatch ξ at both points

    Round 0 takes full gradients, where the authors take a large minibatch. Theorem: with a = 1/(2ω + 1), ξ of B rows and ℓ the
    smoothness of one sample, 1/γ ≥ L + √((96ω(2ω + 1)/n) ((1−b)²ℓ²/B + L̃²) + 4(1−b)²ℓ²/(nbB)): the default. The floor of ‖∇f‖
    falls with b. The authors take b = min{1/M, 1/(ω√M)} for a free M; the default has M = 16. The constants of γ were not checked
    against the paper.
    """

    paper = "DASHA-MVR"
    shares = ("a", "b")
    looks_back = True
    theory = "1/(L + sqrt(96*omega*(2*omega + 1)/n*((1 - b)**2*L_row**2/batch + L_rms**2) + 4*(1 - b)**2*L_row**2/(n*b*batch)))"
    batch: int = 1  # B, rows of each worker's minibatch
    sampling: Sampling = "with-replacement"  # rows drawn uniformly over the shard, or from a new permutation in each epoch
    b: Expression = "1/max(16, 4*omega)"  # b, the weight of a new gradient

    def tracked(self, node: Any, worker: Worker, f: Objective, t: Round) -> Vector:
        if t.k == 0:
            return f.gradient(node.x).copy()
        rows = self.rows(f, t)
        h = worker.h - f.gradient(node.known.before, rows)
        h *= 1 - float(self.b)
        h += f.gradient(node.x, rows)
        return h
