"""A partition's outcome for a set: rows in the order in which they are assigned, and where each worker's begin."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mpi_compress.core.errors import UserError
from mpi_compress.core.registry import parameters
from mpi_compress.core.sources import source_of
from mpi_compress.problem.partitions.base import Partition, RowNumbers, Unlucky, Vector, partitions, sizes_of, slices

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
    def follows_seed(self) -> bool:
        """True if another seed assigns other rows."""
        return self.partition.seeded or isinstance(sizes_of(self.partition, self.n), float | int)

    @property
    def key(self) -> str:
        """Splits of one set that differ have different keys."""
        part = self.partition
        given = {name: value for name in parameters(type(part)) if (value := getattr(part, name)) is not None}
        text = part.name + (f" {given}" if given else "")
        text += f" by {self.seed}" if self.follows_seed else ""
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
            return self._asked(lambda: part.order(labels, self.seed)), None
        refuse_idle_workers(self.n, N)
        if self._has_order:
            rows, cuts = self._asked(lambda: part.order(labels, self.seed)), slices(part, N, self.n, rng)
        else:
            shards = self._asked(lambda: part.deal(labels, self.n, rng))
            rows, cuts = np.concatenate(shards), np.cumsum([0, *(shard.size for shard in shards)])
        if (idle := np.flatnonzero(np.diff(cuts) <= 0)).size:
            raise UserError(f"{_WHERE}: '{part.name}' gives worker {idle[0]} of {self.n} no samples, of {N}")
        return rows, cuts

    def _asked(self, ask: Callable[[], Any]) -> Any:
        """The result of the partition's method; a UserError that names it if it refuses its rows."""
        try:
            return ask()
        except UserError:
            raise
        except ValueError as error:
            of_seed = f" with seed {self.seed}" if isinstance(error, Unlucky) else ""
            raise UserError(f"{_WHERE}: '{self.partition.name}'{of_seed}: {error}") from error


def refuse_idle_workers(n: int, rows: int) -> None:
    if n > rows:
        raise UserError(f"workers.count: {n} workers are more than the {rows} samples")
