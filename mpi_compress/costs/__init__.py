"""Cost models: what sending one message of so many payload bits costs (CAT, 'Communication Cost'). One file, one model."""

from mpi_compress.costs.base import CostModel, costs
from mpi_compress.registry import import_all

register = costs.register
import_all(__name__)

__all__ = ["CostModel", "costs", "register"]
