"""Steps with momentum: the heavy ball's, and Nesterov's."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mpi_compress.algorithms.vocabulary import (
    Decay,
    Direction,
    Expression,
    Point,
    Server,
    ServerState,
    Vector,
    add,
    dense,
    servers,
)


@dataclass
class MomentumState(ServerState):
    m: Vector  # (d,) momentum


@servers.register("heavy-ball")
class HeavyBall(Server):
    """The heavy ball (Polyak 1964): m ← β m + g;  x ← x − γ m.

    Its other forms move x along u in place of m:

    nesterov     u = g + β m (Sutskever et al. 2013; the usual SGD with Nesterov's momentum)
    printed      u = g + m, as HT Algorithm 2 has it; it takes twice the step of Algorithm 1 when β nears 0

    A regulariser µ that is not in the f_i is applied as x ← (1 − γµ) x, and is no part of m.
    """

    paper = "Polyak 1964"
    scales = True
    beta: Decay = 0.9  # β, the share that m keeps
    form: Literal["heavy-ball", "nesterov", "printed"] = "heavy-ball"  # x moves along m, along g + β m, or along g + m

    def start(self, x: Point) -> MomentumState:
        return MomentumState(x, self.begun_mean(x), np.zeros_like(dense(x)))

    def move(self, s: MomentumState, g: Direction, γ: float, k: int) -> None:
        self.regularise(s.x, γ, at_once=self.method.batch is None)
        if self.form != "heavy-ball":
            for term in g:
                add(s.x, term, -γ)
        s.m *= self.beta
        for term in g:
            add(s.m, term)
        add(s.x, s.m, -γ * self.beta if self.form == "nesterov" else -γ)


@dataclass
class Extrapolated(ServerState):
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
        if self.momentum is not None and not 0 <= self.momentum < 1:
            raise ValueError(f"momentum = {self.momentum} must be from 0 to below 1")
        if self.momentum is None and "L" not in self.method.setting.numbers:
            raise ValueError("momentum = … is needed: the loss is not smooth, so there is no (√L − √µ)/(√L + √µ)")

    def tau(self, k: int) -> float:
        """τ_k."""
        if self.momentum is not None:
            return self.momentum
        L, µ = (math.sqrt(self.method.setting.numbers[name]) for name in ("L", "mu"))
        return (L - µ) / (L + µ) if µ else k / (k + 3)

    def start(self, x: Point) -> Extrapolated:
        return Extrapolated(x, self.begun_mean(x), np.array(dense(x)))

    def move(self, s: Extrapolated, g: Direction, γ: float, k: int) -> None:
        s.x, before = s.y, s.x
        self.along(s.x, g, γ)
        s.y = dense(s.x) + self.tau(k) * (dense(s.x) - dense(before))
