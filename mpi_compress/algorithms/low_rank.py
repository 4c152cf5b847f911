"""The blocks of a vector as matrices, and factors of rank r that take their place (PowerSGD)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from mpi_compress.messages.kinds import Vector


@dataclass(frozen=True)
class LowRank:
    """The blocks of a vector (d,), in order: a block of one axis is a vector, any other a matrix M (n, m), m its last axis.

    A matrix has factors P (n, r) and Q (m, r), where r is the rank, or min{n, m} if that is less. All P lie one after the other in
    a vector (dim_P,), which ends with the blocks that are vectors; all Q lie in a vector (dim_Q,).
    """

    shapes: Sequence[Sequence[int]]
    rank: int

    @cached_property
    def sizes(self) -> list[tuple[int, int, int]]:
        """n, m and r of each block; a vector has m = r = 0."""
        found = [(prod(shape[:-1]), shape[-1]) if len(shape) > 1 else (shape[0], 0) for shape in self.shapes]
        return [(n, m, min(n, m, self.rank)) for n, m in found]

    @property
    def dim_P(self) -> int:
        return sum(n * (r or 1) for n, _, r in self.sizes)

    @property
    def dim_Q(self) -> int:
        return sum(m * r for _, m, r in self.sizes)

    def matrices(self, v: Vector, P: Vector, Q: Vector) -> Iterator[tuple[Vector, Vector, Vector]]:
        """Views of M (n, m), P (n, r), Q (m, r) of each matrix."""
        at = p = q = 0
        for n, m, r in self.sizes:
            if m:
                yield v[at : at + n * m].reshape(n, m), P[p : p + n * r].reshape(n, r), Q[q : q + m * r].reshape(m, r)
                p, q = p + n * r, q + m * r
            at += n * (m or 1)

    def vectors(self, v: Vector, P: Vector) -> Iterator[tuple[Vector, Vector]]:
        """Views of each block that is a vector, in v (d,) and in P (dim_P,)."""
        at, p = 0, sum(n * r for n, _, r in self.sizes)
        for n, m, _ in self.sizes:
            if not m:
                yield v[at : at + n], P[p : p + n]
                p += n
            at += n * (m or 1)

    def left(self, v: Vector, Q: Vector) -> Vector:
        """M Q of each matrix, and the vectors as they are: (dim_P,)."""
        P = np.empty(self.dim_P)
        for M, of_M, right in self.matrices(v, P, Q):
            of_M[:] = M @ right
        for block, sent in self.vectors(v, P):
            sent[:] = block
        return P

    def right(self, v: Vector, P: Vector) -> Vector:
        """Mᵀ P of each matrix: (dim_Q,)."""
        Q = np.empty(self.dim_Q)
        for M, left, of_M in self.matrices(v, P, Q):
            of_M[:] = M.T @ left
        return Q

    def orthogonalised(self, P: Vector) -> Vector:
        """P with orthonormal columns of the same span for each matrix, by Householder's QR; vectors as they are: (dim_P,)."""
        P = P.copy()
        for _, left, _ in self.matrices(np.empty(sum(n * (m or 1) for n, m, _ in self.sizes)), P, np.empty(self.dim_Q)):
            left[:] = np.linalg.qr(left)[0]
        return P

    def subtract(self, v: Vector, P: Vector, Q: Vector) -> None:
        """M ← M − P Qᵀ for each matrix of v (d,), in place."""
        for M, left, right in self.matrices(v, P, Q):
            M -= left @ right.T

    def subtract_vectors(self, v: Vector, P: Vector) -> None:
        """Subtract from each block of v (d,) that is a vector the one that P holds, in place."""
        for block, sent in self.vectors(v, P):
            block -= sent

    def product(self, P: Vector, Q: Vector) -> Vector:
        """P Qᵀ of each matrix, and the vectors as they are: (d,)."""
        v = np.zeros(sum(n * (m or 1) for n, m, _ in self.sizes))
        self.subtract(v, P, Q)
        self.subtract_vectors(v, P)
        return -v
