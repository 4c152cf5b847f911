"""Partitions: which rows each worker has."""

# ruff: noqa: F401
from mpi_compress.problem.partitions.base import Partition, partitions, sizes_of
from mpi_compress.problem.partitions.split import Split, refuse_idle_workers

partitions.found_in(__name__)
