"""Steps along the direction: without momentum, with the heavy ball's, Nesterov's, by a norm, and by means of squares."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mpi_compress.algorithms.parts import Direction, Moved, Point, Server, add, dense, servers, summed
from mpi_compress.core.expressions import Expression
from mpi_compress.core.fields import Decay, Positive
from mpi_compress.messages.kinds import Vector


@servers.register("step")
class GradientStep(Server):
    """x ← x − γ (g + ∇r(x)), r the regulariser where it is not in the f_i; where r is not smooth, x ← prox_{γr}(x − γ g).

    The proximal step is that of Beck and Teboulle (2009).
    """

    scales = True
    proximal = True

    def move(self, s: Moved, g: Direction, γ: float, k: int) -> None:
        self.along(s.x, g, γ)


@dataclass
class MovedWithMomentum(Moved):
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

    def start(self, x: Point) -> MovedWithMomentum:
        return MovedWithMomentum(x, self.begun_mean(x), np.zeros_like(dense(x)))

    def move(self, s: MovedWithMomentum, g: Direction, γ: float, k: int) -> None:
        self.regularise(s.x, γ, at_once=self.method.batch is None)
        if self.form != "heavy-ball":
            for term in g:
                add(s.x, term, -γ)
        s.m *= self.beta
        for term in g:
            add(s.m, term)
        add(s.x, s.m, -γ * self.beta if self.form == "nesterov" else -γ)


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

    def start(self, x: Point) -> MovedWithMomentum:
        return MovedWithMomentum(x, self.begun_mean(x), np.zeros_like(dense(x)))

    def move(self, s: MovedWithMomentum, g: Direction, γ: float, k: int) -> None:
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


@dataclass
class MovedWithMoments(Moved):
    m: Vector  # (d,) mean of directions
    v: Vector  # (d,) mean of their squares


@servers.register("adam")
class AdamStep(Server):
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

    def start(self, x: Point) -> MovedWithMoments:
        return MovedWithMoments(x, self.begun_mean(x), np.zeros_like(dense(x)), np.zeros_like(dense(x)))

    def move(self, s: MovedWithMoments, g: Direction, γ: float, k: int) -> None:
        β1, β2, ĝ = self.beta1, self.beta2, summed(g)
        s.m += (1 - β1) * (ĝ - s.m)
        s.v += (1 - β2) * (ĝ * ĝ - s.v)
        m, v = s.m / (1 - β1 ** (k + 1)), s.v / (1 - β2 ** (k + 1))
        self.regularise(s.x, γ, at_once=True)
        x = dense(s.x)
        x -= γ * m / (np.sqrt(v) + self.epsilon)


@servers.register("adagrad")
class AdaGradStep(Server):
    """FedAdagrad's step (Reddi, Charles, Zaheer, Garrett, Rush, Konečný, Kumar, McMahan 2021, Algorithm 2); β1 = 0: AdaGrad.

    m ← β1 m + (1 − β1) g;  v ← v + g²
    x ← x − γ m / (√v + ε)

    A regulariser at the master is decoupled from m and v, as in `adam`.
    """

    paper = "Reddi et al. 2021, Algorithm 2"
    beta1: Decay = 0.0  # β1, the share that m keeps
    epsilon: Positive = 1e-3  # ε, added to √v; the paper's τ

    def start(self, x: Point) -> MovedWithMoments:
        return MovedWithMoments(x, self.begun_mean(x), np.zeros_like(dense(x)), np.zeros_like(dense(x)))

    def move(self, s: MovedWithMoments, g: Direction, γ: float, k: int) -> None:
        ĝ = summed(g)
        s.m += (1 - self.beta1) * (ĝ - s.m)
        s.v += ĝ * ĝ
        self.regularise(s.x, γ, at_once=True)
        x = dense(s.x)
        x -= γ * s.m / (np.sqrt(s.v) + self.epsilon)
