import math
from collections.abc import Mapping

import numpy as np

from mpi_compress.core.fields import AtLeastOne
from mpi_compress.kernels import factors as kernels
from mpi_compress.problem.models.base import Generator, Model, Rows, Shapes, Vector, models
from mpi_compress.problem.rows import Integers


@models.register("matrix-factorisation")
class MatrixFactorisation(Model):
    """Half of the squared error of ratings y ≈ ⟨F_i, F_j⟩, + b_i + b_j with `bias`: Koren, Bell, Volinsky (2009).

    A row of the data is a rating: its label is y, and its two nonzero features are the user i and the item j. Features count
    users first and items after them, so F (features, rank) holds the factors of both. The product is scaled by the features'
    values, which are 1 in most files.
    """

    labels = "number"
    rank: AtLeastOne = 8  # number of factors of each user and each item
    bias: bool = False  # true: with a bias b_i of each user and b_j of each item

    @property
    def blocks(self) -> Shapes:
        features = self.outline.features
        return {"F": (features, self.rank), "b": (features if self.bias else 0,)}

    def start(self, rng: Generator) -> Vector:
        x = np.zeros(self.dim)
        self.split(x)["F"][:] = rng.standard_normal(self.blocks["F"]) / math.sqrt(self.rank)
        return x

    def loss_and_gradient(self, x: Vector, rows: Rows, draw: Generator | None) -> tuple[float, Vector]:
        pairs, scales = rows.pairs(self.name)
        blocks, gradient = self.split(x), np.zeros(x.size)
        errors = _predictions(pairs, scales, blocks) - rows.labels
        kernels.add_gradient(pairs, scales, errors / len(rows), blocks["F"], *self.split(gradient).values())
        return 0.5 * float(np.mean(np.square(errors))), gradient

    def scores(self, x: Vector, rows: Rows) -> Vector:
        return _predictions(*rows.pairs(self.name), self.split(x))


def _predictions(pairs: Integers, scales: Vector, blocks: Mapping[str, Vector]) -> Vector:
    out = np.empty(len(pairs))
    kernels.predictions(pairs, scales, blocks["F"], blocks["b"], out)
    return out
