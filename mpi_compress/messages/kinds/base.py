"""The contract of a compressed vector, and the arrays that kinds hold."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mpi_compress.kernels.vectors import norm

if TYPE_CHECKING:
    from mpi_compress.messages.kinds.sparse import Sparse

Vector = NDArray[np.float64]
Indices = NDArray[np.uint32]
Flags = NDArray[np.bool_]
Bytes = NDArray[np.uint8]


def index_bits(dim: int) -> int:
    """⌈log2 d⌉, the width of a field that holds any index of a vector with d coordinates."""
    return (dim - 1).bit_length()


class Compressed(ABC):
    """A compressed vector of `dim` coordinates. It takes the memory of what it holds, not of d numbers."""

    if TYPE_CHECKING:  # a field of some kinds, a property of others

        @property
        def dim(self) -> int: ...

    @property
    @abstractmethod
    def elements(self) -> int:
        """The number of coordinates sent."""

    @abstractmethod
    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        """out += scale · this, out (dim,)."""

    @abstractmethod
    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        """The paper's formula for this kind of message; `fpp` is the floating-point precision in bits."""

    @abstractmethod
    def is_finite(self) -> bool:
        """True if every value is a finite number."""

    def checked(self, dim: int) -> "Compressed":
        """The same vector with arrays as kernels need them: of the right types and sizes, contiguous, indices increasing.

        A compressor or codec of a user's may give indices in any order, and arrays of any type that holds such numbers.

        Raises:
            ValueError: it is no vector of `dim` coordinates.
        """
        if self.dim != dim:
            raise ValueError(f"dim = {self.dim} was given, and the vector has {dim} coordinates")
        return self

    def squared_norm(self) -> float:
        """‖this‖²."""
        sparse = self.sparse()
        return norm(self.dense() if sparse is None else sparse.values) ** 2

    def sparse(self) -> "Sparse | None":
        """The same vector as indices and values, if it holds such; None for dense kinds."""
        return None

    def dense(self) -> Vector:
        """This vector as a new array (dim,)."""
        out = np.zeros(self.dim)
        self.add_to(out)
        return out
