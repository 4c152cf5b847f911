"""Steps by means of directions and of their squares."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.algorithms.vocabulary import (
    Decay,
    Direction,
    Point,
    Positive,
    Server,
    ServerState,
    Vector,
    dense,
    servers,
    summed,
)


@dataclass
class MomentsState(ServerState):
    m: Vector  # (d,) mean of directions
    v: Vector  # (d,) mean of their squares


class WithMoments(Server):
    """A server that keeps means of directions and of their squares."""

    def start(self, x: Point) -> MomentsState:
        return MomentsState(x, self.begun_mean(x), np.zeros_like(dense(x)), np.zeros_like(dense(x)))

    def descend(self: Any, s: ServerState, m: Vector, v: Vector, γ: float) -> None:
        """x ← x − γ m/(√v + ε)."""
        self.regularise(s.x, γ, at_once=True)
        x = dense(s.x)
        x -= γ * m / (np.sqrt(v) + self.epsilon)


@servers.register("adam")
class AdamStep(WithMoments):
    """Adam, a step by means of directions and of their squares (Kingma and Ba 2015).

    m ← β1 m + (1 − β1) g;  v ← β2 v + (1 − β2) g²
    x ← x − γ (m / (1 − β1^t)) / (√(v / (1 − β2^t)) + ε),   t = 1, 2, …

    A regulariser at the master is decoupled from m and v: x ← (1 − γµ) x first (Loshchilov and Hutter 2019). It then comes to rest
    elsewhere than at the least f that is logged.
    """

    paper = "Kingma and Ba 2015"
    beta1: Decay = 0.9  # β1, the share that m keeps
    beta2: Decay = 0.999  # β2, the share that v keeps
    epsilon: Positive = 1e-8  # ε, added to √v

    def move(self, s: MomentsState, g: Direction, γ: float, k: int) -> None:
        β1, β2, ĝ = self.beta1, self.beta2, summed(g)
        s.m += (1 - β1) * (ĝ - s.m)
        s.v += (1 - β2) * (ĝ * ĝ - s.v)
        self.descend(s, s.m / (1 - β1 ** (k + 1)), s.v / (1 - β2 ** (k + 1)), γ)


@servers.register("adagrad")
class AdaGradStep(WithMoments):
    """FedAdagrad's step (Reddi, Charles, Zaheer, Garrett, Rush, Konečný, Kumar, McMahan 2021, Algorithm 2); β1 = 0: AdaGrad.

    m ← β1 m + (1 − β1) g;  v ← v + g²
    x ← x − γ m / (√v + ε)

    A regulariser at the master is decoupled from m and v, as in `adam`.
    """

    paper = "Reddi et al. 2021, Algorithm 2"
    beta1: Decay = 0.0  # β1, the share that m keeps
    epsilon: Positive = 1e-3  # ε, added to √v; the paper's τ

    def move(self, s: MomentsState, g: Direction, γ: float, k: int) -> None:
        ĝ = summed(g)
        s.m += (1 - self.beta1) * (ĝ - s.m)
        s.v += ĝ * ĝ
        self.descend(s, s.m, s.v, γ)
