"""Kinds with some of the coordinates: with one magnitude, with values and a magnitude, or drawn from a seed that both ends have."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import inf, log2
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.core.sums import added
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.fields import Reader, count_bytes, float_bytes, seed_bytes
from mpi_compress.messages.formats import FloatFormat
from mpi_compress.messages.kinds.base import (
    Bytes,
    Compressed,
    Flags,
    FromSeed,
    Indices,
    Known,
    Sparse,
    Vector,
    index_bits,
    replaced,
)

__all__ = [
    "Cyclic", "Drawn", "Hybrid", "Permuted", "SignSparse", "SparseRows", "cyclic_indices", "permuted_indices", "squared_norm",
    "uniform_indices",
]  # fmt: skip


@dataclass(eq=False)
class SparseRows:
    """m sparse vectors of `dim` coordinates, one after the other, to be compressed, written and read by one call."""

    dim: int
    indices: Indices  # (T,) of all vectors, those of each increasing
    values: Vector  # (T,)
    ends: NDArray[np.int64]  # (m,) where each vector ends

    def __iter__(self) -> Iterator[Sparse]:
        finite, start = bool(kernels.all_finite(self.values)), 0
        for end in self.ends.tolist():
            yield Sparse(self.dim, self.indices[start:end], self.values[start:end], finite)
            start = end


@dataclass(frozen=True, eq=False)
class SignSparse(Compressed):
    """T coordinates ±magnitude, the others 0.  Paper bits: FPP + T⌈log2 d⌉, CAT eq. 5, which omits the T sign bits."""

    floats = ("magnitude",)
    dim: int
    indices: Indices  # (T,) increasing
    negative: Flags  # (T,) True where the value is −magnitude
    magnitude: float

    @classmethod
    def at(cls, v: Vector, indices: Indices, magnitude: float) -> "SignSparse":
        """magnitude·sign(v_j) at the increasing `indices`, without those where v (d,) is 0."""
        values = kernels.taken(v, indices)
        if not np.all(values):
            indices, values = indices[values != 0], values[values != 0]
        return cls(v.size, indices, values < 0, magnitude)

    @property
    def elements(self) -> int:
        return self.indices.size

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.signs_add(self.indices, self.negative, scale * self.magnitude, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return fpp + self.indices.size * index_bits(self.dim) * indices_counted

    def sparse(self) -> Sparse:
        return Sparse(self.dim, self.indices, np.where(self.negative, -self.magnitude, self.magnitude))

    def checked(self, dim: int) -> "SignSparse":
        super().checked(dim)
        indices, order = arrays.increasing(self.indices, dim, "indices")
        negative = arrays.flags(self.negative, indices.shape, "negative")[order]
        return SignSparse(dim, indices, negative, arrays.number(self.magnitude, "magnitude"))


@dataclass(frozen=True, eq=False)
class Hybrid(Compressed):
    """s coordinates with their values, and r other coordinates ±magnitude (GSpar §2.3: Q_A and Q_B). Paper bits, b = FPP:
    min(s(b + log2 d) + r·log2 d + b, s·b + 2d + b), GSpar §2.3, which omits the r sign bits."""

    floats = ("values", "magnitude")
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

    def sparse(self) -> Sparse:
        indices, values = np.empty(self.elements, dtype=np.uint32), np.empty(self.elements)
        kernels.merge(self.indices, self.values, self.sign_indices, self.negative, self.magnitude, indices, values)
        return Sparse(self.dim, indices, values)

    def checked(self, dim: int) -> "Hybrid":
        valued = Sparse(self.dim, self.indices, self.values).checked(dim)
        sign_indices, order = arrays.increasing(self.sign_indices, dim, "sign_indices")
        if np.intersect1d(valued.indices, sign_indices).size:
            raise ValueError("an index is among indices and among sign_indices")
        negative = arrays.flags(self.negative, sign_indices.shape, "negative")[order]
        magnitude = arrays.number(self.magnitude, "magnitude")
        return Hybrid(dim, valued.indices, valued.values, sign_indices, negative, magnitude)


def squared_norm(c: Compressed) -> float:
    """‖c‖²; infinite where it overflows."""
    if isinstance(c, Hybrid):
        return float(c.values @ c.values) + c.sign_indices.size * c.magnitude * c.magnitude
    sparse = c.sparse()
    try:
        return kernels.norm(c.dense() if sparse is None else sparse.values) ** 2
    except OverflowError:
        return inf


class SharedSeed(FromSeed):
    """Values at coordinates that sender and receiver draw from one seed.  Paper bits: T·FPP."""

    floats = ("values",)
    values: Vector  # (T,)

    @property
    @abstractmethod
    def indices(self) -> Indices:
        """(T,) increasing."""

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.scatter_add(self.indices, self.values, scale, out)

    def sparse(self) -> Sparse:
        return Sparse(self.dim, self.indices, self.values)

    def checked(self, dim: int) -> Self:
        super().checked(dim)
        return replaced(self, values=arrays.floats(self.values, self.indices.shape, "values"))


@dataclass(frozen=True, eq=False)
class Drawn(SharedSeed):
    """Values at coordinates that sender and receiver draw from one seed, each with chance κ.  Paper bits: T·FPP."""

    layouts, seed_type = ("fixed",), "<u8"
    dim: int
    seed: int  # 64 bits
    kappa: float  # κ; known to both ends
    values: Vector  # (T,)

    @cached_property
    def indices(self) -> Indices:
        return uniform_indices(self.dim, self.kappa, np.random.Generator(np.random.Philox(key=self.seed)))

    @classmethod
    def read(cls, r: Reader, dim: int, known: Known) -> "Drawn":
        seed, expected = r.whole("<u8", "a seed"), known["kappa"] * dim
        r.room_for(int(expected - 20 * expected**0.5), r.form.bits, "floats")  # 20 standard deviations below the mean
        drawn = Drawn(dim, seed, known["kappa"], np.empty(0))
        return replace(drawn, values=r.floats(drawn.indices.size))


def uniform_indices(dim: int, kappa: float, rng: np.random.Generator) -> Indices:
    """Increasing indices below dim, each drawn with chance κ: the gaps between them are geometric."""
    expected = kappa * dim
    many = int(expected + 6 * expected**0.5) + 16  # nearly always enough in one draw
    at = np.cumsum(_gaps(dim, kappa, many, rng)) - 1
    while at[-1] < dim:
        at = np.append(at, at[-1] + np.cumsum(_gaps(dim, kappa, many, rng)))
    return at[: np.searchsorted(at, dim)].astype(np.uint32)


def _gaps(dim: int, kappa: float, many: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """`many` geometric numbers. Those above dim, which may not fit 64 bits, are set to dim + 1 so that their sums fit."""
    with np.errstate(over="ignore", invalid="ignore"):
        drawn = rng.geometric(kappa, many)
    return np.where((drawn < 1) | (drawn > dim), dim + 1, drawn)


@dataclass(frozen=True, eq=False)
class OneOfParts(SharedSeed):
    """Values at one worker's coordinates in a pattern that sender and receiver draw from one seed.  Paper bits: T·FPP."""

    dim: int
    seed: int  # 32 bits; all workers of a round have the same
    part: int  # which worker
    parts: int  # how many workers; known to both ends

    def checked(self, dim: int) -> Self:
        if not (0 <= self.seed < 2**32 and 0 <= self.part < self.parts and 1 <= getattr(self, "copies", 1) <= self.parts):
            raise ValueError(f"seed = {self.seed} and part = {self.part} of {self.parts} name no worker of a pattern")
        return super().checked(dim)

    def write(self, form: FloatFormat) -> Bytes:
        return np.concatenate([seed_bytes(self.seed, "<u4"), count_bytes(self.part), float_bytes(self.values, form)])

    @classmethod
    def read(cls, r: Reader, dim: int, known: Known) -> Self:
        seed, parts = r.whole("<u4", "a seed"), known["parts"]
        part = r.count(most=parts - 1)
        r.room_for(dim * known.get("copies", 1) // parts, r.form.bits, "floats of a worker")
        content: Any = cls(**{"dim": dim, "seed": seed, "part": part, "values": np.empty(0), **known})
        return replace(content, values=r.floats(content.indices.size))


@dataclass(frozen=True, eq=False)
class Permuted(OneOfParts):
    """The pattern is a random permutation, of which each worker has one block."""

    values: Vector  # (T,)

    @cached_property
    def indices(self) -> Indices:
        return permuted_indices(self.dim, self.seed, self.part, self.parts)


def permuted_indices(dim: int, seed: int, part: int, parts: int) -> Indices:
    """The increasing coordinates of a block: d ≥ parts: of near-equal blocks of a permutation, which go to parts at random;
    d < parts: one coordinate each, every coordinate as often as another, or once more."""
    order, place = _permutations(dim, seed, parts)
    at = int(place[part])
    return np.sort(order[at * dim // parts : (at + 1) * dim // parts] if parts <= dim else order[[at % dim]])


@lru_cache(maxsize=4)
def _permutations(dim: int, seed: int, parts: int) -> tuple[Indices, NDArray[np.int64]]:
    """A permutation of the coordinates, and one of the blocks: n workers draw the same, so it is drawn once."""
    rng = np.random.Generator(np.random.Philox(key=seed))
    return rng.permutation(dim).astype(np.uint32), rng.permutation(parts)


@dataclass(frozen=True, eq=False)
class Cyclic(OneOfParts):
    """The pattern has each coordinate at `copies` workers."""

    copies: int  # how many of them have a coordinate; known to both ends
    values: Vector  # (T,)

    @cached_property
    def indices(self) -> Indices:
        return cyclic_indices(self.dim, self.seed, self.part, self.parts, self.copies)


def cyclic_indices(dim: int, seed: int, part: int, parts: int, copies: int) -> Indices:
    """The increasing coordinates j of a worker: of places 0 … parts − 1, assigned to workers by the seed, coordinate j is at
    copies·j, copies·j + 1, … of them, `copies` in all, counted round and round."""
    place = int(np.random.Generator(np.random.Philox(key=seed)).permutation(parts)[part])
    return np.flatnonzero((place - copies * np.arange(dim)) % parts < copies).astype(np.uint32)
