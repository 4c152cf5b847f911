from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mpi_compress.compressed import Vector
from mpi_compress.datasets.generators import Generator, generators


@generators.register("gspar")
@dataclass(frozen=True)
class GSparLogistic(Generator):
    """GSpar's synthetic logistic set (Wangni, Wang, Liu, Zhang 2018, §5.1).

    ā_n ~ N(0, I);  B̄ ~ U[0, 1]^d once, B̄_i ← C1·B̄_i where B̄_i ≤ C2;  a_n = ā_n ⊙ B̄;  w̄ ~ N(0, I);  y_n = sign(ā_n·w̄),
    or of a_n·w̄ with `labels_from = "scaled"`, which the paper leaves open.
    """

    paper = "GSpar §5.1"
    samples: int = 1024
    dim: int = 2048
    c1: float = 0.9
    c2: float = 0.25
    labels_from: Literal["unscaled", "scaled"] = "unscaled"

    def __post_init__(self) -> None:
        if self.samples < 2 or self.dim < 1:
            raise ValueError(f"samples = {self.samples} must be at least 2 and dim = {self.dim} at least 1")

    def make(self) -> tuple[Any, Vector]:
        rng = np.random.default_rng(self.seed)
        normal = rng.standard_normal((self.samples, self.dim))
        scale = rng.random(self.dim)
        scale[scale <= self.c2] *= self.c1
        w = rng.standard_normal(self.dim)
        scaled = normal * scale
        margins = (normal if self.labels_from == "unscaled" else scaled) @ w
        return scaled, np.where(margins >= 0, 1.0, -1.0)
