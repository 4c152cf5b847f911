from dataclasses import dataclass

import numpy as np

from mpi_compress.problem.datasets.generators import Chunk, Generator, generators, positive_sizes


@generators.register("least-squares")
@dataclass(frozen=True)
class LeastSquares(Generator):
    """A linear model whose condition number is what was asked for: y = A x° + noise·σ, x° ~ N(0, I), σ ~ N(0, I).

    A = √N U S Vᵀ with U, V random and orthonormal, so that the eigenvalues of AᵀA/N, S², go from 1 down to 1/condition by equal
    factors. With noise = 0 it is interpolated: every sample is fitted exactly at x°.
    """

    real_labels = True
    samples: int = 1000
    dim: int = 100
    condition: float = 100.0
    noise: float = 0.0

    def __post_init__(self) -> None:
        positive_sizes(self.samples, self.dim)
        if self.samples < self.dim:
            raise ValueError(f"samples = {self.samples} must be at least dim = {self.dim}, for the condition number to be finite")
        if not 1 <= self.condition < np.inf:
            raise ValueError(f"condition = {self.condition} must be at least 1")
        if not self.noise >= 0:
            raise ValueError(f"noise = {self.noise} must be 0 or more")

    def make(self) -> Chunk:
        rng = self.stream(0)
        u = np.linalg.qr(rng.standard_normal((self.samples, self.dim)))[0]
        v = np.linalg.qr(rng.standard_normal((self.dim, self.dim)))[0]
        a = np.sqrt(self.samples) * (u * self.condition ** (-0.5 * np.linspace(0.0, 1.0, self.dim))) @ v.T
        return a, a @ rng.standard_normal(self.dim) + self.noise * rng.standard_normal(self.samples)
