"""What methods with smoothness matrices share: the square root of each worker's L_i, which round 0 sends, and products with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np

from mpi_compress.algorithms.vocabulary import (
    LOSS_ALONE,
    Algorithm,
    Batch,
    Compressed,
    Dense,
    Lemma,
    Link,
    Need,
    NotMet,
    Objective,
    Round,
    Rounds,
    Setting,
    SeveralLink,
    Shards,
    Sparse,
    Vector,
    square,
    takes_theorem_step,
    triangle,
)
from mpi_compress.problem.optimum.newton import DENSE_HESSIAN_UP_TO
from mpi_compress.problem.second_order import dense_hessian, smoothness_diagonal

OF_ROWS = Need(
    lambda m: m.setting.whole is not None,
    "{name} needs a matrix L_i of each worker, from samples of a linear model: name a loss of a margin, such as logistic, no model",
)
HAS_SMOOTHNESS = Need(
    lambda m: "L" in m.setting.numbers,
    "{name} needs matrices L_i, which follow from the curvature that a smooth loss states",
    of=("L",),
)
FITS = Need(
    lambda m: m.matrix == "diagonal" or m.setting.dim <= DENSE_HESSIAN_UP_TO,
    f'{{name}} keeps matrices (d, d), for d up to {DENSE_HESSIAN_UP_TO}: matrix = "diagonal" would do',
)


@dataclass
class Root:
    """A worker's L_i^{1/2}, as the master has it, and its inverse."""

    S: Vector  # (d, d) L_i^{1/2}; (d,) where L_i is diagonal
    inverse: Vector  # of the same shape


@dataclass
class Roots:
    """What the master knows of all workers."""

    S: Vector  # (n, d, d) or (n, d) L_i^{1/2}
    own: Any = None  # the downlink's memory, where there is one


@dataclass(frozen=True)
class KnowsSmoothness(Algorithm):
    """A method whose Q acts on L_i^{−1/2} v. The receiver multiplies by L_i^{1/2}, which round 0 sends in [up]'s floats.

    L_i is s n/N A_iᵀA_i + µI for a loss with second derivatives up to s, sent as d(d+1)/2 floats, or the diagonal (d,)
    D_j = s n/N Σ|a_j| ‖a‖₁ + µ over the rows a, which is above it. Theorems have an 𝓛̃ with E‖L_i^{1/2} (Q(u) − u)‖² ≤ 𝓛̃ ‖u‖².
    ω L_max is one for the whole L_i, whatever Q is; no number of the problem bounds the largest D_j, so a diagonal needs a step.
    A diagonal changes nothing for a Q that keeps or drops coordinates, such as random-k: D^{1/2} Q(D^{−1/2} v) is Q(v) then.
    """

    matrix: Literal["full", "diagonal"] = "full"  # L_i: whole, or a diagonal above it
    needs: ClassVar[Sequence[Need]] = (OF_ROWS, LOSS_ALONE, HAS_SMOOTHNESS, FITS)
    partial_mean = ""
    lemma = Lemma()

    def bind(self, setting: Setting) -> Self:
        if self.matrix == "diagonal" and takes_theorem_step(self):
            raise NotMet(f'{self.name} with matrix = "diagonal" needs a step: its theoretical step size is that of matrix = "full"')
        return super().bind(setting)

    def more_memory(self, dim: int, n: int) -> tuple[float, float]:
        return (2.0 * dim**2, float(n) * dim**2) if self.matrix == "full" else (0.0, 0.0)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of L_i."""
        return (self.setting.dim,) * (2 if self.matrix == "full" else 1)

    @cached_property
    def roots(self) -> Link:
        """The link of L_i^{1/2}: its triangle (d(d+1)/2,), or its diagonal (d,)."""
        d, whole = self.setting.dim, self.up.whole
        return Link(whole.compressor, whole.codec, d * (d + 1) // 2 if self.matrix == "full" else d)

    def uplink(self, node: Any, k: int) -> Any:
        link = super().uplink(node, k)
        return link if k else SeveralLink(link, self.roots)

    def no_root(self, m: int) -> Root:
        """What m workers have before round 0."""
        return Root(np.zeros((m, *self.shape)), np.zeros((m, *self.shape)))

    def no_roots(self, own: Any = None) -> Roots:
        """What the master has before round 0."""
        return Roots(np.zeros((self.setting.n, *self.shape)), own)

    def learn(self, L: Root, fs: Shards, t: Rounds) -> Batch:
        """The messages with L_i^{1/2}; workers keep what the receiver decodes from them, and its inverse."""
        sent = self.roots.pack(np.array([root_of(f, self.matrix) for f in fs]), t)
        L.S[:] = self._as_matrices(self.roots.unpack(sent))
        L.inverse[:] = [inverse(S) for S in L.S]
        return sent

    def with_root(self, node: Any, sent: Batch, root: Batch | None) -> Batch:
        """The messages of a round; in round 0 L_i^{1/2} is in them, too."""
        return sent if root is None else self.uplink(node, 0).join(sent, root)

    def received(self, master: Roots, ups: Any, t: Round) -> tuple[Vector, Any]:
        """The workers' L_i^{1/2}, and what else they sent, in worker order."""
        content = ups.content
        if t.k == 0:
            content, roots = content.parts
            master.S = self._as_matrices(roots)
        return master.S, content

    def _as_matrices(self, roots: Compressed) -> Vector:
        """The roots of all rows."""
        return np.array([square(root) for root in roots.dense()]) if self.matrix == "full" else roots.dense()


def root_of(f: Objective, matrix: str) -> Vector:
    """L_i^{1/2} as its triangle (d(d+1)/2,), or the root of the diagonal (d,)."""
    if matrix == "diagonal":
        return np.sqrt(smoothness_diagonal(f))
    values, vectors = np.linalg.eigh(dense_hessian(f, np.full(len(f.rows), f.weight * f.loss.curvature)))  # L_i ⪰ ∇²f_i everywhere
    return triangle((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def times(S: Vector, v: Vector) -> Vector:
    """S_i v_i (m, d) of matrices (m, d, d), or of diagonals (m, d)."""
    return S * v if S.ndim == 2 else np.array([S_i @ v_i for S_i, v_i in zip(S, v, strict=True)])


def scaled(S: Vector, Δ: Compressed) -> Compressed:
    """S_i Δ_i of rows, sparse where S is diagonal and Δ is sparse."""
    sparse = Δ.sparse() if S.ndim == 2 else None
    if sparse is None:
        return Dense(times(S, Δ.dense()))
    row = np.repeat(np.arange(len(S)), sparse.counts)
    return Sparse(Δ.dim, sparse.indices, S[row, sparse.indices] * sparse.values, sparse.ends)


def inverse(S: Vector) -> Vector:
    """S⁻¹ of its shape; not finite where the floats of a message left S singular."""
    if S.ndim == 1:
        with np.errstate(divide="ignore"):
            return 1.0 / S
    try:
        return np.asarray(np.linalg.inv(S), np.float64)
    except np.linalg.LinAlgError:
        return np.full_like(S, np.nan)
