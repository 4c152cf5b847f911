import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mpi_compress.algorithms.vocabulary import (
    HEARS_MEAN,
    NO_GRADIENT,
    AtLeastOne,
    Batch,
    Compressed,
    Decay,
    Dense,
    Direction,
    Estimator,
    Lemma,
    Link,
    Round,
    Rounds,
    ServerState,
    Shards,
    Step,
    UsualParameters,
    Vector,
    algorithms,
    has_state,
    is_exact,
    starts_at_0,
)
from mpi_compress.core.arrays import Indices
from mpi_compress.messages.kinds.grids import Whole


@dataclass(frozen=True)
class LowRank:
    """The blocks of a vector (d,), in order: a block of one axis is a vector, any other a matrix M (n, m), m its last axis. A
    matrix has factors P (n, r) and Q (m, r), where r is the rank, or min{n, m} if that is less. All P lie one after the other in a
    vector (dim_P,), which ends with the blocks that are vectors; all Q lie in a vector (dim_Q,)."""

    shapes: Sequence[Sequence[int]]
    rank: int

    @cached_property
    def sizes(self) -> list[tuple[int, int, int]]:
        """n, m and r of each block; a vector has m = r = 0."""
        found = [(math.prod(shape[:-1]), shape[-1]) if len(shape) > 1 else (shape[0], 0) for shape in self.shapes]
        return [(n, m, min(n, m, self.rank)) for n, m in found]

    @property
    def dim_P(self) -> int:
        return sum(n * (r or 1) for n, _, r in self.sizes)

    @property
    def dim_Q(self) -> int:
        return sum(m * r for _, m, r in self.sizes)

    @property
    def dim(self) -> int:
        return sum(n * (m or 1) for n, m, _ in self.sizes)

    @cached_property
    def vectors(self) -> Indices:
        """Where the blocks that are vectors lie."""
        return np.flatnonzero(np.repeat([m == 0 for _, m, _ in self.sizes], [n * (m or 1) for n, m, _ in self.sizes]))

    def matrices(self, v: Vector, P: Vector, Q: Vector) -> Iterator[tuple[Vector, Vector, Vector]]:
        """Views of each matrix in v, P and Q: M (n, m), its P (n, r), its Q (m, r)."""
        at = p = q = 0
        for n, m, r in self.sizes:
            if m:
                yield v[at : at + n * m].reshape(n, m), P[p : p + n * r].reshape(n, r), Q[q : q + m * r].reshape(m, r)
                p, q = p + n * r, q + m * r
            at += n * (m or 1)

    def left(self, v: Vector, Q: Vector) -> Vector:
        """M Q of each matrix, and the vectors as they are: (dim_P,)."""
        P = np.empty(self.dim_P)
        for M, of_M, right in self.matrices(v, P, Q):
            of_M[:] = M @ right
        P[P.size - self.vectors.size :] = v[self.vectors]
        return P

    def right(self, v: Vector, P: Vector) -> Vector:
        """Mᵀ P of each matrix: (dim_Q,)."""
        Q = np.empty(self.dim_Q)
        for M, left, of_M in self.matrices(v, P, Q):
            of_M[:] = M.T @ left
        return Q

    def orthogonalised(self, P: Vector) -> Vector:
        """P with orthonormal columns of the same span for each matrix, by Householder's QR; vectors as they are: (dim_P,)."""
        P = P.copy()
        for _, left, _ in self.matrices(np.empty(self.dim), P, np.empty(self.dim_Q)):
            left[:] = np.linalg.qr(left)[0]
        return P

    def subtract(self, v: Vector, P: Vector, Q: Vector) -> None:
        """M ← M − P Qᵀ for each matrix of v (d,), in place."""
        for M, left, right in self.matrices(v, P, Q):
            M -= left @ right.T

    def subtract_vectors(self, v: Vector, P: Vector) -> None:
        """Subtract from each block of v (d,) that is a vector the one that P holds, in place."""
        v[self.vectors] -= P[P.size - self.vectors.size :]

    def product(self, P: Vector, Q: Vector) -> Vector:
        """P Qᵀ of each matrix, and the vectors as they are: (d,)."""
        v = np.zeros(self.dim)
        self.subtract(v, P, Q)
        self.subtract_vectors(v, P)
        return -v


@dataclass
class Memory:
    m: Vector  # (d,) momentum
    P: Vector  # (dim_P,) P̂ of each matrix, its columns orthonormal, and the mean of each block that is a vector
    Q: Vector  # (dim_Q,) Q of each matrix


@dataclass
class Worker:
    e: Vector  # (d,) e_w; Δ_w between the two rounds of a step


@algorithms.register("power-sgd")
class PowerSGD(UsualParameters, Estimator):
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
    needs = (HEARS_MEAN, NO_GRADIENT)
    lemma = Lemma()
    step: Step = "1/(4*L)"  # γ, the step size
    rank: AtLeastOne = 2  # r, the rank; min{n, m} of a block where that is less
    shapes: list[list[int]] | Literal["model"] = "model"  # of the blocks of x, in order; "model": the model's own blocks
    momentum: Decay = 0.0  # λ, the momentum; 0: none
    warm_start: bool = True  # false: each step draws Q again

    def check(self) -> None:
        shapes, dim = self.blocks.shapes, self.setting.dim
        if not shapes:
            raise ValueError('shapes = "model" needs a model, and a loss of a margin has no blocks; give shapes = [[n, m], …]')
        if any(not shape or min(shape) < 1 for shape in shapes) or sum(map(math.prod, shapes)) != dim:
            raise ValueError(f"shapes = {[*map(list, shapes)]} must have axes of at least 1, and d = {dim} coordinates in all")
        if self.down.compressor.makes is not Dense or not is_exact(self.down):
            raise ValueError("power-sgd sends whole factors down: leave the compressor of [down] out")
        C = self.up.compressor
        if not issubclass(C.makes, Whole) or has_state(C) or C.follows:
            raise ValueError("power-sgd sends all numbers of its factors: [up] has a compressor such as qsgd or natural, or none")

    @cached_property
    def blocks(self) -> LowRank:
        own = [shape for shape in self.setting.shapes if math.prod(shape)]  # a model without an intercept has a block for it, empty
        return LowRank(own if self.shapes == "model" else self.shapes, self.rank)

    def length(self, k: int) -> int:
        """The numbers in a message of round k."""
        return self.blocks.dim_Q if k % 2 else self.blocks.dim_P

    def uplink(self, node: Any, k: int) -> Link:
        return replace(self.up, dim=self.length(k))

    def downlink(self, node: Any, k: int) -> Link:
        return replace(self.down, dim=self.length(k))

    def start_memory(self, x0: Vector) -> Memory:
        return Memory(np.zeros_like(x0), np.zeros(self.blocks.dim_P), np.zeros(self.blocks.dim_Q))

    start_workers = starts_at_0(Worker)

    def workers_send(self, node: Any, w: Worker, fs: Shards, t: Rounds) -> Batch:
        link, blocks = self.uplink(node, t.k), self.blocks
        if t.k % 2 == 0:
            w.e += fs.gradients(node.x, self.rows(fs, t, t.k // 2))
            Q = self.right_factors(node, t)
            sent = link.pack(np.array([blocks.left(e, Q) for e in w.e]), t)
            for e, P in zip(w.e, link.unpack(sent).dense(), strict=True):
                blocks.subtract_vectors(e, P)
        else:
            P = node.memory.P
            sent = link.pack(np.array([blocks.right(e, P) for e in w.e]), t)
            for e, Q in zip(w.e, link.unpack(sent).dense(), strict=True):
                blocks.subtract(e, P, Q)
        return sent

    def right_factors(self, node: Any, t: Rounds) -> Vector:
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

    def move(self, s: ServerState, g: Direction | None, k: int) -> None:
        if k % 2:
            super().move(s, g, k // 2)
