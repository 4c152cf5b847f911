from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mpi_compress.algorithms.contract import algorithms
from mpi_compress.algorithms.estimators.ef21 import Memory
from mpi_compress.algorithms.needs import EXACT_DOWN, WHOLE_GRADIENTS, Need, exact_up
from mpi_compress.algorithms.parts import Direction
from mpi_compress.algorithms.product import Estimator
from mpi_compress.algorithms.steps import Step
from mpi_compress.core.expressions import Expression
from mpi_compress.core.streams import Round
from mpi_compress.kernels.vectors import squared_norm
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import SILENT, Message
from mpi_compress.problem.objective import Objective


@dataclass
class Worker:
    g: Vector  # (d,) g_i: what everyone believes ∇f_i(x) is
    y: Vector  # (d,) ∇f_i at the iterate before


@algorithms.register("3pc")
@dataclass(frozen=True)
class ThreePC(Estimator):
    """Three-point compressors: Richtárik, Sokolov, Gasanov, Fatkhullin, Li, Gorbunov (ICML 2022), Algorithm 1 with CLAG's map.

    worker sends     nothing where ‖∇f_i(x) − g_i‖² ≤ ζ‖∇f_i(x) − y_i‖², else c_i ← C(∇f_i(x) − g_i)
                     g_i ← g_i + c_i;  y_i ← ∇f_i(x)
    master answers   c ← (1/n) Σ c_i
    everyone         g ← g + c;  x ← x − γ g

    Round 0 sends all of ∇f_i(x0). With ζ = 0 this is EF21, and with the identity LAG. C is contractive with δ: with s = √(1−δ),
    A = 1 − s and B = max{s²/(1−s), ζ}, their theorem for smooth f has γ ≤ 1/(L + L̃ √(B/A)), L̃ = √((1/n) Σ L_i²), the default; then
    (1/T) Σ‖∇f(x_k)‖² ≤ 2(f(x0) − f*)/(γT). Up to ζ = s²/(1−s) the trigger costs no step size.
    """

    paper = "3PC, Algorithm 1"
    compressor = "top-k"
    needs: ClassVar[Sequence[Need]] = (WHOLE_GRADIENTS, EXACT_DOWN)
    first = "gradient"
    theory = "1/(L + L_rms*sqrt(max((1 - delta)/(1 - sqrt(1 - delta)), zeta)/(1 - sqrt(1 - delta))))"
    step: Step = theory  # γ, the step size
    zeta: Expression = 0.0  # ζ, the trigger: the larger it is, the more workers are silent; with 0 it is EF21

    def check(self) -> None:
        super().check()
        if float(self.zeta) < 0:
            raise ValueError(f"zeta = {self.zeta} must be 0 or more")

    def start_memory(self, x0: Vector) -> Memory:
        return Memory(np.zeros_like(x0))

    def start_worker(self, node: Any, f: Objective) -> Worker:
        return Worker(np.zeros(f.dim), np.zeros(f.dim))

    def worker_sends(self, node: Any, worker: Worker, f: Objective, t: Round) -> Message:
        g = f.gradient(node.x)
        D, tolerance = g - worker.g, float(self.zeta) * squared_norm(g - worker.y)
        worker.y[:] = g
        if t.k > 0 and squared_norm(D) <= tolerance:
            return SILENT
        c = self.up.whole.pack(D, t) if t.k == 0 else self.pack(D, tolerance, t)
        self.uplink(node, t.k).unpack(c).add_to(worker.g)
        return c

    def pack(self, D: Vector, tolerance: float, t: Round) -> Message:
        """The message of D = ∇f_i(x) − g_i (d,) from a worker that is not silent: ‖D‖² > `tolerance`."""
        return self.up.pack(D, t)

    def estimate(self, node: Any, memory: Memory, mean: Compressed, t: Round) -> Direction:
        mean.add_to(memory.g)
        return (memory.g,)


@algorithms.register("clag")
@dataclass(frozen=True)
class CLAG(ThreePC):
    """CLAG, compressed and lazily aggregated gradients: 3pc with the largest trigger that costs no step size."""

    paper = "3PC, CLAG"
    zeta: Expression = "(1 - delta)/(1 - sqrt(1 - delta))"  # ζ, the trigger: the larger it is, the more workers are silent


@algorithms.register("lag")
@dataclass(frozen=True)
class LAG(ThreePC):
    """LAG, lazily aggregated gradients (Chen, Giannakis, Sun, Yin, NeurIPS 2018), as 3pc has it: with the identity."""

    paper = "3PC, LAG"
    compressor = "identity"
    needs = (*ThreePC.needs, exact_up("lag sends whole gradients: leave up.compressor out, or take clag"))
    zeta: Expression = 1.0  # ζ, the trigger: the larger it is, the more workers are silent; with 0 it is gradient descent
