from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from mpi_compress.algorithms.averaging import Average, weight_ratio
from mpi_compress.algorithms.base import Algorithm, algorithms
from mpi_compress.algorithms.budget_search import Sparsification, improvement_of
from mpi_compress.algorithms.regimes import Regime
from mpi_compress.algorithms.sampling import Batches, Sampling, check_batch
from mpi_compress.algorithms.steps import Step, step_at
from mpi_compress.core.streams import Round
from mpi_compress.kernels import select
from mpi_compress.messages.compressors.base import count_of
from mpi_compress.messages.compressors.top_k import TopK
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Message
from mpi_compress.problem.objective import Objective

_FOLD_BELOW = 1e-3


@dataclass
class Node:
    x: Vector  # (d,) iterate / scale
    scale: float = 1.0  # other than 1 only where an algorithm is `lazy`
    mean: Vector = field(default_factory=lambda: np.empty(0))  # (d,) weighted mean of the iterates, where it is wanted
    ratio: float = 1.0  # Σ of the mean's weights over the last one
    m: Vector = field(default_factory=lambda: np.empty(0))  # (d,) momentum, where every node has it; Nesterov's y
    regime: Regime | None = None  # where the compressor follows ACCORDION's
    silent: int = 0  # rounds in which no worker sent anything, where that is counted


@algorithms.register("gd")
@dataclass(frozen=True)
class GD(Algorithm):
    """Gradient descent with compressed gradients: CAT eq. 1; with the identity, plain gradient descent.

    worker sends     Q(g_i),   g_i = ∇f_i(x), or its estimate by a minibatch
    master answers   ĝ = (1/n) Σ Q(g_i)
    everyone         x ← x − γ (ĝ + ∇r(x)),   r the regulariser where it is not in the f_i
    """

    paper = "CAT eq. 1"
    curve = "alpha"
    lazy: ClassVar[bool] = False  # whether ∇r of a minibatch run is applied to a scalar, so that a round costs what it touches
    step: Step = "1/L"  # γ
    batch: int | None = None  # rows of a minibatch; None: the full gradient
    sampling: Sampling = "with-replacement"
    regularizer: Literal["worker", "master"] | None = None  # where r sits, if not as [objective] says
    average: Average = "last"  # the point to evaluate: the last one, or a weighted mean of all (HT Theorem 9)

    def check(self) -> None:
        if self.batch is not None:
            check_batch(self.batch, self.setting.numbers["N"])
        weight_ratio(self.average, self.step, self.setting.numbers["mu"], 1)

    def gamma(self, k: int) -> float:
        """γ_k."""
        return step_at(self.step, k)  # type: ignore[arg-type]

    @cached_property
    def batches(self) -> Batches | None:
        return None if self.batch is None else Batches(self.batch, self.sampling)

    def rows(self, f: Objective, t: Round) -> NDArray[np.uint64] | None:
        """The rows of this round's minibatch; None: all."""
        return None if self.batches is None else self.batches.rows(len(f.rows), t)

    def start(self, x0: Vector) -> Node:
        return self.averaged(Node(x0.copy()))

    def asks_for(self, node: Node) -> Vector | None:
        return node.x if self.batch is None else None

    def worker_sends(self, node: Node, worker: Any, f: Objective, t: Round) -> Message:
        return self.up.pack(f.gradient(node.x, self.rows(f, t)), t)

    def master_answers(self, node: Node, master: Any, ups: Sequence[Compressed], t: Round) -> Message:
        return self.down.pack(self.mean(ups), t)

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        γ = self.gamma(t.k)
        self.shrink(node, γ)
        self.move(node, down, γ)
        self.averaged(node, t.k + 1)

    def move(self, node: Node, down: Compressed, γ: float) -> None:
        """The step by what was heard."""
        down.add_to(node.x, -γ / node.scale)

    def shrink(self, node: Node, γ: float) -> None:
        """x ← x − γ ∇r(x) for a regulariser that is not in the f_i."""
        if not self.setting.mu_apart:
            return
        factor = 1.0 - γ * self.setting.mu_apart
        if self.lazy and self.batch is not None and factor > _FOLD_BELOW:
            node.scale *= factor
            factor = 1.0
            if node.scale < _FOLD_BELOW:
                factor, node.scale = node.scale, 1.0
        if factor != 1.0:
            node.x *= factor

    def averaged(self, node: Node, k: int = 0) -> Node:
        """Take the iterate of round k into the weighted mean, if one is wanted."""
        if self.average != "last":
            if k == 0:
                node.mean = node.x.copy()
            else:
                node.ratio = 1.0 + node.ratio * weight_ratio(self.average, self.step, self.setting.numbers["mu"], k)
                node.mean += (node.scale * node.x - node.mean) / node.ratio
        return node

    @property
    def descends(self) -> bool:
        """Whether CAT's descent lemmas speak of this step: of −(1/L)·Q(∇f(x)), all of ∇f compressed."""
        exact = self.down.compressor.omega(self.setting.dim) == 0.0
        L = self.setting.numbers.get("L", np.nan)
        return exact and isinstance(self.step, float) and abs(self.step * L - 1) < 1e-12 and not self.setting.mu_apart

    def improvement(self, g: Vector) -> float:
        compressor = self.up.compressor
        if type(self) is not GD or not self.descends or self.batch is not None:
            return np.nan
        if compressor.omega(self.setting.dim) == 0.0:
            return 1.0
        if self.setting.n > 1 or not isinstance(compressor, TopK):
            return np.nan
        return improvement_of(Sparsification(), g, select.largest(g, count_of(compressor.k, g.size)))

    def iterate(self, node: Node) -> Vector:
        if self.average != "last":
            return node.mean
        return node.x if node.scale == 1.0 else node.scale * node.x
