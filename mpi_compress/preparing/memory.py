"""The memory that a run needs, before it is run: its rows on each rank, and states; what is free on this host."""

from collections.abc import Iterable

from mpi_compress.algorithms import Algorithm
from mpi_compress.core.errors import UserError, placed
from mpi_compress.exchange.host import addressable, available
from mpi_compress.job.runs import RunSpec
from mpi_compress.messages.kinds import Sparse
from mpi_compress.preparing.needs import remembers
from mpi_compress.preparing.shapes import shape_of
from mpi_compress.problem.datasets.convert import DENSE_FROM
from mpi_compress.problem.datasets.opening import MAPPED_FROM
from mpi_compress.problem.datasets.store import DataSet
from mpi_compress.problem.mean_loss import Outline

PROCESS = 200 * 2**20  # Python with its libraries
_ON_EACH = 10  # (d,) arrays of float64 on each rank, about: x, x*, gradients and means of an evaluation, an answer
_TO_SOLVE = 30  # likewise of the solver of x*, on the first rank
_TO_SEND, _SPARSE = 2.0, 0.5  # likewise of each worker: a gradient, and a message; a message of a few coordinates
_REMEMBERED = 2  # likewise of each worker that has a memory
UNKNOWN_SIZE = "? GiB"


def needed(spec: RunSpec, shape: DataSet, here: int = 1, ranks: int = 1, seen: bool = True) -> float:
    """Bytes that `here` of so many ranks need on one host, about: rows on each rank, and states. Rows that are mapped from the
    cache need none; where not all ranks have `seen` it, each has a copy of its share."""
    dim, n = _dim_of_x(spec, shape), spec.workers.count
    rows = bytes_of(spec, shape) - mapped(spec, shape) if seen else bytes_of(spec, shape) / ranks
    in_rounds = isinstance(spec.algorithm, Algorithm)
    vectors = _SPARSE if in_rounds and spec.up.compressor.makes is Sparse else _TO_SEND
    vectors += _REMEMBERED * (in_rounds and remembers(spec.algorithm))
    of_worker, of_master = spec.algorithm.more_memory(dim, n)
    rule = spec.time.rule_of(n)
    of_master += 2.0 * n * dim * (rule is not None and rule.tables)
    states = (here * _ON_EACH + _TO_SOLVE) * dim + n * here / ranks * (vectors * dim + of_worker) + of_master
    return here * (PROCESS + rows) + 8.0 * states


def bytes_of(spec: RunSpec, shape: DataSet) -> float:
    """Bytes of all rows, sparse or dense, whichever is less, with labels and starts of sparse rows."""
    item = 4 if spec.data.dtype == "float32" else 8
    if shape.nonzeros >= DENSE_FROM * shape.n_samples * shape.dim:
        return shape.n_samples * (shape.dim * item + 8.0)
    return shape.nonzeros * (4 + item) + shape.n_samples * 24.0


def mapped(spec: RunSpec, shape: DataSet) -> float:
    """Bytes of all rows that are mapped from the cached file, and dropped where memory is short; a model may copy its rows."""
    entries = bytes_of(spec, shape) - 24.0 * shape.n_samples
    return 0.0 if not spec.loss.of_margin or entries < 3 * MAPPED_FROM else entries  # indices are a third of them, or more


def _dim_of_x(spec: RunSpec, shape: DataSet) -> int:
    """d; of a model for classes that are not known yet, the number of features."""
    try:
        return spec.loss.within(Outline(shape.n_samples, shape.dim, shape.classes, shape.sizes)).dim
    except ValueError:
        return shape.dim


def most(specs: Iterable[RunSpec], ranks: int = 1) -> float:
    """The bytes that one of so many ranks needs for the largest of these runs, about; 0 before any of their data are parsed."""
    return max((needed(spec, shape, 1, ranks) for spec in specs if (shape := shape_of(spec))), default=0.0)


def text(spec: RunSpec) -> str:
    """A run's memory in one process, for a plan; UNKNOWN_SIZE before its data are parsed."""
    return gib(size) if (size := most([spec])) else UNKNOWN_SIZE


def refuse_what_cannot_fit(spec: RunSpec, shape: DataSet, here: int, ranks: int, seen: bool = True) -> None:
    """UserError if `here` of so many ranks, on this host, need more than is free. Nothing large is made yet."""
    wanted, free, rows = needed(spec, shape, here, ranks, seen), available(), mapped(spec, shape)
    if rows and wanted / here + rows > (left := addressable()):
        raise UserError(
            f"needs about {gib(wanted / here + rows)} of address space, {gib(rows)} of it for rows mapped from the cache, and "
            f"`ulimit -v` leaves {gib(left)}; raise that limit, or --force to try all the same"
        )
    if wanted > free:
        raise UserError(
            f"needs about {gib(wanted)} of memory for {here} of {ranks} rank{'s' * (ranks > 1)} on this host, and "
            f'{gib(free)} is free; use more hosts, data.dtype = "float32", or --force to try all the same'
        )


def refuse_what_fits_nowhere(spec: RunSpec) -> None:
    """UserError if a rank that hosts one worker needs more memory than is free on this host, the only one that a plan knows."""
    if (shape := shape_of(spec)) is not None:
        with placed(spec.where):
            refuse_what_cannot_fit(spec, shape, 1, spec.workers.count)


def from_disk(spec: RunSpec, shape: DataSet | None, here: int = 1, ranks: int = 1) -> str:
    """A line where the rows of `here` ranks, on one host, are mapped and larger than the memory left for them; or ""."""
    if shape is None or not (rows := mapped(spec, shape) * here / ranks):
        return ""
    free = available() - needed(spec, shape, here, ranks)
    line = f"rows of {gib(rows)} are read from the disk in each pass: more than the {gib(max(free, 0.0))} of memory that is free"
    return line if rows > free else ""


def gib(size: float) -> str:
    return f"{size / 2**30:.2g} GiB" if size < 10 * 2**30 else f"{size / 2**30:.0f} GiB"
