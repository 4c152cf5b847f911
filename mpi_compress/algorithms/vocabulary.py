"""The words of a method's file: the contract of its part, what its verbs take and return, needs, and theorems."""

# ruff: noqa: F401
from mpi_compress.algorithms.contract import Algorithm, Average, First, Method, PartialMean, Setting, algorithms
from mpi_compress.algorithms.error_memory import ERRORS, ErrorMemory, Rest, level_of, packed, rest_of
from mpi_compress.algorithms.lemma import Lemma
from mpi_compress.algorithms.log import Log
from mpi_compress.algorithms.needs import (
    ADDS_UP,
    EXACT_DOWN,
    HEARS_MEAN,
    HOMOGENEOUS_UP,
    LAST_ITERATE,
    LINEAR,
    LOSS_ALONE,
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
)
from mpi_compress.algorithms.parts import Direction, Downlink, Moved, Node, Point, Server, add, dense, downlinks, servers, summed
from mpi_compress.algorithms.product import Estimator, MinibatchParameters, Sum, UsualParameters
from mpi_compress.algorithms.sampling import Sampling, rounds_of_epoch, sampled_delta, sampled_omega
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
from mpi_compress.core.errors import AllSent, NotMet, PrecisionExhausted
from mpi_compress.core.expressions import Expression, Time, evaluate
from mpi_compress.core.fields import AtLeastOne, Decay, Positive, Share, within
from mpi_compress.core.registry import fact
from mpi_compress.core.streams import Round, Rounds
from mpi_compress.kernels.vectors import norm, squared_norm, squared_norms
from mpi_compress.messages.compressors.base import Count, coordinates_sent, count_of, has_state
from mpi_compress.messages.kinds import (
    Compressed,
    Dense,
    Each,
    Lattice,
    Pair,
    Sparse,
    Vector,
    lattice_bits,
    no_coordinates,
    square,
    stacked,
    triangle,
)
from mpi_compress.messages.link import SILENT, Batch, Link, Message, silent, spread, together
from mpi_compress.messages.several import PairLink, RefreshLink, SeveralLink, means_of_pairs
from mpi_compress.problem.objective import Objective, Shards
