"""The names of the package as a type checker sees them; `__init__.py` imports each of them when it is first used."""

from typing import Any

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
from mpi_compress.messages.kinds import Compressed, Dense, Drawn, Hybrid, Lattice, Levels, SignSparse, Sparse, Ternary, WithScalar
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

# a package of parts is, to its user, the registry of these parts
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
