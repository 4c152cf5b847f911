"""Losses of one sample: ℓ(y, m) for a label y and a margin m = a·x."""

from mpi_compress.core.registry import import_all
from mpi_compress.problem.losses.base import Loss, losses

import_all(__name__, losses)

__all__ = ["Loss", "losses"]
