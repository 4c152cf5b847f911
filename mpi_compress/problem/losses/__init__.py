"""Losses of one sample: ℓ(y, m) for a label y and a margin m = a·x."""

from mpi_compress.problem.losses.base import Loss, losses

losses.found_in(__name__)

__all__ = ["Loss", "losses"]
