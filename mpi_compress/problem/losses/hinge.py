from mpi_compress.kernels.losses import HINGE
from mpi_compress.problem.losses.base import Loss, losses


@losses.register("hinge")
class Hinge(Loss):
    """The hinge loss of a support vector machine, which has a corner at y m = 1."""

    formula = "max(1 − y m, 0)"
    kernel = HINGE
    solver = "hinge-dual"
