"""Neural networks as models, in JAX: `pip install 'mpi-compress[deep]'`."""

from mpi_compress.core.registry import import_all

import_all(__name__)
