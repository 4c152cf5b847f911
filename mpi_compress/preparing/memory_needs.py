"""How much memory a run will need on each rank, before it is run: an estimate on the safe side, and what is free on this host."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mpi_compress.core.errors import UserError
from mpi_compress.exchange.base import block
from mpi_compress.job.loading import Job
from mpi_compress.job.runs import RunSpec
from mpi_compress.messages.kinds import Dense, Lattice
from mpi_compress.preparing.layout import rank_0
from mpi_compress.problem.datasets import libsvm
from mpi_compress.problem.datasets.convert import DENSE_FROM
from mpi_compress.problem.datasets.known import KNOWN
from mpi_compress.problem.datasets.store import cached_file, described, is_sound
from mpi_compress.problem.models import Model, Outline, dim_of
from mpi_compress.problem.optimum.newton import DENSE_HESSIAN_UP_TO

PROCESS = 200 * 2**20  # Python with its libraries
_VECTORS_OF_A_NODE = 8  # (d,) arrays of float64, about: x, x0, x*, the answer as it is decoded and added
_VECTORS_OF_A_WORKER = 5  # its gradient, a memory, the message, what it decodes to, a report
_VECTORS_OF_A_SOLVER = 32
UNKNOWN = "? GiB"


@dataclass(frozen=True)
class Shape:
    """The size of a set."""

    samples: int
    dim: int
    nonzeros: float
    classes: int = 0  # of labels, where they are known and have classes
    dealt: Sequence[int] | None = None  # where the shards of unequal workers begin, and N, once that is known
    sizes: Mapping[str, int] = field(default_factory=dict)  # that the data's format states

    def share(self, workers: range, n: int) -> float:
        """The share of the rows that some of n workers have; as if all had equally many until the split is known."""
        if self.dealt is None or len(self.dealt) != n + 1 or not workers:
            return len(workers) / n
        return (self.dealt[workers.stop] - self.dealt[workers.start]) / self.samples

    def bytes(self, dtype: str, share: float = 1.0) -> float:
        """Bytes of a share of the rows in memory, sparse or dense, whichever is less, with labels and starts of sparse rows."""
        item = 4 if dtype == "float32" else 8
        if self.nonzeros >= DENSE_FROM * self.samples * self.dim:
            return share * self.samples * (self.dim * item + 8)
        return share * (self.nonzeros * (4 + item) + self.samples * 24)


def shape_of(spec: RunSpec) -> Shape | None:
    """The size of a run's set without parsing it, from the cache, its generator or what is published; None if none has it."""
    table = spec.data
    file = cached_file(table, spec.folder, spec.split, spec.labels)
    if is_sound(file):
        data = described(file, table.title)
        return Shape(data.n_samples, data.dim, data.nonzeros, data.classes, data.dealt, data.sizes)
    known, size = KNOWN.get(table.name or ""), None
    if table.generator is not None:
        size = table.build_generator().size()
    elif known is not None and known.samples and known.nonzeros:
        size = known.samples, known.dim, float(known.nonzeros)
    if size is None:
        return None
    samples = min(size[0], table.rows or size[0])
    return Shape(samples, table.dim or size[1], size[2] * samples / size[0])


class Shapes:
    """The sizes of sets, each looked up once: many runs of a job share a set, in whatever order their partitions read it."""

    def __init__(self) -> None:
        self._found: dict[str, Shape | None] = {}

    def of(self, spec: RunSpec) -> Shape | None:
        key = repr((spec.data, spec.folder, spec.labels))
        if key not in self._found:
            self._found[key] = shape_of(spec)
        return self._found[key]


def needs(spec: RunSpec, shape: Shape, ranks: int, solve: bool = True) -> list[float]:
    """Bytes on each rank, Python itself left out; `solve`: rank 0 first computes λmax and x* on the whole set."""
    n, dim = spec.workers.count, _dim_of_x(spec, shape)
    vector = 8.0 * dim
    message = vector if spec.up.compressor.makes in (Dense, Lattice) else 0.1 * vector
    of_worker, of_master = spec.algorithm.more_memory(dim)
    found = []
    alone = not rank_0(spec, shape.nonzeros, shape.samples, dim, ranks).hosts
    hosts = ranks - alone
    hosted = [range(0)] * alone + [block(n, hosts, r) for r in range(hosts)]
    for rank, workers in enumerate(hosted):
        rows = shape.bytes(spec.data.dtype, shape.share(workers, n))
        playing = rows + vector * (_VECTORS_OF_A_NODE + _VECTORS_OF_A_WORKER * len(workers))
        playing += 8.0 * (of_worker * len(workers) + of_master * (rank == 0))
        if rank == 0 or spec.workers.exchange == "allgather":
            playing += 2 * n * message
        found.append(playing)
    if solve:
        small = 3 * vector * dim if dim <= DENSE_HESSIAN_UP_TO else 0.0
        solving = shape.bytes(spec.data.dtype) + vector * _VECTORS_OF_A_SOLVER + 8.0 * 6 * shape.samples + small
        found[0] = max(found[0], solving)
    return [each + 4 * libsvm.BLOCK_BYTES for each in found]


def _dim_of_x(spec: RunSpec, shape: Shape) -> int:
    """d; of a model for classes that are not known yet, the number of features."""
    if not isinstance(spec.loss, Model):
        return dim_of(spec.loss, shape.dim)
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
    alone, (first, *others) = needs(spec, shape, 1)[0], needs(spec, shape, ranks)
    each = f" and {gib(PROCESS + max(others))} on each other" if others else ""
    spread = f", of {ranks} ranks {gib(PROCESS + first)} on the first{each}" if ranks > 1 else ""
    choice = rank_0(spec, shape.nonzeros, shape.samples, _dim_of_x(spec, shape), ranks)
    return f"{gib(PROCESS + alone)} in one process{spread}" + (f"; {choice}" if ranks > 1 else "")


def refuse_what_cannot_fit(spec: RunSpec, shape: Shape, ranks: int, here: Sequence[int], solve: bool) -> None:
    """UserError if the ranks `here`, of this host, need more than is free on it; called before anything large is made or read."""
    each = needs(spec, shape, ranks, solve)
    wanted, free = sum(each[r] for r in here), available()
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
        most = max(needs(spec, shape, n_ranks)) if shape else 0.0
        if most > free:
            raise UserError(
                f"{spec.where}one of {n_ranks} ranks alone needs about {gib(most)} of memory, and {gib(free)} is free here; "
                'more ranks, data.dtype = "float32" or a larger host would do, or --force'
            )


def available() -> float:
    """Bytes that this host, and the groups of processes that this one is in, can still give; infinite where that is unknown."""
    free = math.inf
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free = 1024.0 * int(line.split()[1])
        groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    except (OSError, ValueError, IndexError):
        return free
    for _, controllers, place in groups:
        if controllers == "":
            free = min(free, _left(Path("/sys/fs/cgroup"), place, "memory.max", "memory.current", "inactive_file"))
        elif "memory" in controllers.split(","):
            root = Path("/sys/fs/cgroup/memory")
            free = min(free, _left(root, place, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"))
    return free


def _left(root: Path, place: str, limit: str, usage: str, cache: str) -> float:
    """Bytes that the limits of a group, and of the groups above it, leave; files that the kernel caches can be given back."""
    free, folder = math.inf, root / place.lstrip("/")
    while root in (folder, *folder.parents):
        try:
            most = (folder / limit).read_text().strip()
            if most.isdigit():
                kept = [int(x.split()[1]) for x in (folder / "memory.stat").read_text().splitlines() if x.split()[0] == cache]
                free = min(free, float(int(most) - int((folder / usage).read_text()) + sum(kept)))
        except (OSError, ValueError, IndexError):
            pass
        folder = folder.parent
    return free


def gib(size: float) -> str:
    return f"{size / 2**30:.2g} GiB" if size < 10 * 2**30 else f"{size / 2**30:.0f} GiB"
