from dataclasses import dataclass
from typing import Any

from mpi_compress.algorithms.contract import algorithms
from mpi_compress.algorithms.estimators.marina import MARINA, Memory
from mpi_compress.algorithms.parts import Direction
from mpi_compress.algorithms.steps import Step
from mpi_compress.core.expressions import Expression
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed
from mpi_compress.messages.link import Message
from mpi_compress.problem.objective import Objective


@algorithms.register("marina-pp")
@dataclass(frozen=True)
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
    looks_back = True
    theory = "1/(L + L_rms*sqrt((1 - p)*(1 + omega)/(p*r)))"
    step: Step = "theory"  # γ, the step size
    p: Expression = "r/(n*(1 + omega))"  # p, the probability of a full round, whose gradients are not compressed

    def needs_all(self, node: Any, k: int) -> bool:
        return node.known.full

    def worker_sends(self, node: Any, worker: None, f: Objective, t: Round) -> Message:
        g, known = f.gradient(node.x), node.known
        return self.uplink(node, t.k).pack(g if known.full else g.copy() - f.gradient(known.before), t)

    def estimate(self, node: Any, memory: Memory, mean: Compressed, t: Round) -> Direction:
        if node.known.full:
            memory.g[:] = 0.0
        mean.add_to(memory.g, 1.0 if node.known.full else self.setting.n / self.setting.r)  # the mean of r workers
        return (memory.g,)
