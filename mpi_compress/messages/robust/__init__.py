"""Robust means: what a master takes in place of the mean where some workers may be byzantine."""

from mpi_compress.core.registry import import_all
from mpi_compress.messages.robust.base import RobustMean, robust_means

import_all(__name__, robust_means)

__all__ = ["RobustMean", "robust_means"]
