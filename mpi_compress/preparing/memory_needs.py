"""How much memory a run will need on each rank, before it is run: an estimate on the safe side, and what is free on this host."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.algorithms import Algorithm
from mpi_compress.core.errors import UserError, placed
from mpi_compress.core.registry import is_ours
from mpi_compress.exchange.base import block
from mpi_compress.exchange.host import addressable, available, own_cores
from mpi_compress.job.loading import Job
from mpi_compress.job.runs import RunSpec
from mpi_compress.messages.compressors.base import coordinates_sent
from mpi_compress.messages.kinds import Dense, Lattice
from mpi_compress.preparing.needs import algorithm_on
from mpi_compress.preparing.shapes import Shape, Shapes, rank_0
from mpi_compress.preparing.wanted import Wanted
from mpi_compress.problem.constants import FEW, WIDE
from mpi_compress.problem.datasets import libsvm
from mpi_compress.problem.mean_loss import Outline
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.optimum.newton import DENSE_HESSIAN_UP_TO
from mpi_compress.problem.points import are_few
from mpi_compress.problem.rows import Rows
from mpi_compress.saving.frames import size

PROCESS = 200 * 2**20  # Python with its libraries
_VECTORS = 10  # (d,) arrays of float64 on each rank, about: x, x0, x*, gradients and means of an evaluation, the answer
_VECTORS_OF_A_SOLVER = 32
_SPARSE = 0.1  # of a vector: what a message takes that has not all coordinates, about
_SENT = 16.0  # bytes of a coordinate of a sparse message, encoded or decoded
_HELD = 16.0  # bytes, at most, of a gradient that is kept by the entries of a worker's rows, of each entry
_LATTICE = 0.75  # of a vector: small integers, as bytes and decoded
UNKNOWN = "? GiB"
_SAMPLED = 0.4  # of mapped rows: what a solver's first steps, on a sample, take
_DIM = 1000  # d of the substitute; a state's other fields are small beside a vector


@dataclass(frozen=True)
class _Vectors:
    """Vectors (d,) of float64 in the states of a run."""

    node: float
    worker: float  # of each worker
    master: float


_MORE_THAN_MOST = _Vectors(4.0, 3.0, 3.0)
"""What stands for the states of a user's algorithm, and of one that the substitute does not suit: more than most have."""


def vectors_of(spec: RunSpec) -> _Vectors:
    """The vectors in the states of a run's algorithm, `Method.more_memory` left out."""
    if not spec.loss.of_margin or not is_ours(spec.algorithm) or not isinstance(spec.algorithm, Algorithm):
        return _MORE_THAN_MOST
    n = spec.workers.count
    try:
        algorithm: Any = algorithm_on(spec, Shape(n, _DIM, float(n * _DIM)))
        of_worker, of_master = algorithm.more_memory(_DIM, n)
        node = algorithm.start(np.full(_DIM, 1e-3))
        rows = Rows((np.full((1, _DIM), 1e-2),), np.ones(1), _DIM)
        worker = algorithm.start_worker(node, Objective(rows, spec.loss, 1.0, 0.0))
        return _Vectors(_size(node), _size(worker, of_worker), _size(algorithm.start_master(node), of_master))
    except Exception:  # the data decide more than their size does, or the method is not for these
        return _MORE_THAN_MOST


def _size(state: Any, more: float = 0.0) -> float:
    """The vectors (d,) in a state, without `more` numbers."""
    return float(round(max(0.0, size(state) / 8 - more) / _DIM))


def needs(spec: RunSpec, shape: Shape, ranks: int, solve: bool = True, resident: bool = False) -> list[float]:
    """Bytes on each rank but Python's; `solve`: rank 0 first finds λmax and x* on all rows; `resident`: mapped rows left out."""
    n, dim = spec.workers.count, _dim_of_x(spec, shape)
    vector, states = 8.0 * dim, vectors_of(spec)
    few = _few(spec, shape, dim)
    gradient = vector if few is None else few
    message = _message(spec, dim, few if not states.worker else None)
    of_worker, of_master = spec.algorithm.more_memory(dim, n)
    found, mapped = [], shape.mapped(spec) if resident else 0.0
    alone = not rank_0(spec, shape.nonzeros, shape.samples, dim, ranks).hosts
    hosts = ranks - alone
    hosted = [range(0)] * alone + [block(n, hosts, r) for r in range(hosts)]
    for rank, workers in enumerate(hosted):
        share = shape.share(workers, n)
        rows = shape.bytes(spec.data.dtype, share) - share * mapped
        masters = rank == 0 or spec.workers.exchange == "allgather"
        playing = rows + vector * (_VECTORS + states.node + states.master * masters + states.worker * len(workers))
        playing += 8.0 * (of_worker * len(workers) + of_master * masters) + len(workers) * (gradient + message)
        if masters:
            playing += 2 * n * message  # its bytes and what they decode to
        found.append(playing)
    if solve:
        wanted = Wanted.by(spec)
        solves = wanted.optimum or wanted.f_star or (wanted.asked and spec.objective.f_star != "skip")
        size = dim if solves else min(dim, shape.samples)  # of the solver's vectors; λmax takes the shorter side of the data
        small = 3 * vector * dim if dim <= DENSE_HESSIAN_UP_TO else 0.0
        copied = 1.0 if shape.dim >= max(WIDE, FEW * shape.samples) else _SAMPLED if solves else 0.0  # of the mapped rows
        solving = shape.bytes(spec.data.dtype) - (1.0 - copied) * mapped + small
        solving += 8.0 * (size * _VECTORS_OF_A_SOLVER + 6 * shape.samples)
        found[0] = max(found[0], solving)
    return [each + 4 * libsvm.BLOCK_BYTES for each in found]


def _few(spec: RunSpec, shape: Shape, dim: int) -> float | None:
    """Bytes that a worker keeps of its gradient, where its rows hold few of d coordinates; None: it keeps a vector (d,)."""
    held = shape.nonzeros / spec.workers.count
    whole = spec.algorithm.batch is None and spec.penalty is None
    fused = spec.loss.kernel is not None
    return _HELD * held if whole and fused and are_few(held, dim) else None


def _message(spec: RunSpec, dim: int, few: float | None) -> float:
    """Bytes of a worker's message, encoded or decoded, about; `few`: what the worker keeps of a gradient that it compresses."""
    made, k = spec.up.compressor.makes, None
    with suppress(ValueError):  # a k above d, which is refused where the run is prepared
        k = coordinates_sent(spec.up.compressor, dim)
    if made in (Dense, Lattice):
        return 8.0 * dim * (_LATTICE if made is Lattice else 1.0)
    most = 8.0 * dim * _SPARSE if few is None else min(few, 8.0 * dim * _SPARSE)
    return most if k is None else min(_SENT * k, 8.0 * dim)


def _dim_of_x(spec: RunSpec, shape: Shape) -> int:
    """d; of a model for classes that are not known yet, the number of features."""
    try:
        return spec.loss.within(Outline(shape.samples, shape.dim, shape.classes, shape.sizes)).dim
    except ValueError:
        return shape.dim


def short_text(spec: RunSpec, shapes: Shapes | None = None) -> str:
    """A run's memory in one process, for a plan of one line a run; UNKNOWN before its data are parsed."""
    shape = (shapes or Shapes()).of(spec)
    return UNKNOWN if shape is None else gib(PROCESS + needs(spec, shape, 1)[0])


def text(spec: RunSpec, ranks: int | None = None, shapes: Shapes | None = None) -> str:
    """A run's memory, for a plan: in one process, and on `ranks` ranks (one for each worker and one for the master)."""
    shape = (shapes or Shapes()).of(spec)
    if shape is None:
        return "memory not known before the data are parsed"
    ranks = ranks or spec.workers.count + 1
    alone, (first, *others), dim = needs(spec, shape, 1)[0], needs(spec, shape, ranks), _dim_of_x(spec, shape)
    states = 8.0 * spec.workers.count * (vectors_of(spec).worker * dim + spec.algorithm.more_memory(dim, spec.workers.count)[0])
    kept = f" ({gib(states)} of it are the workers' states)" if states > alone / 10 else ""
    each = f" and {gib(PROCESS + max(others))} on each other" if others else ""
    spread = f", of {ranks} ranks {gib(PROCESS + first)} on the first{each}" if ranks > 1 else ""
    choice = rank_0(spec, shape.nonzeros, shape.samples, dim, ranks, len(own_cores()))
    told = f"; {choice}{'; ' if choice.warning else ''}{choice.warning}" if ranks > 1 else ""
    return f"{gib(PROCESS + alone)} in one process{kept}{spread}{told}"


def refuse_what_cannot_fit(spec: RunSpec, shape: Shape, ranks: int, here: Sequence[int], solve: bool, seen: bool = True) -> None:
    """UserError if the ranks `here`, of this host, need more than is free. Nothing large is made yet; `seen`: all see the cache."""
    each = needs(spec, shape, ranks, solve, resident=seen)
    wanted, free = sum(each[r] for r in here), available()
    _refuse_address_space(max(each[r] for r in here), shape.mapped(spec))
    if wanted > free:
        raise UserError(
            f"needs about {gib(wanted)} of memory for the {len(here)} of {ranks} rank{'s' if ranks > 1 else ''} on this host, and "
            f'{gib(free)} is free; use more hosts, data.dtype = "float32", or --force to try all the same'
        )


def refuse_what_fits_nowhere(job: Job, ranks: int | None, shapes: Shapes | None = None) -> None:
    """UserError if a single rank of a run needs more memory than is free on this host, the only one that a plan knows."""
    free, shapes = available(), shapes or Shapes()
    for spec in job.runs:
        shape, n_ranks = shapes.of(spec), ranks or spec.workers.count + 1
        most = max(needs(spec, shape, n_ranks, resident=True)) if shape else 0.0
        with placed(spec.where):
            _refuse_address_space(most, shape.mapped(spec) if shape else 0.0)
        if most > free:
            raise UserError(
                f"{spec.where}one of {n_ranks} ranks alone needs about {gib(most)} of memory, and {gib(free)} is free here; "
                'more ranks, data.dtype = "float32" or a larger host would do, or --force'
            )


def _refuse_address_space(arrays: float, mapped: float) -> None:
    """UserError if a rank's arrays and the rows, which it maps whole, do not fit into what `ulimit -v` leaves."""
    if mapped and arrays + mapped > (free := addressable()):
        raise UserError(
            f"needs about {gib(arrays + mapped)} of address space, {gib(mapped)} of it for rows mapped from the cache, and `ulimit "
            f"-v` leaves {gib(free)}; raise that limit, or --force to try all the same"
        )


def from_disk(spec: RunSpec, shape: Shape | None, ranks: int, here: Sequence[int]) -> str:
    """A line where the rows of the ranks `here`, of one host, are mapped and larger than the memory left for them; or ""."""
    if shape is None or not (rows := shape.mapped(spec) * len(here) / ranks):
        return ""
    free = available() - sum(map(needs(spec, shape, ranks, False, True).__getitem__, here))
    told = f"rows of {gib(rows)} are read from the disk in each pass: more than the {gib(max(free, 0.0))} of memory that is free"
    return told if rows > free else ""


def gib(size: float) -> str:
    return f"{size / 2**30:.2g} GiB" if size < 10 * 2**30 else f"{size / 2**30:.0f} GiB"
