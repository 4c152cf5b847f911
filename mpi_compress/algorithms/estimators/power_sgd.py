import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mpi_compress.algorithms.averaging import Average
from mpi_compress.algorithms.low_rank import LowRank
from mpi_compress.algorithms.needs import HEARS_MEAN
from mpi_compress.algorithms.vocabulary import (
    Direction,
    Estimator,
    Link,
    Message,
    Moved,
    Objective,
    Round,
    Sampling,
    Step,
    algorithms,
)
from mpi_compress.core.fields import AtLeastOne, Decay
from mpi_compress.messages.kinds import Compressed, Dense, Vector
from mpi_compress.messages.kinds.grids import Whole


@dataclass
class Memory:
    m: Vector  # (d,) momentum
    P: Vector  # (dim_P,) P̂ of each matrix, its columns orthonormal, and the mean of each block that is a vector
    Q: Vector  # (dim_Q,) Q of each matrix


@dataclass
class Worker:
    e: Vector  # (d,) e_w; Δ_w between the two rounds of a step


@algorithms.register("power-sgd")
class PowerSGD(Estimator):
    """PowerSGD: Vogels, Karimireddy, Jaggi (NeurIPS 2019), Algorithms 1 and 2, for each matrix M of Δ. A step takes two rounds:

    worker sends     Δ_w ← g_w + e_w;  P_w ← Δ_w Q
    everyone         P̂ ← orthogonalize((1/W) Σ P_w)
    worker sends     Q_w ← Δ_wᵀ P̂;  e_w ← Δ_w − P̂ Q_wᵀ
    everyone         Q ← (1/W) Σ Q_w;  Δ' ← P̂ Qᵀ;  m ← λ m + Δ';  x ← x − γ (Δ' + m)

    All e_w and m start at 0, and Q with standard normal entries, which all nodes draw alike. Without momentum x ← x − γ Δ'. A block
    of x with one axis is a vector, which is sent whole beside P_w. Where r = min{n, m}, Δ' is the mean of all Δ_w. What goes up and
    down in a round is P or Q, whole; schedules of γ count steps, not rounds. P is orthogonalised by Householder's QR, the
    paper's by Gram and Schmidt: P̂ P̂ᵀ is the same. Ours: [up] may quantise P_w and Q_w (low rank, then quantised), and e_w
    keeps what that loses, too, since Q_w stands for what is sent. In the authors' code e_w loses P̂ Qᵀ, the mean of what all
    lose: x is the same. The paper states no theorem; γ = 1/(4L), as of other error feedback, is the default.
    """

    paper = "PowerSGD, Algorithms 1 and 2"
    compressor = "identity"
    needs = (HEARS_MEAN,)
    step: Step = "1/(4*L)"  # γ, the step size
    batch: int | None = None  # rows of each worker's minibatch; left out: full gradients
    sampling: Sampling = "with-replacement"  # rows drawn uniformly over the shard, or from a new permutation in each epoch
    regularizer: Literal["worker", "master"] | None = None  # where (µ/2)‖x‖² is applied; left out: as [objective] says
    average: Average = "last"  # the point to evaluate: the last iterate, or a weighted mean of all (HT Theorem 9)
    rank: AtLeastOne = 2  # r, the rank; min{n, m} of a block where that is less
    shapes: list[list[int]] | Literal["model"] = "model"  # of the blocks of x, in order; "model": the model's own blocks
    momentum: Decay = 0.0  # λ, the momentum; 0: none
    warm_start: bool = True  # false: each step draws Q anew

    def check(self) -> None:
        shapes, dim = self.blocks.shapes, self.setting.dim
        if not shapes:
            raise ValueError('shapes = "model" needs a model, and a loss of a margin has no blocks; give shapes = [[n, m], …]')
        if any(not shape or min(shape) < 1 for shape in shapes) or sum(map(math.prod, shapes)) != dim:
            raise ValueError(f"shapes = {[*map(list, shapes)]} must have axes of at least 1, and d = {dim} coordinates in all")
        if self.down.compressor.makes is not Dense or self.down.compressor.omega(dim) != 0.0:
            raise ValueError("power-sgd sends whole factors down: leave the compressor of [down] out")
        C = self.up.compressor
        if not issubclass(C.makes, Whole) or C.has_state or C.follows or C.needs_noise or C.bounds_range:
            raise ValueError("power-sgd sends all numbers of its factors: [up] has a compressor such as qsgd or natural, or none")

    @property
    def fixed_budget(self) -> int | None:
        return None

    @cached_property
    def blocks(self) -> LowRank:
        own = [shape for shape in self.setting.shapes if math.prod(shape)]  # a model without an intercept has a block for it, empty
        return LowRank(own if self.shapes == "model" else self.shapes, self.rank)

    def uplink(self, node: Any, k: int) -> Link:
        return replace(self.up, dim=self.blocks.dim_Q if k % 2 else self.blocks.dim_P)

    def downlink(self, node: Any, k: int) -> Link:
        return replace(self.down, dim=self.blocks.dim_Q if k % 2 else self.blocks.dim_P)

    def start_memory(self, x0: Vector) -> Memory:
        return Memory(np.zeros_like(x0), np.zeros(self.blocks.dim_P), np.zeros(self.blocks.dim_Q))

    def start_worker(self, node: Any, f: Objective) -> Worker:
        return Worker(np.zeros(f.dim))

    def worker_sends(self, node: Any, worker: Worker, f: Objective, t: Round) -> Message:
        link, blocks = self.uplink(node, t.k), self.blocks
        if t.k % 2 == 0:
            worker.e += f.gradient(node.x, self.rows(f, t, t.k // 2))
            message = link.pack(blocks.left(worker.e, self.right_factors(node, t)), t)
            blocks.subtract_vectors(worker.e, link.unpack(message).dense())
        else:
            message = link.pack(blocks.right(worker.e, node.memory.P), t)
            blocks.subtract(worker.e, node.memory.P, link.unpack(message).dense())
        return message

    def right_factors(self, node: Any, t: Round) -> Vector:
        """Q of the step before; in the first step, and without a warm start in each, standard normal."""
        return node.memory.Q if self.warm_start and t.k else t.shared.standard_normal(self.blocks.dim_Q)

    def estimate(self, node: Any, memory: Memory, mean: Compressed, t: Round) -> Direction | None:
        if t.k % 2 == 0:
            memory.P[:] = self.blocks.orthogonalised(mean.dense())
            return None
        memory.Q[:] = mean.dense()
        Δ = self.blocks.product(memory.P, memory.Q)
        memory.m[:] = self.momentum * memory.m + Δ
        return (Δ + memory.m if self.momentum else Δ,)

    def move(self, moved: Moved, g: Direction | None, k: int) -> None:
        if k % 2:
            super().move(moved, g, k // 2)
