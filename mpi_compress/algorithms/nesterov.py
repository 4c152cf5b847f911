import math
from dataclasses import dataclass

from mpi_compress.algorithms.averaging import IterateMean
from mpi_compress.algorithms.base import algorithms
from mpi_compress.algorithms.descent import Descent
from mpi_compress.core.expressions import Expression
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Message
from mpi_compress.problem.objective import Objective


@dataclass
class Node:
    x: Vector  # (d,) iterate
    y: Vector  # (d,) where gradients are taken
    mean: IterateMean | None  # of the iterates, where it is wanted


@algorithms.register("nesterov")
@dataclass(frozen=True)
class Nesterov(Descent):
    """Nesterov's accelerated gradient method, with compressed gradients: Nesterov (2004), scheme 2.2.9; AIADE paper, baseline.

    worker sends     Q(∇f_i(y))
    master answers   ĝ = (1/n) Σ Q(∇f_i(y))
    everyone         x⁺ ← y − γ (ĝ + ∇r(y));  y ← x⁺ + τ (x⁺ − x);  x ← x⁺

    τ = (√L − √µ)/(√L + √µ) if not given, and k/(k + 3) where µ = 0. Batches and the place of the regulariser as in gd.
    """

    paper = "Nesterov 2004, 2.2.9"
    theory = "1/L"
    proximal = True
    momentum: Expression | None = None  # τ, the momentum; left out: (√L − √µ)/(√L + √µ), and k/(k + 3) where µ = 0

    def check(self) -> None:
        super().check()
        if self.momentum is not None and not 0 <= float(self.momentum) < 1:
            raise ValueError(f"momentum = {self.momentum} must be from 0 to below 1")
        if self.momentum is None and "L" not in self.setting.numbers:
            raise ValueError("momentum = … is needed: the loss is not smooth, so there is no (√L − √µ)/(√L + √µ)")

    def tau(self, k: int) -> float:
        """τ_k."""
        if self.momentum is not None:
            return float(self.momentum)
        L, µ = (math.sqrt(self.setting.numbers[name]) for name in ("L", "mu"))
        return (L - µ) / (L + µ) if µ else k / (k + 3)

    def start(self, x0: Vector) -> Node:
        return Node(x0.copy(), x0.copy(), IterateMean.begun(self.average, x0))

    def worker_sends(self, node: Node, worker: None, f: Objective, t: Round) -> Message:
        return self.up.pack(f.gradient(node.y, self.rows(f, t)), t)

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        x, node.x = node.x, node.y
        self.step_along(node.x, down, t.k)
        node.y = node.x + self.tau(t.k) * (node.x - x)
        self.take_in(node, t.k + 1)
