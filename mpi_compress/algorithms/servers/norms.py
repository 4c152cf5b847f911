"""Steps of a length that is known beforehand, by a norm."""

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np

from mpi_compress.algorithms.servers.momentum import HeavyBall, MomentumState
from mpi_compress.algorithms.vocabulary import (
    Decay,
    Direction,
    Server,
    Vector,
    add,
    dense,
    servers,
)


@servers.register("lmo")
class NormStep(Server):
    """The step of length γ that descends most along the momentum, by a norm: stochastic Frank–Wolfe's step without a constraint.

    m ← β m + g;  x ← x − γ D,   D = argmax {⟨m, D⟩ : ‖D‖ ≤ 1}

    max          D = sign(m): signSGD with momentum (Bernstein et al. 2018)
    euclidean    D = m/‖m‖: normalised gradient descent
    spectral     a matrix M of the model moves along its polar factor UVᵀ, where M = U diag(s) Vᵀ; a vector as `vectors` says

    The polar factor is that of the singular value decomposition, not of Newton–Schulz steps; singular values below the rounding
    error of the largest are left out. A block of more than two axes is a matrix as wide as its last axis. D of m = 0 is 0. No
    theoretical step size is stated here.
    """

    paper = "Pethick et al. 2025; Bernstein et al. 2018"
    beta: Decay = 0.9  # β, the share that m keeps
    norm: Literal["max", "euclidean", "spectral"] = "spectral"  # of D
    vectors: Literal["sign", "euclidean", "as-they-are"] = "sign"  # along what vectors move under the spectral norm

    start = HeavyBall.start

    def move(self, s: MomentumState, g: Direction, γ: float, k: int) -> None:
        s.m *= self.beta
        for term in g:
            add(s.m, term)
        self.regularise(s.x, γ, at_once=True)
        x = dense(s.x)
        for at, shape in self.blocks(x.size):
            x[at] -= γ * self.along_block(s.m[at], shape)

    def blocks(self, d: int) -> Iterator[tuple[slice, tuple[int, ...]]]:
        """Where each block of x (d,) lies, and its shape; without a model, or by a norm that knows no blocks, x is one vector."""
        start = 0
        for shape in self.method.setting.shapes if self.norm == "spectral" and self.method.setting.shapes else [(d,)]:
            yield slice(start, start + math.prod(shape)), tuple(shape)
            start += math.prod(shape)

    def along_block(self, m: Vector, shape: tuple[int, ...]) -> Vector:
        """D of a block of m, flat."""
        if self.norm == "spectral" and len(shape) > 1:
            return polar_factor(m.reshape(-1, shape[-1])).ravel()
        way = self.vectors if self.norm == "spectral" else {"max": "sign"}.get(self.norm, self.norm)
        if way == "euclidean":
            length = float(np.linalg.norm(m))
            return m / length if length else m
        return np.sign(m) if way == "sign" else m


def polar_factor(M: Vector) -> Vector:
    """UVᵀ of M (a, b) = U diag(s) Vᵀ, without the singular values that are 0 up to rounding."""
    U, s, Vt = np.linalg.svd(M, full_matrices=False)
    kept = s > s[0] * max(M.shape) * np.finfo(np.float64).eps
    return (U[:, kept] @ Vt[kept]) if kept.any() else np.zeros_like(M)


@servers.register("muon")
class Muon(NormStep):
    """Muon (Jordan et al. 2024): each matrix of the model moves along the polar factor of its momentum, γ its spectral norm.

    m ← β m + g;  M ← M − γ UVᵀ for a matrix with the momentum U diag(s) Vᵀ;  v ← v − γ sign(m_v) for a vector

    It is `lmo` with the spectral norm. With EF21 it is EF21-Muon, with local-sgd MuLoCo's outer step. Newton–Schulz steps, which
    authors take in place of the singular value decomposition, give singular values near 1; here they are 1.
    """

    paper = "Jordan et al. 2024"
    beta: Decay = 0.95  # β, the share that m keeps
