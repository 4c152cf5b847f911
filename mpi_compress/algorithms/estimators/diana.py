from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mpi_compress.algorithms.hooks import PartialMean
from mpi_compress.algorithms.needs import EXACT_DOWN, OPTIMUM, UNBIASED_UP, WHOLE_GRADIENTS, Need
from mpi_compress.algorithms.sampling import sampled_omega
from mpi_compress.algorithms.theorem import PLAIN, WITHIN, constants
from mpi_compress.algorithms.vocabulary import Direction, Estimator, Expression, Message, Objective, Round, Step, algorithms
from mpi_compress.kernels.vectors import squared_norm
from mpi_compress.messages.kinds import Compressed, Vector


@dataclass
class Memory:
    h: Vector  # (d,) (1/n) Σ h_i


@dataclass
class Worker:
    h: Vector  # (d,) h_i, which learns ∇f_i(x*)


LEARNS_SLOWLY = Need(lambda m: m.alpha * (1 + constants(m, "omega")[0]) <= 1 + 1e-9, "the theorem of {name} has α ≤ 1/(1 + ω)")


@algorithms.register("diana")
class DIANA(Estimator):
    """DIANA: Mishchenko, Gorbunov, Takáč, Richtárik (2019), Algorithm 1; any unbiased Q as Horváth et al. (2019). All h start at 0.

    worker sends     m_i ← Q(∇f_i(x) − h_i);  h_i ← h_i + α m_i
    master answers   m ← (1/n) Σ m_i
    everyone         x ← x − γ (h + m);  h ← h + α m

    Q is unbiased with ω. Gorbunov, Hanzely, Richtárik (AISTATS 2020), Theorem 4.1 with M = 4ω/(nα): α ≤ 1/(1 + ω) and
    γ ≤ 1/(L_max (1 + 6ω/n)), the defaults; then E‖x_k − x*‖² falls by max(1 − γµ, 1 − α/2) a round.

    If r of n workers take part, h_i ← h_i + α (n/r) m_i, the others keep their h_i; m ← (1/r) Σ m_i (Artemis, PP2:
    Philippenko and Dieuleveut 2020). That is DIANA with the unbiased "(n/r) Q, or 0", whose ω is that of the formulas.
    """

    paper = "DIANA, Algorithm 1"
    compressor = "random-k"
    partial_mean: ClassVar[PartialMean] = "over participants"
    needs: ClassVar[Sequence[Need]] = (WHOLE_GRADIENTS, EXACT_DOWN, UNBIASED_UP)
    shares = ("alpha",)
    theory = "1/(L_max*(1 + 6*omega/n))"
    theory_is_convex = True
    step: Step = theory  # γ, the step size
    alpha: Expression = "1/(1 + omega)"  # α, the step size of the shifts h_i

    theorem_needs: ClassVar[Sequence[Need]] = (*PLAIN, OPTIMUM, WITHIN, LEARNS_SLOWLY)
    rate = "max(1 - step*mu, 1 - alpha/2)"

    def lyapunov_terms(self, node: Any, worker: Worker, f: Any) -> Sequence[float]:
        return (squared_norm(worker.h - f.at_optimum),)

    def lyapunov(self, node: Any, workers: Any, master: Any, known: Any) -> float:
        """‖x − x*‖² + Mγ² (1/n) Σ‖h_i − ∇f_i(x*)‖², M = 4ω/(nα): Gorbunov, Hanzely, Richtárik (AISTATS 2020), Theorem 4.1."""
        γ, ω, n, α = constants(self, "step", "omega", "n", "alpha")
        return float(known.distance2() + 4 * ω / (n * α) * γ**2 * workers[0])

    def knows(self) -> Mapping[str, float]:
        known = super().knows()
        sampled = {"omega": sampled_omega(known["omega"], self.setting.n, self.setting.r)} if "omega" in known else {}
        return {**known, **sampled}

    def start_memory(self, x0: Vector) -> Memory:
        return Memory(np.zeros_like(x0))

    def start_worker(self, node: Any, f: Objective) -> Worker:
        return Worker(np.zeros(f.dim))

    def worker_sends(self, node: Any, worker: Worker, f: Objective, t: Round) -> Message:
        m = self.up.pack(f.gradient(node.x) - worker.h, t)
        self.up.unpack(m).add_to(worker.h, float(self.alpha) * (self.setting.n / self.setting.r))
        return m

    def estimate(self, node: Any, memory: Memory, mean: Compressed, t: Round) -> Direction:
        h = memory.h.copy()
        mean.add_to(memory.h, float(self.alpha))
        return h, mean
