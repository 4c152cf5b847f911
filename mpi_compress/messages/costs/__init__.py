"""Cost models: the cost of one message as a function of its payload in bits (CAT, 'Communication Cost')."""

from mpi_compress.messages.costs.base import CostModel, at_moment, costs

costs.found_in(__name__)

__all__ = ["CostModel", "at_moment", "costs"]
