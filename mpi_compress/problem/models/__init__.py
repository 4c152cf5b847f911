"""Models: whatever has a flat x and a loss of a row, beside losses of a margin."""

# ruff: noqa: F401
from mpi_compress.problem.mean_loss import Outline
from mpi_compress.problem.models.base import Model, models

models.found_in(__name__)
