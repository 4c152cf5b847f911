"""Losses of one sample: ℓ(y, m) for a label y and a margin m = a·x."""

# ruff: noqa: F401
from mpi_compress.problem.losses.base import Loss, losses

losses.found_in(__name__)
