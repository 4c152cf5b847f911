"""The words of a method's file: the contract of its part, and what its verbs take and return."""

from mpi_compress.algorithms.contract import Algorithm, First, PartialMean, Setting, algorithms
from mpi_compress.algorithms.log import Log
from mpi_compress.algorithms.parts import Direction, Downlink, Moved, Node, dense, downlinks
from mpi_compress.algorithms.product import Estimator, MinibatchParameters, UsualParameters
from mpi_compress.algorithms.sampling import Sampling
from mpi_compress.algorithms.steps import Step
from mpi_compress.core.expressions import Expression
from mpi_compress.core.streams import Round, Rounds
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Batch, Link, Message
from mpi_compress.problem.objective import Objective, Shards

__all__ = [
    "Algorithm",
    "Batch",
    "Compressed",
    "Direction",
    "Downlink",
    "Estimator",
    "Expression",
    "First",
    "Link",
    "Log",
    "Message",
    "MinibatchParameters",
    "Moved",
    "Node",
    "Objective",
    "PartialMean",
    "Round",
    "Rounds",
    "Sampling",
    "Setting",
    "Shards",
    "Step",
    "UsualParameters",
    "Vector",
    "algorithms",
    "dense",
    "downlinks",
]  # fmt: skip
