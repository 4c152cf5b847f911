"""Partitions: the order in which samples are dealt to workers."""

from mpi_compress.core.registry import import_all
from mpi_compress.problem.partitions.base import Partition, partitions

register = partitions.register
import_all(__name__)

__all__ = ["Partition", "partitions", "register"]
