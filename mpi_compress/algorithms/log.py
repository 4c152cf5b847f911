"""What a method adds to the trace."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.algorithms.memories import one
from mpi_compress.core import arrays
from mpi_compress.core.blame import place_of
from mpi_compress.core.errors import UserError
from mpi_compress.messages.kinds import Vector
from mpi_compress.results.columns import TAKEN

_NUMBERS = "numbers, one for each column,"


@dataclass(frozen=True)
class Log:
    """Columns that a method adds to the trace, at logged rounds: from numbers of each worker, or from a vector of each."""

    columns: Sequence[str] = ()  # of /workers
    of_worker: Callable[[Any], Any] = lambda worker: ()  # one number for each column, from a worker's memory
    of_means: Callable[[Mapping[str, float], Any], Mapping[str, float]] = lambda means, node: means  # of /trace, of means and node
    vector: Callable[[Any], Vector | None] | None = None  # (d,) of a worker
    of_mean: Callable[[Vector, Any], Mapping[str, float]] = lambda mean, node: {}  # of /trace, from its mean, at rank 0
    of_rows: bool = False  # True: `of_worker` takes the memories of all workers as rows, and gives (m,) for each column

    def __post_init__(self) -> None:
        if isinstance(self.columns, str) or not all(isinstance(column, str) and column.isidentifier() for column in self.columns):
            raise ValueError(f'log: {self.columns!r} should be names of columns, such as ("height",)')
        if taken := sorted(TAKEN.intersection(self.columns)):
            raise ValueError(f"log: '{taken[0]}' is a column that every run has; give it another name")

    def numbers(self, workers: Any, m: int) -> Vector:
        """The numbers of m workers (m, L), one of each for each column, from their memories."""
        shape = m, len(self.columns)
        if not self.columns:
            return np.empty(shape)
        if self.of_rows:
            return np.array(self.of_worker(workers), dtype=np.float64).T
        try:
            given = np.asarray([self.of_worker(one(workers, i)) for i in range(m)])
            if given.shape != shape:
                arrays.floats(given[0], shape[1:], _NUMBERS)
            return arrays.floats(given, shape, _NUMBERS)
        except ValueError as error:
            raise UserError(f"log, of_worker: {error}{place_of(self.of_worker)}") from None

    def vectors(self, workers: Any, m: int) -> Vector:
        """The vectors of m workers (m, d); (m, 0) if they have none."""
        found = [self.vector(one(workers, i)) for i in range(m)] if self.vector else []
        return np.empty((m, 0)) if not found or found[0] is None else np.array(found)
