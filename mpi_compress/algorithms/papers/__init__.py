"""Papers whose methods are no products: one file each."""

from mpi_compress.core.registry import import_all

import_all(__name__)
