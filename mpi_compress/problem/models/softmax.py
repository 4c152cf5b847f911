from collections.abc import Callable

import numpy as np

from mpi_compress.kernels import softmax as kernels
from mpi_compress.problem.models.base import Generator, Model, Rows, Shapes, Vector, models

_KEPT = 2**25  # probabilities of rows, 256 MiB


@models.register("softmax")
class Softmax(Model):
    """Multinomial logistic regression: −log softmax(a X + b)[y], X (features, classes), b where `bias` asks for it."""

    curvature = 0.5  # Böhning (1992): the Hessian of log Σ exp is at most I/2
    convex = True
    solver = "newton"
    bias: bool = False  # true: with a bias b of each class

    def check(self) -> None:
        if self.outline.classes < 2:
            raise ValueError(f"softmax needs at least two classes; the labels have {self.outline.classes}")

    @property
    def blocks(self) -> Shapes:
        features, classes = self.outline.features, self.outline.classes
        return {"X": (features, classes), "b": (classes if self.bias else 0,)}

    def loss_and_gradient(self, x: Vector, rows: Rows, draw: Generator | None) -> tuple[float, Vector]:
        gradient = np.zeros(x.size)
        blocks = (*self.split(x).values(), *self.split(gradient).values())
        total = kernels.loss_and_gradient(rows.matrix, rows.labels, *blocks)
        gradient /= len(rows)
        return total / len(rows), gradient

    def hessian_product(self, x: Vector, rows: Rows, v: Vector) -> Vector:
        return self.hessian_at(x, rows)(v)

    def hessian_at(self, x: Vector, rows: Rows) -> Callable[[Vector], Vector]:
        """v ↦ `hessian_product(x, rows, v)`; the probabilities of all rows are kept, unless they are very many."""
        most = max(1, _KEPT // self.outline.classes)
        parts = [rows.cut(start, min(start + most, len(rows))) for start in range(0, len(rows), most)]
        kept = self._probabilities(x, rows) if len(parts) == 1 else None

        def product(v: Vector) -> Vector:
            out = np.zeros(x.size)
            blocks = (*self.split(v).values(), *self.split(out).values())
            for part in parts:
                kernels.hessian_product(part.matrix, self._probabilities(x, part) if kept is None else kept, *blocks)
            return out / len(rows)

        return product

    def _probabilities(self, x: Vector, rows: Rows) -> Vector:
        """softmax(a X + b) (N, classes) of every row."""
        out = self.scores(x, rows)
        kernels.normalise(out)
        return out

    def smoothness(self, rows: Rows, largest: float) -> float:
        return super().smoothness(rows, largest) + self.curvature * self.bias  # b is a feature that is 1 everywhere

    def scores(self, x: Vector, rows: Rows) -> Vector:
        out, blocks = np.empty((len(rows), self.outline.classes)), self.split(x)
        kernels.scores(rows.matrix, blocks["X"], blocks["b"], out)
        return out
