from mpi_compress.kernels.losses import SQUARED_SIGMOID
from mpi_compress.problem.losses.base import Loss, losses


@losses.register("squared-sigmoid")
class SquaredSigmoid(Loss):
    """The nonconvex classification loss of the DASHA paper (Tyurin and Richtárik 2023), of labels ±1."""

    formula = "(1 − σ(y m))²,  σ(z) = 1 / (1 + exp(−z))"
    kernel = SQUARED_SIGMOID
    convex = False
    curvature = 0.15405857012134950  # max of 2 s² (1 − s) (2 − 3 s) over s in [0, 1]; the least is −0.1202
