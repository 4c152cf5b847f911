"""The names of `mpi_compress`, and the modules that define them: what type checkers read, and what is imported on first use."""

from typing import Any

from mpi_compress.algorithms import Algorithm as Algorithm
from mpi_compress.algorithms import Estimator as Estimator
from mpi_compress.algorithms import Setting as Setting
from mpi_compress.algorithms import needs
from mpi_compress.algorithms.contract import AnswersEach as AnswersEach
from mpi_compress.algorithms.log import Log as Log
from mpi_compress.algorithms.sampling import Batches as Batches
from mpi_compress.algorithms.steps import Step as Step
from mpi_compress.algorithms.steps import step_at as step_at
from mpi_compress.algorithms.theorem import Theorem as Theorem
from mpi_compress.algorithms.tuning.sizes import best_size as best_size
from mpi_compress.core.errors import CorruptMessage as CorruptMessage
from mpi_compress.core.errors import UserError as UserError
from mpi_compress.core.expressions import Expression as Expression
from mpi_compress.core.registry import Registry
from mpi_compress.core.signals import Stopped as Stopped
from mpi_compress.core.streams import Round as Round
from mpi_compress.engine.runner import run as run
from mpi_compress.engine.verifying import verify as verify
from mpi_compress.figures.plotting import plot as plot
from mpi_compress.guard import testing as testing
from mpi_compress.job.loading import Job as Job
from mpi_compress.job.loading import load_job as load_job
from mpi_compress.job.stops import StopRule as StopRule
from mpi_compress.job.stops import stops as stops
from mpi_compress.messages import fields as fields
from mpi_compress.messages import kinds as kinds
from mpi_compress.messages.batch import SILENT as SILENT
from mpi_compress.messages.batch import Message as Message
from mpi_compress.messages.codecs import Codec as Codec
from mpi_compress.messages.codecs import codecs as codecs
from mpi_compress.messages.coders import Coder as Coder
from mpi_compress.messages.coders import coder as coder
from mpi_compress.messages.compressors import Compressor as Compressor
from mpi_compress.messages.compressors import compressors as compressors
from mpi_compress.messages.compressors.base import AmongWorkers as AmongWorkers
from mpi_compress.messages.compressors.base import Sized as Sized
from mpi_compress.messages.costs import CostModel as CostModel
from mpi_compress.messages.costs import costs as costs
from mpi_compress.messages.kinds import (
    Compressed as Compressed,
)
from mpi_compress.messages.kinds import (
    Dense as Dense,
)
from mpi_compress.messages.kinds import (
    Drawn as Drawn,
)
from mpi_compress.messages.kinds import (
    Hybrid as Hybrid,
)
from mpi_compress.messages.kinds import (
    Lattice as Lattice,
)
from mpi_compress.messages.kinds import (
    Levels as Levels,
)
from mpi_compress.messages.kinds import (
    SignSparse as SignSparse,
)
from mpi_compress.messages.kinds import (
    Sparse as Sparse,
)
from mpi_compress.messages.kinds import (
    Ternary as Ternary,
)
from mpi_compress.messages.kinds import (
    WithScalar as WithScalar,
)
from mpi_compress.messages.link import Link as Link
from mpi_compress.messages.measuring import measure as measure
from mpi_compress.messages.several import PairLink as PairLink
from mpi_compress.preparing.alone import problem as problem
from mpi_compress.preparing.alone import with_suboptimality as with_suboptimality
from mpi_compress.problem.datasets import Generator as Generator
from mpi_compress.problem.datasets import data as data
from mpi_compress.problem.datasets import generators as generators
from mpi_compress.problem.datasets.formats import Format as Format
from mpi_compress.problem.datasets.formats import Reading as Reading
from mpi_compress.problem.datasets.formats import formats as formats
from mpi_compress.problem.losses import Loss as Loss
from mpi_compress.problem.losses import losses as losses
from mpi_compress.problem.metrics import Metric as Metric
from mpi_compress.problem.metrics import ProblemView as ProblemView
from mpi_compress.problem.metrics import metrics as metrics
from mpi_compress.problem.models import Model as Model
from mpi_compress.problem.models import Outline as Outline
from mpi_compress.problem.models import models as models
from mpi_compress.problem.models.deep.network import Network as Network
from mpi_compress.problem.objective import Objective as Objective
from mpi_compress.problem.partitions import Partition as Partition
from mpi_compress.problem.partitions import partitions as partitions
from mpi_compress.problem.penalties import Penalty as Penalty
from mpi_compress.problem.penalties import penalties as penalties
from mpi_compress.problem.rows import Rows as Rows
from mpi_compress.problem.scaled_vector import ScaledVector as ScaledVector
from mpi_compress.results.reader import Run as Run
from mpi_compress.results.reader import read as read
from mpi_compress.results.tidy import load as load

class _Algorithms(Registry[Any]):
    needs = needs

algorithms: _Algorithms
datasets = generators
__version__: str
