"""Kinds of compressed vectors: what a compressor makes of a vector, and what a receiver decodes.

Each module of this folder says in `__all__` what is to be had from here.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what the loop below does, for type checkers
    from mpi_compress.messages.kinds.base import *
    from mpi_compress.messages.kinds.composed import *
    from mpi_compress.messages.kinds.coordinates import *
    from mpi_compress.messages.kinds.grids import *
    from mpi_compress.messages.kinds.powers import *
    from mpi_compress.messages.kinds.sketch import *
    from mpi_compress.messages.kinds.symmetric import *

for _info in iter_modules(__path__, f"{__name__}."):
    _module = import_module(_info.name)
    globals().update({_name: getattr(_module, _name) for _name in _module.__all__})
