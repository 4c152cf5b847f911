"""Estimators: what workers send, and what the mean of it means."""

from mpi_compress.core.registry import import_all

import_all(__name__)
