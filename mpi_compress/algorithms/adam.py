from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mpi_compress.algorithms.averaging import IterateMean
from mpi_compress.algorithms.base import algorithms
from mpi_compress.algorithms.descent import shrink
from mpi_compress.algorithms.error_feedback import ErrorFeedback, first_regime
from mpi_compress.algorithms.regimes import Regime
from mpi_compress.algorithms.steps import Step
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed, Vector


@dataclass
class Node:
    x: Vector  # (d,) iterate
    mean: IterateMean | None  # of the iterates, where it is wanted
    regime: Regime | None  # where the compressor follows ACCORDION's
    m: Vector  # (d,) mean of gradients
    v: Vector  # (d,) mean of their squares
    silent: int = 0  # rounds in which no worker sent anything


@algorithms.register("adam")
@dataclass(frozen=True)
class Adam(ErrorFeedback):
    """Adam (Kingma and Ba 2015) on the mean of compressed gradients: GSpar §4.1 without errors, HT's NCF with error feedback.

    worker sends     Δ_i ← g_i + e_i;  C(Δ_i);  e_i ← Δ_i − C(Δ_i)
    everyone         ĝ ← (1/n) Σ C(Δ_i);  m ← β1 m + (1 − β1) ĝ;  v ← β2 v + (1 − β2) ĝ²
                     x ← x − γ (m / (1 − β1^t)) / (√(v / (1 − β2^t)) + ε),   t = 1, 2, …

    `feedback` = false drops e_i after every round, which an unbiased C wants. A regulariser at the master is decoupled from
    m and v: x ← (1 − γµ) x first (Loshchilov and Hutter 2019). It then comes to rest elsewhere than at the least f that is logged.
    """

    paper = "GSpar §4.1; HT table 5"
    theory: ClassVar[str] = ""
    step: Step = 1e-3  # γ, the step size
    beta1: float = 0.9  # β1, the share that m keeps
    beta2: float = 0.999  # β2, the share that v keeps
    epsilon: float = 1e-8  # ε, added to √v

    def check(self) -> None:
        super().check()
        if not (0 <= self.beta1 < 1 and 0 <= self.beta2 < 1):
            raise ValueError(f"beta1 = {self.beta1} and beta2 = {self.beta2} must be from 0 to below 1")
        if not self.epsilon > 0:
            raise ValueError(f"epsilon = {self.epsilon} must be more than 0")

    def start(self, x0: Vector) -> Node:
        mean, regime = IterateMean.begun(self.average, x0), first_regime(self.up.compressor, x0)
        return Node(x0.copy(), mean, regime, np.zeros_like(x0), np.zeros_like(x0))

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        β1, β2, g = self.beta1, self.beta2, down.dense()
        node.m += (1 - β1) * (g - node.m)
        node.v += (1 - β2) * (g * g - node.v)
        m, v = node.m / (1 - β1 ** (t.k + 1)), node.v / (1 - β2 ** (t.k + 1))
        shrink(node.x, self.kept_by_regulariser(t.k), at_once=True)
        node.x -= self.gamma(t.k) * m / (np.sqrt(v) + self.epsilon)
        self.note_round(node, down, t.k)
