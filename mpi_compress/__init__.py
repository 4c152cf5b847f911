"""Communication-efficient distributed optimisation over MPI, with every bit really sent."""

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # one thread a rank, set before NumPy is imported: more would change bits

_FORMER = {"compressed": "messages.kinds", "link": "messages.link", "steps": "algorithms.steps", "streams": "core.streams",
           "testing": "guard.testing"}  # fmt: skip
"""Modules under other names: those that they had before, which users' parts may still import, and `mc.testing`."""
_MODULES = {
    name: module
    for module, names in {
        "algorithms": "algorithms Algorithm Estimator Setting",
        "algorithms.contract": "AnswersEach",
        "algorithms.sampling": "Batches",
        "algorithms.steps": "Step step_at",
        "algorithms.tuning.sizes": "best_size",
        "core.errors": "CorruptMessage UserError",
        "core.expressions": "Expression",
        "core.signals": "Stopped",
        "core.streams": "Round",
        "engine.runner": "run",
        "engine.verifying": "verify",
        "figures.plotting": "plot",
        "job.loading": "Job load_job",
        "job.stops": "stops StopRule",
        "messages.codecs": "codecs Codec",
        "messages.coders": "Coder coder measure",
        "messages.compressors": "compressors Compressor",
        "messages.compressors.base": "AmongWorkers Sized",
        "messages.costs": "costs CostModel",
        "messages.kinds": "kinds Compressed Dense Drawn Hybrid Lattice Levels SignSparse Sparse Ternary WithScalar",
        "messages.link": "SILENT Link Message",
        "messages.several": "PairLink",
        "preparing.alone": "with_suboptimality",
        "problem.datasets.formats": "formats Format Reading",
        "problem.datasets": "datasets generators Generator",
        "problem.datasets.data": "data",
        "problem.losses": "losses Loss",
        "problem.metrics": "metrics Metric ProblemView",
        "problem.models": "models Model Outline",
        "problem.models.deep.network": "Network",
        "problem.objective": "Objective",
        "problem.partitions": "partitions Partition",
        "problem.penalties": "penalties Penalty",
        "problem.rows": "Rows",
        "problem.scaled_vector": "ScaledVector",
        "results.reader": "Run read",
        "results.tidy": "load",
    }.items()
    for name in names.split()
}
"""The module that a name stands for, or that defines it; it is imported when the name is first used. Type checkers read
`__init__.pyi`."""


__all__ = sorted(["__version__", *_MODULES, "problem", "testing"])


class _Former(ModuleType):
    """A module under another name."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(f"mpi_compress.{_FORMER[self.__name__.rpartition('.')[2]]}"), name)


class _Problem(ModuleType):
    """The package of problems, which users call: `mc.problem(job)`."""

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        return import_module("mpi_compress.preparing.alone").problem(*arguments, **settings)


import_module("mpi_compress.problem").__class__ = _Problem

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
