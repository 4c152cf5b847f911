from mpi_compress.kernels.losses import SMOOTH_HINGE
from mpi_compress.problem.losses.base import Loss, losses


@losses.register("smooth-hinge")
class SmoothHinge(Loss):
    """The hinge loss with its corner made smooth: Rennie and Srebro (2005)."""

    formula = "½ − y m where y m ≤ 0, ½ (1 − y m)² up to 1, then 0"
    kernel = SMOOTH_HINGE
    curvature = 1.0
    solver = "newton"
