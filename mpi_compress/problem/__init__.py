"""Problems: losses, data sets, the objective of a shard, and its minimiser. Its user calls this room: `mc.problem(job)`."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        """`preparing.alone.problem`."""
        return import_module("mpi_compress.preparing.alone").problem(*arguments, **settings)


sys.modules[__name__].__class__ = _Room
