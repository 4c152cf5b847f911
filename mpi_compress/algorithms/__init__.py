"""Algorithms: workers send, the master answers, everyone hears."""

from mpi_compress.algorithms.contract import Algorithm, Method, Setting, algorithms
from mpi_compress.algorithms.parts import Downlink, Server, downlinks, servers
from mpi_compress.algorithms.product import Estimator

algorithms.found_in(__name__)
servers.found_in("mpi_compress.algorithms.servers")
downlinks.found_in("mpi_compress.algorithms.downlinks")

__all__ = ["Algorithm", "Downlink", "Estimator", "Method", "Server", "Setting", "algorithms", "downlinks", "servers"]
