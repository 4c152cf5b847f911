from dataclasses import dataclass
from math import isfinite, log2

import numpy as np

from mpi_compress.core import arrays
from mpi_compress.core.sums import added
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.kinds.base import Compressed, Flags, Indices, Sparse, Vector


@dataclass(frozen=True, eq=False)
class Hybrid(Compressed):
    """s coordinates with their values, and r other coordinates ±magnitude (GSpar §2.3: Q_A and Q_B).

    Paper bits, b = FPP: min(s(b + log2 d) + r·log2 d + b, s·b + 2d + b), GSpar §2.3, which omits the r sign bits.
    """

    dim: int
    indices: Indices  # (s,) increasing
    values: Vector  # (s,)
    sign_indices: Indices  # (r,) increasing, none of them in `indices`
    negative: Flags  # (r,) True where the value is −magnitude
    magnitude: float

    @property
    def elements(self) -> int:
        return self.indices.size + self.sign_indices.size

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.scatter_add(self.indices, self.values, scale, out)
        kernels.signs_add(self.sign_indices, self.negative, scale * self.magnitude, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        indices = self.elements * log2(self.dim) if indices_counted else 0.0
        return self.indices.size * fpp + fpp + min(indices, 2 * self.dim)

    def coded_bits(self, fpp: int) -> float:
        """The shorter of GSpar §2.3's two forms, the string entropy coded: min{(s + r) log2 d, Σ d_ℓ log2(d/d_ℓ)} + s·b + b.

        d_ℓ are the coordinates that are 0, +magnitude, −magnitude, or have a value. `paper_bits` has the paper's bound on it, 2d.
        """
        s, r, minus = self.indices.size, self.sign_indices.size, int(np.count_nonzero(self.negative))
        counts = (self.dim - s - r, r - minus, minus, s)
        string = added(count * log2(self.dim / count) for count in counts if count)
        return min((s + r) * log2(self.dim), string) + s * fpp + fpp

    def is_finite(self) -> bool:
        return isfinite(self.magnitude) and bool(kernels.all_finite(self.values))

    def sparse(self) -> Sparse:
        indices = np.empty(self.elements, dtype=np.uint32)
        values = np.empty(self.elements)
        kernels.merge(self.indices, self.values, self.sign_indices, self.negative, self.magnitude, indices, values)
        return Sparse(self.dim, indices, values)

    def squared_norm(self) -> float:
        return float(self.values @ self.values) + self.sign_indices.size * self.magnitude * self.magnitude

    def checked(self, dim: int) -> "Hybrid":
        super().checked(dim)
        indices, order = arrays.increasing(self.indices, dim, "indices")
        sign_indices, sign_order = arrays.increasing(self.sign_indices, dim, "sign_indices")
        if np.intersect1d(indices, sign_indices).size:
            raise ValueError("an index is among indices and among sign_indices")
        values = arrays.floats(self.values, indices.shape, "values")[order]
        negative = arrays.flags(self.negative, sign_indices.shape, "negative")[sign_order]
        return Hybrid(dim, indices, values, sign_indices, negative, arrays.number(self.magnitude, "magnitude"))
