"""Cost models: the cost of one message as a function of its payload in bits (CAT, 'Communication Cost')."""

from mpi_compress.core.registry import import_all
from mpi_compress.messages.costs.base import CostModel, at_moment, costs

import_all(__name__, costs)

__all__ = ["CostModel", "at_moment", "costs"]
