"""A partition's outcome for a set: rows in the order in which they are assigned, and where each worker's begin."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mpi_compress.core.arrays import shown
from mpi_compress.core.errors import UserError
from mpi_compress.core.registry import parameters
from mpi_compress.core.sources import source_of
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.partitions.base import Partition, RowNumbers, partitions, sizes_of, slices

_WHERE = "workers.partition"


@dataclass(frozen=True)
class Split:
    """How the rows of a set are assigned to n workers."""

    partition: Partition = field(default_factory=lambda: partitions["contiguous"]())
    n: int = 1
    seed: int = 0

    @property
    def for_any_n(self) -> bool:
        """True if the rows have the same order for any n, and every worker an equal slice: then they are prepared once."""
        return self._has_order and sizes_of(self.partition, self.n) is None

    @property
    def _has_order(self) -> bool:
        return type(self.partition).deal is Partition.deal

    @property
    def key(self) -> str:
        """Splits of one set that differ have different keys."""
        part = self.partition
        given = {name: value for name in parameters(type(part)) if (value := getattr(part, name)) is not None}
        text = part.name + (f" {given}" if given else "")
        text += f" by {self.seed}" if part.seeded or isinstance(sizes_of(part, self.n), float | int) else ""
        return text + ("" if self.for_any_n else f" for {self.n}") + source_of(part)

    def deal(self, labels: Vector) -> tuple[RowNumbers, RowNumbers | None]:
        """All rows (N,), one worker's after the other's, and where each worker's begin, with the end (n+1,); None: equal slices.

        Args:
            labels: (N,), or the values of the partition's `feature`.

        Raises:
            UserError: a row is left out or assigned twice, a worker gets no rows, or the partition refuses these rows.
        """
        N, part = labels.size, self.partition
        rng = np.random.default_rng([self.seed, N, self.n])
        if self.for_any_n:
            return self._ordered(labels), None
        refuse_idle_workers(self.n, N)
        if self._has_order:
            rows, cuts = self._ordered(labels), slices(part, N, self.n, rng)
        else:
            shards = self._shards(_asked(part, lambda: part.deal(labels, self.n, rng)))
            rows, cuts = _each_once(part, np.concatenate(shards), N), np.cumsum([0, *(shard.size for shard in shards)])
        if (idle := np.flatnonzero(np.diff(cuts) <= 0)).size:
            raise UserError(f"{_WHERE}: '{part.name}' gives worker {idle[0]} of {self.n} no samples, of {N}")
        return rows, cuts

    def _ordered(self, labels: Vector) -> RowNumbers:
        part = self.partition
        order = _row_numbers(part, _asked(part, lambda: part.order(labels, self.seed)), "puts in order")
        return _each_once(part, order, labels.size)

    def _shards(self, dealt: Any) -> list[RowNumbers]:
        """What `deal` returns, as an array for each worker."""
        name = self.partition.name
        if not isinstance(dealt, Sequence | np.ndarray):
            raise UserError(f"{_WHERE}: '{name}' assigns {shown(dealt)}; it should be sample numbers (m,) of each worker")
        if len(dealt) != self.n:
            raise UserError(f"{_WHERE}: '{name}' assigns samples to {len(dealt)} workers, and there are {self.n}")
        return [_row_numbers(self.partition, shard, f"gives worker {i}") for i, shard in enumerate(dealt)]


def refuse_idle_workers(n: int, rows: int) -> None:
    if n > rows:
        raise UserError(f"workers.count: {n} workers are more than the {rows} samples")


def _asked(part: Partition, ask: Callable[[], Any]) -> Any:
    """The result of a part's method; a UserError that names the part if it refuses its rows, or fails."""
    try:
        return ask()
    except ValueError as error:
        raise UserError(f"{_WHERE}: '{part.name}': {error}") from error
    except Exception as error:
        why = "it defines neither deal nor order" if isinstance(error, NotImplementedError) else f"{type(error).__name__}: {error}"
        raise UserError(f"{_WHERE}: '{part.name}' fails: {why}") from error


def _row_numbers(part: Partition, given: Any, verb: str) -> RowNumbers:
    """Numbers of rows (m,); UserError if they are something else."""
    try:
        rows = np.asarray(given)
    except ValueError:  # lists of unequal length
        rows = np.empty((0, 0))
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise UserError(f"{_WHERE}: '{part.name}' {verb} {shown(given)}; it should be sample numbers, whole, of shape (m,)")
    return rows.astype(np.int64)


def _each_once(part: Partition, rows: RowNumbers, N: int) -> RowNumbers:
    """The rows; UserError unless they are 0 … N − 1, each once."""
    beyond = rows[(rows < 0) | (rows >= N)]
    if beyond.size:
        raise UserError(f"{_WHERE}: '{part.name}' assigns sample {beyond[0]}; the {N} samples are numbered from 0 to {N - 1}")
    times = np.bincount(rows, minlength=N)
    for wrong, verb in ((times > 1, "assigns twice"), (times == 0, "leaves out")):
        if wrong.any():
            which = f"{wrong.sum()} of {N} samples, such as sample {wrong.argmax()}"
            raise UserError(f"{_WHERE}: '{part.name}' {verb} {which}; every sample goes to one worker")
    return rows
