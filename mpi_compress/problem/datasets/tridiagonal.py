from dataclasses import dataclass

import numpy as np

from mpi_compress.problem.datasets.generators import Chunk, Generator, generators


@generators.register("tridiagonal")
@dataclass(frozen=True)
class Tridiagonal(Generator):
    """The quadratics of Szlendak, Tyurin and Richtárik (2022), §D.2, for model = "quadratic": a row is one quadratic.

    ξ, ξ' ~ N(0, 1) for each row;  ν = 1 + hξ;  its features are ν/4, (ν/4)(−1 + hξ') and the mean of all ν/4. With as many rows as
    workers each worker has a quadratic of its own.
    """

    paper = "Szlendak et al. 2022, §D.2"
    real_labels = True
    samples: int = 10  # N, the number of quadratics; as many as workers give each worker one
    heterogeneity: float = 1.0  # h, how far quadratics differ; 0: all are alike

    def __post_init__(self) -> None:
        if self.samples < 1 or not self.heterogeneity >= 0:
            raise ValueError(f"samples = {self.samples} must be at least 1 and heterogeneity = {self.heterogeneity} 0 or more")

    def make(self) -> Chunk:
        ξ = self.stream(0).standard_normal((self.samples, 2))
        quarters = (1.0 + self.heterogeneity * ξ[:, 0]) / 4.0
        rows = np.stack([quarters, quarters * (self.heterogeneity * ξ[:, 1] - 1.0), np.full(self.samples, quarters.mean())], axis=1)
        return rows, np.zeros(self.samples)

    def size(self) -> tuple[int, int, float]:
        return self.samples, 3, 3.0 * self.samples
