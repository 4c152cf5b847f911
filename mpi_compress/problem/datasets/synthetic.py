"""Synthetic sets: GSpar's Gaussian samples whose features differ in scale, a linear model of given condition, quadratics."""

from collections.abc import Iterator
from typing import Annotated, Literal

import numpy as np

from mpi_compress.core.fields import AtLeastOne, NotNegative
from mpi_compress.problem.datasets.generators import Chunk, Generator, Rng, Samples, Vector, generators, within

_ROWS = 4096  # of a chunk


@generators.register("gspar")
class GSparLogistic(Generator):
    """GSpar's synthetic logistic set (Wangni, Wang, Liu, Zhang 2018, §4).

    ā_n ~ N(0, I);  B̄ ~ U[0, 1]^d once, B̄_i ← C1·B̄_i where B̄_i ≤ C2;  a_n = ā_n ⊙ B̄;  w̄ ~ N(0, I);  y_n = sign(ā_n·w̄),
    or of a_n·w̄ with `labels_from = "scaled"`, which the paper leaves open.
    """

    paper = "GSpar §4"
    samples: Samples = 1024  # N, the number of samples
    dim: AtLeastOne = 2048  # d, the number of features
    c1: float = 0.9  # C1, the factor of the scales up to C2
    c2: float = 0.25  # C2, the largest scale, of those uniform in [0, 1], that is multiplied by C1
    labels_from: Literal["unscaled", "scaled"] = "unscaled"  # labels are the signs of ā_n·w̄, or of a_n·w̄

    def make(self) -> Chunk:
        rng = np.random.default_rng(self.seed)
        normal = rng.standard_normal((self.samples, self.dim))
        scale = _scale(rng, self.dim, self.c1, self.c2)
        w = rng.standard_normal(self.dim)
        scaled = normal * scale
        margins = (normal if self.labels_from == "unscaled" else scaled) @ w
        return scaled, np.where(margins >= 0, 1.0, -1.0)


@generators.register("gspar-svm")
class GSparSVM(Generator):
    """GSpar's synthetic SVM set (Wangni, Wang, Liu, Zhang 2018, §4.2).

    a_n as in `gspar`;  w̄ ~ U[−½, ½]^d;  y_n = sign(a_n·w̄ + σ), σ ~ N(0, 1).
    """

    paper = "GSpar §4.2"
    samples: Samples = 51200  # N, the number of samples
    dim: AtLeastOne = 256  # d, the number of features
    c1: float = 0.01  # C1, the factor of the scales up to C2
    c2: float = 0.9  # C2, the largest scale, of those uniform in [0, 1], that is multiplied by C1

    def make(self) -> Iterator[Chunk]:
        whole = self.stream(0)
        scale = _scale(whole, self.dim, self.c1, self.c2)
        w = whole.uniform(-0.5, 0.5, self.dim)
        for rng, rows in self.blocks(self.samples, _ROWS):
            a = rng.standard_normal((rows, self.dim)) * scale
            yield a, np.where(a @ w + rng.standard_normal(rows) >= 0, 1.0, -1.0)


def _scale(rng: Rng, dim: int, c1: float, c2: float) -> Vector:
    scale = rng.random(dim)
    scale[scale <= c2] *= c1
    return scale


@generators.register("least-squares")
class LeastSquares(Generator):
    """A linear model whose condition number is what was asked for: y = A x° + noise·σ, x° ~ N(0, I), σ ~ N(0, I).

    A = √N U S Vᵀ with U, V random and orthonormal, so that the eigenvalues of AᵀA/N, S², go from 1 down to 1/condition by equal
    factors. With noise = 0 it is interpolated: every sample is fitted exactly at x°.
    """

    real_labels = True
    samples: Samples = 1000  # N, the number of samples, at least dim
    dim: AtLeastOne = 100  # d, the number of features
    condition: Annotated[float, within("[1, inf)")] = 100.0  # condition number of AᵀA/N, its largest eigenvalue over its least
    noise: NotNegative = 0.0  # standard deviation of the Gaussian noise on the labels

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.samples < self.dim:
            raise ValueError(f"samples = {self.samples} must be at least dim = {self.dim}, for the condition number to be finite")

    def make(self) -> Chunk:
        rng = self.stream(0)
        u = np.linalg.qr(rng.standard_normal((self.samples, self.dim)))[0]
        v = np.linalg.qr(rng.standard_normal((self.dim, self.dim)))[0]
        a = np.sqrt(self.samples) * (u * self.condition ** (-0.5 * np.linspace(0.0, 1.0, self.dim))) @ v.T
        return a, a @ rng.standard_normal(self.dim) + self.noise * rng.standard_normal(self.samples)


@generators.register("tridiagonal")
class Tridiagonal(Generator):
    """The quadratics of Szlendak, Tyurin and Richtárik (2022), §D.2, for model = "quadratic": a row is one quadratic.

    ξ, ξ' ~ N(0, 1) for each row;  ν = 1 + hξ;  its features are ν/4, (ν/4)(−1 + hξ') and the mean of all ν/4. With as many rows as
    workers each worker has a quadratic of its own.
    """

    paper = "Szlendak et al. 2022, §D.2"
    real_labels = True
    samples: AtLeastOne = 10  # N, the number of quadratics; as many as workers give each worker one
    heterogeneity: NotNegative = 1.0  # h, how far quadratics differ; 0: all are alike

    def make(self) -> Chunk:
        ξ = self.stream(0).standard_normal((self.samples, 2))
        quarters = (1.0 + self.heterogeneity * ξ[:, 0]) / 4.0
        rows = np.stack([quarters, quarters * (self.heterogeneity * ξ[:, 1] - 1.0), np.full(self.samples, quarters.mean())], axis=1)
        return rows, np.zeros(self.samples)

    def size(self) -> tuple[int, int, float]:
        return self.samples, 3, 3.0 * self.samples
