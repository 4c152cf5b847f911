"""Algorithms: workers send, the master answers, everyone hears."""

from mpi_compress.algorithms.contract import Algorithm, Method, Setting, algorithms
from mpi_compress.algorithms.parts import Downlink, Server, downlinks, servers
from mpi_compress.algorithms.product import Estimator
from mpi_compress.core.registry import import_all

import_all(__name__, algorithms)

__all__ = ["Algorithm", "Downlink", "Estimator", "Method", "Server", "Setting", "algorithms", "downlinks", "servers"]
