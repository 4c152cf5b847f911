"""The contract of a model: a loss of rows in a flat x, a pure function of its arguments."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from mpi_compress.core import arrays
from mpi_compress.core.errors import UserError
from mpi_compress.core.registry import Registry
from mpi_compress.core.returned import returns
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.datasets.labels import Labels
from mpi_compress.problem.mean_loss import MeanLoss, Shapes, places
from mpi_compress.problem.rows import Rows


def _loss_and_gradient(given: Any, x: Vector) -> tuple[float, Vector]:
    value, gradient = arrays.pair(given, f"the mean loss and its gradient ({x.size},)")
    loss, g = arrays.number(value, "the loss"), arrays.floats(gradient, x.shape, "coordinates of the gradient")
    if np.isfinite(x).all() and (math.isnan(loss) or not (np.isfinite(g).all() or math.isinf(loss))):
        j = int(np.argmin(np.isfinite(g)))
        raise ValueError(f"the loss is {loss:g}, and the gradient {g[j]} at coordinate {j}, where x is finite")
    return loss, g


class Model(MeanLoss, ABC):
    """A model; its fields are its parameters. x holds the blocks one after the other, in their order."""

    what = "model"
    of_margin = False
    labels: ClassVar[Labels] = "class"
    convex = False

    @property
    @abstractmethod
    def blocks(self) -> Shapes:
        """Names and shapes of the parts of x, in order."""

    def split(self, x: Vector) -> dict[str, Vector]:
        """The blocks of x (d,), as views of their shapes."""
        blocks = self.blocks
        return {name: x[place].reshape(blocks[name]) for name, place in places(blocks).items()}

    @abstractmethod
    @returns(lambda model, given, x, *_: _loss_and_gradient(given, x))
    def loss_and_gradient(self, x: Vector, rows: Rows, draw: Generator | None) -> tuple[float, Vector]:
        """The mean loss of rows at x (d,), and its gradient (d,).

        Args:
            draw: random numbers of this worker and round, equal in all calls of the round; None where f itself is wanted.
        """

    def mean_loss(self, x: Vector, rows: Rows) -> float:
        """The mean loss of rows at x (d,), of a test set for example; a model that can leave out the gradient says so here."""
        return self.loss_and_gradient(x, rows, None)[0]

    def scores(self, x: Vector, rows: Rows) -> Vector | None:
        """The score of every class (N, classes) of rows, for test_accuracy, or the predicted number (N,); None: there are none."""
        return None

    def smoothness(self, rows: Rows, largest: float) -> float:
        """The smoothness of the mean loss of rows; NaN where it is not known.

        Args:
            largest: λmax(AᵀA) of these rows; NaN unless `curvature` is stated.
        """
        return self.curvature * largest / len(rows) if math.isfinite(self.curvature) else math.nan

    def variation(self, shards: Sequence[Rows]) -> float:
        """L_± of workers with these rows: L_±² is the supremum of (mean‖∇f_i(x) − ∇f_i(y)‖² − ‖∇f(x) − ∇f(y)‖²) / ‖x − y‖²
        (Szlendak et al. 2022, Assumption 4); NaN where it is not known."""
        return math.nan

    @returns(lambda model, given, x, *_: arrays.finite_where(x, given, "coordinate"))
    def hessian_product(self, x: Vector, rows: Rows, v: Vector) -> Vector:
        """∇²(mean loss) · v (d,), a new array, for the solver newton."""
        raise UserError(f"'{self.name}' defines no hessian_product, which its solver asks for")

    def hessian_at(self, x: Vector, rows: Rows) -> Callable[[Vector], Vector]:
        """v ↦ `hessian_product(x, rows, v)`; a model that can keep something from one product to the next says so here."""
        return lambda v: self.hessian_product(x, rows, v)

    @returns(lambda model, given, *_: arrays.floats(given, (model.dim,), "coordinates of x*"))
    def minimise(self, rows: Rows, mu: float) -> Vector:
        """x* (d,) of the mean loss of rows + (µ/2)‖x‖², for the solver exact."""
        raise UserError(f"'{self.name}' defines no minimise, which its solver asks for")



models: Registry[Any] = Registry("model", Model)
