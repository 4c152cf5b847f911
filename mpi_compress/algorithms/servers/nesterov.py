import math
from dataclasses import dataclass

import numpy as np

from mpi_compress.algorithms.parts import Direction, Moved, Point, Server, dense, servers
from mpi_compress.core.expressions import Expression
from mpi_compress.messages.kinds import Vector


@dataclass
class Extrapolated(Moved):
    y: Vector  # (d,) where gradients are taken

    @property
    def point(self) -> Point:
        return self.y


@servers.register("nesterov")
class NesterovStep(Server):
    """Nesterov's accelerated step (Nesterov 2004, scheme 2.2.9; AIADE paper, baseline), with gradients taken at y.

    x⁺ ← y − γ (g + ∇r(y));  y ← x⁺ + τ (x⁺ − x);  x ← x⁺

    τ = (√L − √µ)/(√L + √µ) if not given, and k/(k + 3) where µ = 0.
    """

    paper = "Nesterov 2004, 2.2.9"
    proximal = True
    momentum: Expression | None = None  # τ, the momentum; left out: (√L − √µ)/(√L + √µ), and k/(k + 3) where µ = 0

    def check(self) -> None:
        if self.momentum is not None and not 0 <= float(self.momentum) < 1:
            raise ValueError(f"momentum = {self.momentum} must be from 0 to below 1")
        if self.momentum is None and "L" not in self.method.setting.numbers:
            raise ValueError("momentum = … is needed: the loss is not smooth, so there is no (√L − √µ)/(√L + √µ)")

    def tau(self, k: int) -> float:
        """τ_k."""
        if self.momentum is not None:
            return float(self.momentum)
        L, µ = (math.sqrt(self.method.setting.numbers[name]) for name in ("L", "mu"))
        return (L - µ) / (L + µ) if µ else k / (k + 3)

    def start(self, x: Point) -> Extrapolated:
        return Extrapolated(x, self.begun_mean(x), np.array(dense(x)))

    def move(self, s: Extrapolated, g: Direction, γ: float, k: int) -> None:
        s.x, before = s.y, s.x
        self.along(s.x, g, γ)
        s.y = dense(s.x) + self.tau(k) * (dense(s.x) - dense(before))
