"""Models: whatever has a flat x and a loss of a row, beside losses of a margin."""

from mpi_compress.core.registry import import_all
from mpi_compress.problem.models.base import Model, Outline, dim_of, models

import_all(__name__, models)

__all__ = ["Model", "Outline", "dim_of", "models"]
