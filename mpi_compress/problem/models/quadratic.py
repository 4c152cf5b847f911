import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np
import scipy  # which loads linalg where it is first used

from mpi_compress.core.fields import NotNegative, within
from mpi_compress.core.registry import fact
from mpi_compress.problem.models.base import Generator, Model, Rows, Shapes, Vector, models


@models.register("quadratic")
class Quadratic(Model):
    """Quadratics of Szlendak, Tyurin and Richtárik (2022), §D.2: f_i(x) = ½ xᵀA_i x − xᵀb_i with tridiagonal A_i.

    A row of the data is one quadratic, by the generator "tridiagonal": its features are ν/4, (ν/4)(−1 + hξ') and the mean of ν/4,
    and with T = tridiag(−1, 2, −1) (dim, dim)

        A = (ν/4) T + (convexity − mean(ν/4) λmin(T)) I,   b = (ν/4)(−1 + hξ') e₁

    so that the mean of all A has the least eigenvalue `convexity`. Runs start at √dim e₁. With `noise` σ gradients get Gaussian
    noise of E‖noise‖² = σ², drawn by worker and round.
    """

    labels = "number"
    solver = "exact"
    dim: Annotated[int, within("[2, inf)")] = 1000  # d, the number of coordinates of x
    convexity: NotNegative = 1e-6  # λ, the least eigenvalue of the mean of all A_i
    noise: NotNegative = 0.0  # σ, of the Gaussian noise on gradients: E‖noise‖² = σ²; 0: none

    @fact
    def random(self) -> bool:
        return self.noise > 0

    def check(self) -> None:
        if self.outline.features != 3:
            raise ValueError('quadratic needs data = { generator = "tridiagonal", … }, whose samples are quadratics')

    @property
    def blocks(self) -> Shapes:
        return {"x": (self.dim,)}

    def start(self, rng: Generator) -> Vector:
        x = np.zeros(self.dim)
        x[0] = math.sqrt(self.dim)
        return x

    def loss_and_gradient(self, x: Vector, rows: Rows, draw: Generator | None) -> tuple[float, Vector]:
        τ, β, shift = self._mean(rows)
        Ax = (2 * τ + shift) * x
        Ax[1:] -= τ * x[:-1]
        Ax[:-1] -= τ * x[1:]
        value = 0.5 * float(np.sum(x * Ax)) - β * float(x[0])
        Ax[0] -= β
        if draw is not None and self.noise:
            Ax += self.noise / math.sqrt(self.dim) * draw.standard_normal(self.dim)
        return value, Ax

    def smoothness(self, rows: Rows, largest: float) -> float:
        τ, _, shift = self._mean(rows)
        return max(abs(τ * t + shift) for t in self._extreme_eigenvalues)

    def variation(self, shards: Sequence[Rows]) -> float:
        weights = np.array([len(rows) for rows in shards], dtype=float)
        weights /= weights.mean()
        each = [self._mean(rows) for rows in shards]
        at = [[τ * t + shift for τ, _, shift in each] for t in self._extreme_eigenvalues]  # all A_i have T's eigenvectors
        return math.sqrt(max(float(np.var(weights * eigenvalues)) for eigenvalues in at))

    def minimise(self, rows: Rows, mu: float) -> Vector:
        τ, β, shift = self._mean(rows)
        bands = np.zeros((2, self.dim))
        bands[0, 1:], bands[1] = -τ, 2 * τ + shift + mu
        b = np.zeros(self.dim)
        b[0] = β
        return scipy.linalg.solveh_banded(bands, b)

    @property
    def _extreme_eigenvalues(self) -> tuple[float, float]:
        """λmin(T) and λmax(T)."""
        cosine = math.cos(math.pi / (self.dim + 1))
        return 2 - 2 * cosine, 2 + 2 * cosine

    def _mean(self, rows: Rows) -> tuple[float, float, float]:
        """The mean A as τ T + shift I, and the mean b as β e₁."""
        a = rows.dense()
        τ, β = float(a[:, 0].mean()), float(a[:, 1].mean())
        return τ, β, self.convexity - float(a[0, 2]) * self._extreme_eigenvalues[0]
