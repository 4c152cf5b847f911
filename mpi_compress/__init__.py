"""Communication-efficient distributed optimisation over MPI, with every bit really sent."""

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # one thread a rank, set before NumPy is imported: more would change bits

if TYPE_CHECKING:
    from mpi_compress import algorithms
    from mpi_compress.algorithms import Algorithm
    from mpi_compress.core.errors import CorruptMessage, UserError
    from mpi_compress.core.streams import Round
    from mpi_compress.engine.runner import run
    from mpi_compress.figures.plotting import plot
    from mpi_compress.job.loading import Job, load_job
    from mpi_compress.messages import codecs, compressors, costs
    from mpi_compress.messages.codecs import Codec
    from mpi_compress.messages.compressors import Compressor
    from mpi_compress.messages.costs import CostModel
    from mpi_compress.messages.kinds import Compressed, Dense, Sparse
    from mpi_compress.problem import datasets, partitions
    from mpi_compress.problem.datasets import Generator
    from mpi_compress.problem.partitions import Partition
    from mpi_compress.results.reader import Run, read

    __version__: str

__all__ = [
    "Algorithm", "Codec", "Compressed", "Compressor", "CorruptMessage", "CostModel", "Dense", "Generator", "Job", "Partition",
    "Round", "Run", "Sparse", "UserError", "__version__", "algorithms", "codecs", "compressors", "costs", "datasets", "load_job",
    "partitions", "plot", "read", "run",
]  # fmt: skip

_FORMER = {"compressed": "messages.kinds", "link": "messages.link", "steps": "algorithms.steps", "streams": "core.streams"}
"""Modules that users' parts import by the names that they had before."""
_MODULES = {
    "algorithms": "algorithms", "codecs": "messages.codecs", "compressors": "messages.compressors", "costs": "messages.costs",
    "datasets": "problem.datasets", "partitions": "problem.partitions",
    "Algorithm": "algorithms", "Codec": "messages.codecs", "Compressed": "messages.kinds", "Compressor": "messages.compressors",
    "CorruptMessage": "core.errors", "CostModel": "messages.costs", "Dense": "messages.kinds", "Generator": "problem.datasets",
    "Partition": "problem.partitions",
    "Job": "job.loading", "Round": "core.streams", "Run": "results.reader", "Sparse": "messages.kinds", "UserError": "core.errors",
    "load_job": "job.loading", "plot": "figures.plotting", "read": "results.reader", "run": "engine.runner",
}  # fmt: skip
"""The module that a name stands for, or that defines it; it is imported when the name is first used."""


class _Former(ModuleType):
    """A module under its former name."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(f"mpi_compress.{_FORMER[self.__name__.rpartition('.')[2]]}"), name)


for _name in _FORMER:
    sys.modules[f"mpi_compress.{_name}"] = globals()[_name] = _Former(f"mpi_compress.{_name}")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        module = import_module(f"mpi_compress.{_MODULES[name]}")
        value: Any = module if module.__name__.endswith(f".{name}") else getattr(module, name)
    elif name == "__version__":
        from importlib.metadata import version

        value = version("mpi-compress")
    else:
        raise AttributeError(f"module 'mpi_compress' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
