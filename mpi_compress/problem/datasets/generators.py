"""The contract of a data generator: a recipe whose parameters are keys of a job's [data] table."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy  # which loads sparse where it is first used

from mpi_compress.core.errors import UserError
from mpi_compress.core.fields import within
from mpi_compress.core.registry import Part, Registry
from mpi_compress.messages.kinds import Vector

Samples = Annotated[int, within("[2, inf)")]  # a number of them
Rng = np.random.Generator
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
        made = self.make()
        width = None
        for chunk in [made] if isinstance(made, tuple) or not isinstance(made, Iterable) else made:
            if not (isinstance(chunk, tuple) and len(chunk) == 2):
                raise self._complaint(chunk)
            samples, labels = (part if scipy.sparse.issparse(part) else np.asarray(part) for part in chunk)
            if samples.ndim != 2 or labels.shape != samples.shape[:1] or {samples.dtype.kind, labels.dtype.kind} - {*"fiub"}:
                raise self._complaint((samples, labels))
            width = samples.shape[1] if width is None else width
            if samples.shape[1] != width:
                raise UserError(f"data.generator: make of {self.name} gives chunks of {width} and of {samples.shape[1]} columns")
            yield samples, labels

    def _complaint(self, made: Any) -> UserError:
        parts = made if isinstance(made, tuple) else (made,)
        given = ", ".join(f"{p.dtype} {p.shape}" if hasattr(p, "dtype") else type(p).__name__ for p in parts)
        wanted = "numbers (m, d), an array or a CSR matrix, with their labels (m,)"
        return UserError(f"data.generator: make of {self.name} gives {given}; it should be {wanted}")

    def size(self) -> tuple[int, int, float] | None:
        """N, d and an estimate of the nonzeros (N·d unless overridden), if they are known before anything is made."""
        n, dim = getattr(self, "samples", None), getattr(self, "dim", None)
        return (n, dim, float(n) * dim) if n is not None and dim is not None else None

    def blocks(self, n: int, rows: int) -> Iterator[tuple[Rng, int]]:
        """A random stream and a number of rows for each block of n rows; the last one may be shorter."""
        for c, start in enumerate(range(0, n, rows)):
            yield self.stream(1, c), min(rows, n - start)

    def stream(self, *address: int) -> Rng:
        """A random stream for an address in this set, such as a chunk's number; streams do not depend on each other."""
        return np.random.default_rng([self.seed, *address])


generators: Registry[Generator] = Registry("generator", Generator)
