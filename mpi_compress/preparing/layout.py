"""Whether rank 0 hosts workers beside the master's part: as [workers] master says, or by a rule from counts known beforehand."""

from dataclasses import dataclass

from mpi_compress.job.runs import RunSpec
from mpi_compress.messages.kinds import Dense, Lattice

_LEAST_GAIN = 0.02  # the share of a round below which rank 0 stays apart
_CALL, _DECODE = 30e3, 15e3  # ns: a worker's calls in a round, and the master's for one message
_NONZERO, _COORDINATE = 2.5, 5.0  # ns: of a gradient, and of compressing and encoding a vector
_ADDED = 2.0  # ns: decoding and adding a coordinate of a message
_SPARSE = 0.1  # of d: coordinates of a message that does not hold all


@dataclass(frozen=True)
class Choice:
    """Whether rank 0 hosts workers, and what makes it so."""

    hosts: bool
    reason: str

    def __str__(self) -> str:
        return f"rank 0 {'hosts workers too' if self.hosts else 'is the master alone'} ({self.reason})"


def rank_0(spec: RunSpec, nonzeros: float, samples: int, dim: int, ranks: int) -> Choice:
    """Whether rank 0 of so many hosts workers.

    A round takes as long as the rank that hosts most workers, and then the master decodes and adds all messages: ⌈n/R⌉ w + n m
    where rank 0 hosts workers, whose share is the smallest one, and ⌈n/(R − 1)⌉ w + n m where it does not. It stays apart where
    hosting saves less than 2 %: the others host no fewer workers each, or the fold takes nearly the whole round. By a tree of
    folds, ranks share the additions.

    Args:
        nonzeros, samples: of the whole set.
        dim: d.
    """
    n, table = spec.workers.count, spec.workers
    if ranks == 1 or table.exchange == "allgather":
        return Choice(True, "one process" if ranks == 1 else "allgather")
    if table.master != "auto":
        return Choice(table.master == "worker", f'master = "{table.master}"')
    rows = samples / n if spec.algorithm.batch is None else spec.algorithm.batch
    w = _CALL + _NONZERO * nonzeros / samples * rows + _COORDINATE * dim
    sent = dim if spec.up.compressor.makes in (Dense, Lattice) else _SPARSE * dim
    m = 0.0 if spec.algorithm.shares_memory else (_DECODE + _ADDED * sent) / (ranks if table.fold == "tree" else 1)
    apart, hosting = (-(-n // hosts) * w + n * m for hosts in (ranks - 1, ranks))
    gain = 1.0 - hosting / apart
    return Choice(gain > _LEAST_GAIN, f"auto: hosting saves {gain:.0%} of a round by its counts")
