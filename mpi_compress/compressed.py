"""What a compressor makes of a vector, and what a receiver decodes: it costs what it holds, not d."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpi_compress.kernels import vectors as kernels

Vector = NDArray[np.float64]
Indices = NDArray[np.uint32]


def index_bits(dim: int) -> int:
    """⌈log2 d⌉, the width of a field that holds any index of a vector with d coordinates."""
    return (dim - 1).bit_length()


class Compressed(ABC):
    """A compressed vector of `dim` coordinates."""

    dim: int

    @property
    @abstractmethod
    def elements(self) -> int:
        """Coordinates sent."""

    @abstractmethod
    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        """out += scale · this, out (dim,)."""

    @abstractmethod
    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        """The paper's formula for this kind of message; `fpp` is the floating-point precision in bits."""

    @abstractmethod
    def is_finite(self) -> bool:
        """Whether every value is a finite number."""

    def dense(self) -> Vector:
        """This as a new array (dim,)."""
        out = np.zeros(self.dim)
        self.add_to(out)
        return out


@dataclass(frozen=True, eq=False)
class Dense(Compressed):
    """All coordinates.  Paper bits: d·FPP."""

    values: Vector  # (d,)

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.values.size

    @property
    def elements(self) -> int:
        return self.values.size

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.dense_add(self.values, scale, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.values.size * fpp

    def is_finite(self) -> bool:
        return bool(kernels.all_finite(self.values))


@dataclass(frozen=True, eq=False)
class Sparse(Compressed):
    """T coordinates with their values, the others 0.  Paper bits: T(⌈log2 d⌉ + FPP), CAT eq. 5."""

    dim: int
    indices: Indices  # (T,) increasing
    values: Vector  # (T,)

    @property
    def elements(self) -> int:
        return self.indices.size

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.scatter_add(self.indices, self.values, scale, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.indices.size * self.bits_per_element(self.dim, fpp, indices_counted)

    @staticmethod
    def bits_per_element(dim: int, fpp: int, indices_counted: bool = True) -> int:
        return index_bits(dim) * indices_counted + fpp

    def is_finite(self) -> bool:
        return bool(kernels.all_finite(self.values))


class Averager:
    """Means of compressed vectors, added in the order given, whatever ranks they came from.

    The mean of sparse vectors is sparse: it holds the union of their indices and costs what they hold. One averager keeps its
    scratch space (d,) from round to round.
    """

    def __init__(self, dim: int):
        self.dim = dim
        self._total = np.zeros(dim)
        self._seen = np.zeros(dim, dtype=np.bool_)

    def mean(self, parts: Sequence[Compressed]) -> Compressed:
        """(1/n) Σ parts, for n = len(parts)."""
        sparse = [p for p in parts if isinstance(p, Sparse)]
        held = sum(p.elements for p in sparse)
        if len(sparse) == len(parts) and 4 * held <= 3 * self.dim:
            return self._mean_of_sparse(sparse, held)
        total = np.zeros(self.dim)
        for part in parts:
            part.add_to(total)
        total /= len(parts)
        return Dense(total)

    def _mean_of_sparse(self, parts: Sequence[Sparse], held: int) -> Sparse:
        touched = np.empty(held, dtype=np.uint32)
        n = 0
        for part in parts:
            n = kernels.scatter_add_noting(part.indices, part.values, self._total, self._seen, touched, n)
        indices = np.sort(touched[:n])
        values = np.empty(n)
        kernels.take_and_clear(indices, float(len(parts)), self._total, self._seen, values)
        return Sparse(self.dim, indices, values)
