"""Robust means: what a master takes in place of the mean where some workers may be byzantine."""

from mpi_compress.core.registry import import_all
from mpi_compress.messages.robust.base import RobustMean, robust_means

register = robust_means.register
import_all(__name__)

__all__ = ["RobustMean", "register", "robust_means"]
