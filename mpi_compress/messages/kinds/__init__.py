"""Kinds of compressed vectors: what a compressor makes of a vector, and what a receiver decodes.

Each module of this folder says in `__all__` what is to be had from here.
"""

from mpi_compress.messages.kinds.base import *
from mpi_compress.messages.kinds.composed import *
from mpi_compress.messages.kinds.coordinates import *
from mpi_compress.messages.kinds.grids import *
from mpi_compress.messages.kinds.low_dimensional import *
from mpi_compress.messages.kinds.powers import *
