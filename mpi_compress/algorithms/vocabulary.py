"""The words of a method's file: the contract of its part, what its verbs take and return, needs, and theorems."""

# ruff: noqa: F401
from mpi_compress.algorithms.contract import Algorithm, Average, First, Method, PartialMean, Setting, algorithms, starts_whole
from mpi_compress.algorithms.error_memory import ERRORS, ErrorMemory, Residual, level_of, packed, residual_of
from mpi_compress.algorithms.lemma import Lemma
from mpi_compress.algorithms.log import Log
from mpi_compress.algorithms.memories import notes, starts_at_0
from mpi_compress.algorithms.needs import (
    ADDS_UP,
    EXACT_DOWN,
    HEARS_MEAN,
    HOMOGENEOUS_UP,
    LAST_ITERATE,
    LINEAR,
    LOSS_ALONE,
    NO_GRADIENT,
    ONE_STEP_SIZE,
    OPTIMUM,
    ROUNDED_DOWN,
    SMOOTH,
    STATELESS_DOWN,
    STRONGLY_CONVEX,
    UNBIASED_DOWN,
    UNBIASED_UP,
    WHOLE_GRADIENTS,
    Need,
    check_need,
    exact_up,
    is_exact,
)
from mpi_compress.algorithms.parts import (
    Direction,
    Downlink,
    Node,
    Point,
    Server,
    ServerState,
    add,
    dense,
    downlinks,
    servers,
    summed,
)
from mpi_compress.algorithms.product import Estimator, MinibatchParameters, Sum, UsualParameters
from mpi_compress.algorithms.sampling import Sampling, participants, rounds_of_epoch, sampled_delta, sampled_omega
from mpi_compress.algorithms.steps import Step, takes_theorem_step
from mpi_compress.algorithms.theorem import (
    F_STAR,
    IS_TIGHT,
    OWN_MOMENTUM,
    OWN_PARTS,
    PLAIN,
    TIGHT,
    WHOLE,
    WITHIN,
    OfConvex,
    Theorem,
    constants,
    is_tight,
    quantities,
    tight_factor,
)
from mpi_compress.core.errors import AllSent, NotMet, PrecisionExhausted, UserError
from mpi_compress.core.expressions import Expression, Time, evaluate
from mpi_compress.core.fields import AtLeastOne, Decay, Positive, Share, within
from mpi_compress.core.registry import fact
from mpi_compress.core.streams import Role, Round, Rounds, Streams
from mpi_compress.kernels.vectors import means_of_parts, norm, squared_norm, squared_norms
from mpi_compress.messages.batch import Batch, Message, silent, spread, together
from mpi_compress.messages.compressors.base import Count, Sized, coordinates_sent, count_of, has_state
from mpi_compress.messages.costs import CostModel, at_moment, costs
from mpi_compress.messages.kinds import (
    Compressed,
    Dense,
    Each,
    Indices,
    Lattice,
    Pair,
    SignSparse,
    Sparse,
    Vector,
    WithScalar,
    WithSize,
    index_bits,
    lattice_bits,
    no_coordinates,
    square,
    stacked,
    triangle,
)
from mpi_compress.messages.link import ChoosingLink, Link, ScalarLink
from mpi_compress.messages.several import PairLink, RefreshLink, SeveralLink, means_of_pairs
from mpi_compress.problem.objective import Objective, Shards
