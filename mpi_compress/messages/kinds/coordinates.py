"""Kinds with some of the coordinates: with one magnitude, with values and a magnitude, or drawn from a seed that both ends have."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import log2
from typing import Any, ClassVar, Self

import numpy as np

from mpi_compress.core import arrays
from mpi_compress.core.streams import keyed
from mpi_compress.core.sums import added
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages import fields as written
from mpi_compress.messages.fields import Field, Reader
from mpi_compress.messages.formats import FloatFormat
from mpi_compress.messages.kinds.base import (
    Compressed,
    Flags,
    FromSeed,
    Indices,
    Places,
    Ragged,
    SideInfo,
    Sparse,
    Vector,
    in_turn,
    index_bits,
    own_fields,
    replaced,
)

__all__ = [
    "Cyclic", "Drawn", "Hybrid", "Permuted", "SignSparse", "cyclic_indices", "permuted_indices", "squared_norm", "uniform_indices",
]  # fmt: skip


@dataclass(eq=False)
class SignSparse(Ragged):
    """T coordinates ±magnitude, the others 0.  Paper bits: FPP + T⌈log2 d⌉, CAT eq. 5, which omits the T sign bits."""

    floats, ragged = ("magnitude",), {"indices": "ends", "negative": "ends"}
    dim: int
    indices: Indices  # (T,) increasing in each row
    negative: Flags  # (T,) True where the value is −magnitude
    magnitude: Any
    ends: Places | None = None

    @classmethod
    def of(cls, top: Sparse, magnitude: Any) -> "SignSparse":
        """magnitude (m,)·sign(v_j) of the values v_j of rows, without those that are 0."""
        ends: Any = top.ends
        if not np.all(top.values):
            held = top.values != 0
            top, ends = Sparse(top.dim, top.indices[held], top.values[held]), np.append(0, np.cumsum(held))[ends]
        return cls(top.dim, top.indices, top.values < 0, magnitude, ends)

    def add_rows(self, out: Vector, scale: float, to: Places) -> None:
        kernels.signs_add(self.indices, self.negative, self.ends, scale * self.magnitude, to, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> Any:
        return fpp + self.counts * index_bits(self.dim) * indices_counted

    def sparse(self) -> Sparse:
        magnitudes = self.magnitude if self.ends is None else np.repeat(self.magnitude, self.counts)
        return Sparse(self.dim, self.indices, np.where(self.negative, -magnitudes, magnitudes), self.ends)

    def checked(self, dim: int) -> "SignSparse":
        super().checked(dim)
        indices, order = arrays.increasing(self.indices, dim, "indices")
        negative = arrays.flags(self.negative, indices.shape, "negative")[order]
        return SignSparse(dim, indices, negative, arrays.number(self.magnitude, "magnitude"))


@dataclass(eq=False)
class Hybrid(Ragged):
    """s coordinates with their values, and r other coordinates ±magnitude (GSpar §2.3: Q_A and Q_B). Paper bits, b = FPP:
    min(s(b + log2 d) + r·log2 d + b, s·b + 2d + b), GSpar §2.3, which omits the r sign bits."""

    floats = ("values", "magnitude")
    ragged = {"indices": "ends", "values": "ends", "sign_indices": "sign_ends", "negative": "sign_ends"}  # noqa: RUF012
    dim: int
    indices: Indices  # (s,) increasing in each row
    values: Vector  # (s,)
    sign_indices: Indices  # (r,) increasing in each row, none of them in `indices`
    negative: Flags  # (r,) True where the value is −magnitude
    magnitude: Any
    ends: Places | None = None
    sign_ends: Places | None = None

    @property
    def sign_counts(self) -> Any:
        """r; of rows (m,)."""
        return self.sign_indices.size if self.sign_ends is None else kernels.lengths_of(self.sign_ends)

    @property
    def elements(self) -> Any:
        return self.counts + self.sign_counts

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> Any:
        indices = self.elements * log2(self.dim) if indices_counted else 0.0
        return self.counts * fpp + fpp + np.minimum(indices, 2 * self.dim)

    def coded_bits(self, fpp: int) -> float:
        """The shorter of GSpar §2.3's two forms, the string entropy coded: min{(s + r) log2 d, Σ d_ℓ log2(d/d_ℓ)} + s·b + b.

        d_ℓ are the coordinates that are 0, +magnitude, −magnitude, or have a value. `paper_bits` has the paper's bound on it, 2d.
        """
        s, r, minus = self.indices.size, self.sign_indices.size, int(np.count_nonzero(self.negative))
        counts = (self.dim - s - r, r - minus, minus, s)
        string = added(count * log2(self.dim / count) for count in counts if count)
        return min((s + r) * log2(self.dim), string) + s * fpp + fpp

    def sparse(self) -> Sparse:
        c = self.as_rows()
        indices, values = kernels.merge(c.indices, c.values, c.ends, c.sign_indices, c.negative, c.magnitude, c.sign_ends)
        return Sparse(self.dim, indices, values, None if self.rows is None else c.ends + c.sign_ends)  # type: ignore[operator]

    def checked(self, dim: int) -> "Hybrid":
        valued = Sparse(self.dim, self.indices, self.values).checked(dim)
        sign_indices, order = arrays.increasing(self.sign_indices, dim, "sign_indices")
        if np.intersect1d(valued.indices, sign_indices).size:
            raise ValueError("an index is among indices and among sign_indices")
        negative = arrays.flags(self.negative, sign_indices.shape, "negative")[order]
        magnitude = arrays.number(self.magnitude, "magnitude")
        return Hybrid(dim, valued.indices, valued.values, sign_indices, negative, magnitude)


def squared_norm(c: Compressed) -> Any:
    """‖c‖², of rows (m,); infinite where it overflows."""
    if c.rows is not None:
        return np.array([squared_norm(c[i]) for i in range(c.rows)])
    if isinstance(c, Hybrid):
        return float(c.values @ c.values) + c.sign_indices.size * c.magnitude * c.magnitude
    sparse = c.sparse()
    return kernels.squared_norm(c.dense() if sparse is None else sparse.values)


class SharedSeed(FromSeed, Ragged):
    """Values at coordinates that sender and receiver draw from one seed.  Paper bits: T·FPP."""

    floats = ("values",)
    values: Vector  # (T,)

    @abstractmethod
    def drawn(self) -> Indices:
        """The increasing coordinates (T,) of one vector."""

    @cached_property
    def indices(self) -> Indices:
        """(T,) increasing in each row."""
        return self.drawn() if self.rows is None else np.concatenate([self[i].drawn() for i in range(self.rows)])

    @property
    def number_ends(self) -> Any:
        return self.ends

    def sparse(self) -> Sparse:
        return Sparse(self.dim, self.indices, self.values, self.ends)

    def checked(self, dim: int) -> Self:
        super().checked(dim)
        return replaced(self, values=arrays.floats(self.values, self.indices.shape, "values"))

    def filled(self, values: Callable[[Places, Indices], Vector]) -> Self:
        """These rows, which have no values yet, with those of so many places: their rows, and their coordinates."""
        each = [self._bare(i).drawn() for i in range(self.seed.size)]
        counts, indices = np.array([drawn.size for drawn in each]), np.concatenate(each)
        full = replaced(self, values=values(np.repeat(in_turn(counts.size), counts), indices), ends=np.cumsum(counts))
        vars(full)["indices"] = indices
        return full

    def read_values(self, r: Reader) -> Self:
        """These rows, which have no values yet, with those that `r` reads."""
        return self.filled(lambda row, _: r.floats(np.bincount(row, minlength=self.seed.size).cumsum()))

    def _bare(self, i: int) -> Self:
        """Row i of rows without values."""
        held = {name: getattr(self, name)[i].item() for name in own_fields(type(self))}
        return replaced(self, **held, values=np.empty(0), ends=None)


@dataclass(eq=False)
class Drawn(SharedSeed):
    """Values at coordinates that sender and receiver draw from one seed, each with chance κ.  Paper bits: T·FPP."""

    layouts, seed_type, shared = ("fixed",), "<u8", ("dim", "kappa")
    dim: int
    seed: Any  # 64 bits
    kappa: float  # κ; known to both ends
    values: Vector  # (T,)
    ends: Places | None = None

    def drawn(self) -> Indices:
        return uniform_indices(self.dim, self.kappa, keyed(self.seed))

    @classmethod
    def read(cls, r: Reader, dim: int, known: SideInfo) -> "Drawn":
        seed, expected = r.wholes("<u8", "a seed"), known["kappa"] * dim
        r.room_for(int(expected - 20 * expected**0.5), r.form.bits, "floats")  # 20 standard deviations below the mean
        return Drawn(dim, seed, known["kappa"], np.empty(0)).read_values(r)


def uniform_indices(dim: int, kappa: float, rng: np.random.Generator) -> Indices:
    """Increasing indices below dim, each drawn with chance κ: the gaps between them are geometric."""
    expected = kappa * dim
    many = int(expected + 6 * expected**0.5) + 16  # nearly always enough in one draw
    at = np.cumsum(_gaps(dim, kappa, many, rng)) - 1
    while at[-1] < dim:
        at = np.append(at, at[-1] + np.cumsum(_gaps(dim, kappa, many, rng)))
    return at[: np.searchsorted(at, dim)].astype(np.uint32)


def _gaps(dim: int, kappa: float, many: int, rng: np.random.Generator) -> Places:
    """`many` geometric numbers. Those above dim, which may not fit 64 bits, are set to dim + 1 so that their sums fit."""
    with np.errstate(over="ignore", invalid="ignore"):
        drawn = rng.geometric(kappa, many)
    return np.where((drawn < 1) | (drawn > dim), dim + 1, drawn)


class OneOfParts(SharedSeed):
    """Values at one worker's coordinates in a pattern that sender and receiver draw from one seed.  Paper bits: T·FPP."""

    shared: ClassVar[tuple[str, ...]] = ("dim", "parts")
    dim: int
    seed: Any  # 32 bits; all workers of a round have the same
    part: Any  # which worker
    parts: int  # how many workers; known to both ends

    def checked(self, dim: int) -> Self:
        if not (0 <= self.seed < 2**32 and 0 <= self.part < self.parts and 1 <= getattr(self, "copies", 1) <= self.parts):
            raise ValueError(f"seed = {self.seed} and part = {self.part} of {self.parts} name no worker of a pattern")
        return super().checked(dim)

    def write(self, form: FloatFormat) -> list[Field]:
        seed, values = super().write(form)
        return [seed, written.counts(self.part), values]

    @classmethod
    def read(cls, r: Reader, dim: int, known: SideInfo) -> Self:
        seed, parts = r.wholes("<u4", "a seed"), known["parts"]
        part = r.counts(most=parts - 1)
        r.room_for(dim * known.get("copies", 1) // parts, r.form.bits, "floats of a worker")
        return cls(**{"dim": dim, "seed": seed, "part": part, "values": np.empty(0), **known}).read_values(r)


@dataclass(eq=False)
class Permuted(OneOfParts):
    """The pattern is a random permutation, of which each worker has one block."""

    dim: int
    seed: Any
    part: Any
    parts: int
    values: Vector  # (T,)
    ends: Places | None = None

    def drawn(self) -> Indices:
        return permuted_indices(self.dim, self.seed, self.part, self.parts)


def permuted_indices(dim: int, seed: int, part: int, parts: int) -> Indices:
    """The increasing coordinates of a block: d ≥ parts: of near-equal blocks of a permutation, which go to parts at random;
    d < parts: one coordinate each, every coordinate as often as another, or once more."""
    order, place = _permutations(dim, seed, parts)
    at = int(place[part])
    return np.sort(order[at * dim // parts : (at + 1) * dim // parts] if parts <= dim else order[[at % dim]])


@lru_cache(maxsize=4)
def _permutations(dim: int, seed: int, parts: int) -> tuple[Indices, Places]:
    """A permutation of the coordinates, and one of the blocks: n workers draw the same, so it is drawn once."""
    rng = keyed(seed)
    return rng.permutation(dim).astype(np.uint32), rng.permutation(parts)


@dataclass(eq=False)
class Cyclic(OneOfParts):
    """The pattern has each coordinate at `copies` workers."""

    shared = ("dim", "parts", "copies")
    dim: int
    seed: Any
    part: Any
    parts: int
    copies: int  # how many of them have a coordinate; known to both ends
    values: Vector  # (T,)
    ends: Places | None = None

    def drawn(self) -> Indices:
        return cyclic_indices(self.dim, self.seed, self.part, self.parts, self.copies)


def cyclic_indices(dim: int, seed: int, part: int, parts: int, copies: int) -> Indices:
    """The increasing coordinates j of a worker: of places 0 … parts − 1, assigned to workers by the seed, coordinate j is at
    copies·j, copies·j + 1, … of them, `copies` in all, counted round and round."""
    place = int(keyed(seed).permutation(parts)[part])
    return np.flatnonzero((place - copies * np.arange(dim)) % parts < copies).astype(np.uint32)
