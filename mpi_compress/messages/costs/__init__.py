"""Cost models: the cost of one message as a function of its payload in bits (CAT, 'Communication Cost')."""

# ruff: noqa: F401
from mpi_compress.messages.costs.base import CostModel, at_moment, costs

costs.found_in(__name__)
