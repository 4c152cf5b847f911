"""The contract of a data generator: a recipe whose parameters are keys of a job's [data] table."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy  # which loads sparse where it is first used

from mpi_compress.core import arrays
from mpi_compress.core.errors import checked_at
from mpi_compress.core.fields import within
from mpi_compress.core.registry import Part, Registry
from mpi_compress.messages.kinds import Vector

Samples = Annotated[int, within("[2, inf)")]  # a number of them
Chunk = tuple[Any, Vector]  # samples, a SciPy CSR matrix or an array (rows, d), and their labels (rows,)


@dataclass(frozen=True)
class Generator(Part, ABC):
    """A synthetic data set: its parameters, its seed among them, decide every number."""

    paper: ClassVar[str] = ""
    real_labels: ClassVar[bool] = False  # labels are numbers to be fitted, not two classes
    seed: int = 0  # seed of the data's random numbers, apart from the job's seed

    @abstractmethod
    def make(self) -> Chunk | Iterator[Chunk]:
        """The whole set, or one chunk of rows after the other where the whole is not to be in memory."""

    def chunks(self) -> Iterator[Chunk]:
        """The set in chunks of rows, in order; UserError if `make` gives no such rows."""
        made, width = self.make(), None
        for chunk in [made] if isinstance(made, tuple) or not isinstance(made, Iterable) else made:
            samples, labels = checked_at(f"data.generator: make of {self.name}", partial(_rows, chunk, width))
            width = samples.shape[1]
            yield samples, labels

    def size(self) -> tuple[int, int, float] | None:
        """N, d and an estimate of the nonzeros (N·d unless overridden), if they are known before anything is made."""
        n, dim = getattr(self, "samples", None), getattr(self, "dim", None)
        return (n, dim, float(n) * dim) if n is not None and dim is not None else None

    def blocks(self, n: int, rows: int) -> Iterator[tuple[np.random.Generator, int]]:
        """A random stream and a number of rows for each block of n rows; the last one may be shorter."""
        for c, start in enumerate(range(0, n, rows)):
            yield self.stream(1, c), min(rows, n - start)

    def stream(self, *address: int) -> np.random.Generator:
        """A random stream for an address in this set, such as a chunk's number; streams do not depend on each other."""
        return np.random.default_rng([self.seed, *address])


def _rows(chunk: Any, width: int | None) -> Chunk:
    """A chunk of samples (m, width) and labels (m,); ValueError if it is none."""
    samples, labels = arrays.pair(chunk, "samples (m, d), an array or a CSR matrix, and their labels (m,)")
    samples, labels = samples if scipy.sparse.issparse(samples) else np.asarray(samples), np.asarray(labels)
    if samples.ndim != 2 or labels.shape != samples.shape[:1] or any(a.dtype.kind not in "fiub" for a in (samples, labels)):
        given = f"{samples.dtype} {samples.shape} and {labels.dtype} {labels.shape}"
        raise ValueError(f"{given} were given; they should be numbers (m, d) and their labels (m,)")
    if width not in (None, samples.shape[1]):
        raise ValueError(f"chunks of {width} and of {samples.shape[1]} columns were given")
    return samples, labels


generators: Registry[Generator] = Registry("generator", Generator)
