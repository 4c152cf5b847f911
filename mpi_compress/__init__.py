"""Communication-efficient distributed optimisation over MPI, with every bit really sent."""

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # one thread a rank, set before NumPy is imported: more would change bits

if TYPE_CHECKING:  # a package of parts is, to its user, the registry of these parts
    from mpi_compress.algorithms import Algorithm, Estimator, Setting, needs
    from mpi_compress.algorithms.contract import AnswersEach
    from mpi_compress.algorithms.sampling import Batches
    from mpi_compress.algorithms.steps import Step, step_at
    from mpi_compress.algorithms.tuning.sizes import best_size
    from mpi_compress.core.errors import CorruptMessage, UserError
    from mpi_compress.core.expressions import Expression
    from mpi_compress.core.registry import Registry
    from mpi_compress.core.signals import Stopped
    from mpi_compress.core.streams import Round
    from mpi_compress.engine.runner import run
    from mpi_compress.engine.verifying import verify
    from mpi_compress.figures.plotting import plot
    from mpi_compress.guard import testing
    from mpi_compress.job.loading import Job, load_job
    from mpi_compress.job.stops import StopRule, stops
    from mpi_compress.messages import kinds
    from mpi_compress.messages.codecs import Codec, codecs
    from mpi_compress.messages.coders import Coder, coder, measure
    from mpi_compress.messages.compressors import Compressor, compressors
    from mpi_compress.messages.compressors.base import AmongWorkers, Sized
    from mpi_compress.messages.costs import CostModel, costs
    from mpi_compress.messages.kinds import (
        Compressed,
        Dense,
        Drawn,
        Hybrid,
        Lattice,
        Levels,
        SignSparse,
        Sparse,
        Ternary,
        WithScalar,
    )
    from mpi_compress.messages.link import SILENT, Link, Message
    from mpi_compress.messages.several import PairLink
    from mpi_compress.preparing.alone import problem, with_suboptimality
    from mpi_compress.problem.datasets import Generator, data
    from mpi_compress.problem.datasets import generators as datasets
    from mpi_compress.problem.datasets.formats import Format, Reading, formats
    from mpi_compress.problem.losses import Loss, losses
    from mpi_compress.problem.metrics import Metric, ProblemView, metrics
    from mpi_compress.problem.models import Model, Outline, models
    from mpi_compress.problem.models.deep.network import Network
    from mpi_compress.problem.objective import Objective
    from mpi_compress.problem.partitions import Partition, partitions
    from mpi_compress.problem.penalties import Penalty, penalties
    from mpi_compress.problem.rows import Rows
    from mpi_compress.problem.scaled_vector import ScaledVector
    from mpi_compress.results.reader import Run, read
    from mpi_compress.results.tidy import load

    class _Algorithms(Registry[Any]):
        needs = needs

    generators = datasets
    algorithms: _Algorithms
    __version__: str

__all__ = [
    "SILENT", "Algorithm", "AmongWorkers", "AnswersEach", "Batches", "Codec", "Coder", "Compressed", "Compressor",
    "CorruptMessage", "CostModel", "Dense", "Drawn", "Estimator", "Expression", "Format", "Generator", "Hybrid", "Job",
    "Lattice", "Levels", "Link", "Loss", "Message", "Metric", "Model", "Network", "Objective", "Outline", "PairLink",
    "Partition", "Penalty", "ProblemView", "Reading", "Round", "Rows", "Run", "ScaledVector", "Setting", "SignSparse",
    "Sized", "Sparse", "Step", "StopRule", "Stopped", "Ternary", "UserError", "WithScalar", "__version__", "algorithms",
    "best_size", "codecs", "coder", "compressors", "costs", "data", "datasets", "formats", "generators", "kinds", "load",
    "load_job", "losses", "measure", "metrics", "models", "partitions", "penalties", "plot", "problem", "read", "run",
    "step_at", "stops", "testing", "verify", "with_suboptimality",
]  # fmt: skip

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
"""The module that a name stands for, or that defines it; it is imported when the name is first used."""


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


if not TYPE_CHECKING:  # or a checker would take any name for one of these

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
