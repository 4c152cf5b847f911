"""The sizes of data sets before they are read; and whether rank 0 hosts workers, by a rule from such counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mpi_compress.algorithms import Algorithm
from mpi_compress.core.errors import UserError
from mpi_compress.job.runs import RunSpec
from mpi_compress.messages.kinds import Dense, Lattice
from mpi_compress.problem.datasets import said
from mpi_compress.problem.datasets.convert import DENSE_FROM
from mpi_compress.problem.datasets.known import KNOWN, names_of
from mpi_compress.problem.datasets.store import MAPPED_FROM, cached_file, counted_in, described, is_sound


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
        """Bytes of a share of the rows, sparse or dense, whichever is less, with labels and starts of sparse rows."""
        item = 4 if dtype == "float32" else 8
        if self.nonzeros >= DENSE_FROM * self.samples * self.dim:
            return share * self.samples * (self.dim * item + 8)
        return share * (self.nonzeros * (4 + item) + self.samples * 24)

    def mapped(self, spec: RunSpec) -> float:
        """Bytes of all rows that are mapped from the cached file, and dropped where memory is short; a model may copy its rows."""
        entries = self.bytes(spec.data.dtype) - 24.0 * self.samples
        return 0.0 if not spec.loss.of_margin or entries < 3 * MAPPED_FROM else entries  # indices are a third of them, or more


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


def size_of(spec: RunSpec) -> said.Size | None:
    """The size of a run's set as it is here: parsed, generated, or a small file's; None if a large one is not parsed yet.

    Raises:
        UserError: a small file is wrong; of one whose first rows are taken this is not known.
    """
    table, file = spec.data, cached_file(spec.data, spec.folder, spec.split, spec.labels)
    if is_sound(file):
        data = described(file, table.title)
        return data.n_samples, data.dim, 0, data.entries
    if table.generator is not None:
        shape = shape_of(spec)
        return (shape.samples, shape.dim, 0, 0) if shape else None
    try:
        counted = counted_in(table.file(spec.folder)) if table.build_format(spec.folder).name == "libsvm" else None
    except UserError:
        if table.rows is None:
            raise
        return None
    return counted and (min(counted[0], table.rows or counted[0]), table.known_dim or counted[1], 0, counted[2])


def said_of(specs: Sequence[RunSpec]) -> list[str]:
    """A line for each set of these runs."""
    return list(dict.fromkeys(map(_said, {repr((spec.data, spec.folder)): spec for spec in reversed(specs)}.values())))[::-1]


def _said(spec: RunSpec) -> str:
    if spec.missing:
        looked = f", looked for {' and '.join(names_of(spec.data.name))}" if spec.data.name else ""
        return f"data: {spec.data.title}, not here{looked}"
    place = "" if spec.data.generator else spec.data.file(spec.folder)
    return said.line(spec.written["data"], spec.data_kind, place, size_of(spec))


class Shapes:
    """The sizes of sets, each looked up once: many runs of a job share a set, in whatever order their partitions read it."""

    def __init__(self) -> None:
        self._found: dict[str, Shape | None] = {}

    def of(self, spec: RunSpec) -> Shape | None:
        key = repr((spec.data, spec.folder, spec.labels))
        if key not in self._found:
            self._found[key] = shape_of(spec)
        return self._found[key]


_LEAST_GAIN = 0.02  # the share of a round below which rank 0 stays apart
_LEAST_LOSS = 0.95  # of one process's time: what is told of ranks that save no more
_CALL, _DECODE, _ROUND = 3e3, 2e3, 80e3  # ns: a worker's calls in a round, the master's for a message, those of a round itself
_RANK, _CROWDED = 40e3, 200e3  # ns: what each rank beside the first adds to a round, with a core of its own and without
_NONZERO, _COORDINATE = 1.4, 5.0  # ns: of a gradient, and of compressing and encoding a vector
_ADDED = 2.0  # ns: decoding and adding a coordinate of a message
_SPARSE = 0.1  # of d: coordinates of a message that does not hold all


@dataclass(frozen=True)
class Choice:
    """Whether rank 0 hosts workers, and what makes it so."""

    hosts: bool
    reason: str
    warning: str = ""  # that so many ranks are hardly faster than one process

    def __str__(self) -> str:
        return f"rank 0 {'hosts workers too' if self.hosts else 'is the master alone'} ({self.reason})"


def rank_0(spec: RunSpec, nonzeros: float, samples: int, dim: int, ranks: int, cores: int | None = None) -> Choice:
    """Whether rank 0 of so many hosts workers, and whether they pay.

    A round takes as long as the rank that hosts most workers, and then the master decodes and adds all messages: ⌈n/R⌉ w + n m
    where rank 0 hosts workers, whose share is the smallest one, and ⌈n/(R − 1)⌉ w + n m where it does not. It stays apart where
    hosting saves less than 2 %: the others host no fewer workers each, or the fold takes nearly the whole round. One
    process takes n w + n m + b, ranks b and what each of them adds, and n/C w at least.

    Args:
        nonzeros, samples: of the whole set.
        dim: d.
        cores: C, which the ranks share; left out: each has its own.
    """
    n, table = spec.workers.count, spec.workers
    if ranks == 1:
        return Choice(True, "one process")
    rows = samples / n if spec.algorithm.batch is None else spec.algorithm.batch
    w = _CALL + _NONZERO * nonzeros / samples * rows + _COORDINATE * dim
    sent = dim if spec.up.compressor.makes in (Dense, Lattice) else _SPARSE * dim
    m = _DECODE + _ADDED * sent if isinstance(spec.algorithm, Algorithm) else 0.0
    of_all = n * m
    apart, hosting = (-(-n // hosts) * w + of_all for hosts in (ranks - 1, ranks))
    gain = 1.0 - hosting / apart
    hosts, reason = gain > _LEAST_GAIN, f"auto: hosting saves {gain:.0%} of a round by its counts"
    if table.exchange == "allgather":
        hosts, reason = True, "allgather"
    elif table.master != "auto":
        hosts, reason = table.master == "worker", f'master = "{table.master}"'
    cores = min(cores or ranks, ranks)
    each, alone = _RANK if cores == ranks else _CROWDED, n * (w + m) + _ROUND
    by_ranks = max(hosting if hosts else apart, n * w / cores + of_all) + _ROUND + (ranks - 1) * each
    if by_ranks < _LEAST_LOSS * alone or not spec.loss.of_margin or any(spec.algorithm.more_memory(dim, n)):
        return Choice(hosts, reason)  # they pay; or what models and matrices take is not counted
    said = f"a round of {alone / 1e6:.2g} ms is short beside what ranks add, by its counts"
    return Choice(hosts, reason, f"{ranks} ranks: about {by_ranks / alone:.2g} of one process's time ({said})")
