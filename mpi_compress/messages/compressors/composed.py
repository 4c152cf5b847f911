"""Compressors that are made of others: one for each block, and one after another."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from mpi_compress.core.registry import fact, is_ours
from mpi_compress.core.streams import Round, Rounds
from mpi_compress.messages.codecs import Codec, codecs
from mpi_compress.messages.codecs.base import FieldCodec, IndexCodec
from mpi_compress.messages.compressors.base import AmongWorkers, Compressor, among, compressors, coordinates_sent, has_state, one_of
from mpi_compress.messages.kinds import Blocks, Chained, Compressed, Drawn, Permuted, SideInfo, Sparse, Vector, no_coordinates
from mpi_compress.messages.kinds.grids import Whole


@compressors.register("blocks")
class BlockWise(AmongWorkers):
    """A compressor for each block of coordinates on its own: blocks of a model by their `sizes`, or `slices` of near-equal length.

    δ is the least and ω the largest of the blocks'; variances and bits add up. A share such as k = "1%" is one of each block, and
    at least one coordinate. ACCORDION's blocks are all in one regime, the run's.
    """

    of: str | dict[str, Any]  # the compressor of a block: its name, or { name = …, parameters }
    slices: int | None = None  # how many near-equal blocks; left out: sizes are given
    sizes: list[int] | Literal["model"] | None = None  # coordinates of each block, d in all; "model": the model's own blocks
    codec_of_block: str = ""  # the codec of each block; left out: the one that the block's compressor counts
    joined: bool = False  # true: coordinates that blocks send are one message of the whole vector, for a codec of the whole
    paper = "dist-EF-SGD (Zheng, Huang, Kwok 2019) §4; HT §C.5"

    @cached_property
    def each(self) -> Compressor:
        return compressors.build(self.of, "of")

    @fact
    def makes(self) -> type[Compressed]:
        return Sparse if self.joined else Blocks

    @fact
    def codec(self) -> str:
        return self.each.codec if self.joined else "blocks"

    def __post_init__(self) -> None:
        one_of(slices=self.slices, sizes=self.sizes)
        if self.sizes != "model" and min(self.sizes or [self.slices or 0]) < 1:
            raise ValueError("slices and sizes should be at least 1")
        each = self.each
        if has_state(each) or each.follows in ("step", "noise"):
            raise ValueError(f"{each.name} follows the run, which no block can: blocks are for compressors that do not")
        codec = self._codec
        if not (codec in codecs and codecs[codec]().writes(each.makes)):
            raise ValueError(f"codec_of_block = '{codec}' cannot write what '{each.name}' makes")
        if self.joined and self.codec_of_block:
            raise ValueError("joined = true leaves one message, so codec_of_block has no use: leave it out, and choose [up] codec")
        if self.joined and each.makes is not Sparse:
            raise ValueError(f"joined = true is for compressors that send coordinates with their values, and not '{each.name}'")

    def among(self, n: int) -> Self:
        return self.bound_to(each=among(self.each, n))

    @fact
    def follows(self) -> str:
        return self.each.follows

    def in_run(self, dim: int, **known: Any) -> Self:
        own: dict[str, Any] = {"each": self.each.in_run(dim, **known)}
        if self.sizes == "model" and "sizes" in known:
            own["sizes"] = [size for size in known["sizes"] if size > 0]
            if not own["sizes"]:
                none = "a loss of a margin has none; give slices or sizes"
                raise ValueError(f'sizes = "model" takes the blocks of a model, and {none}')
        return self.bound_to(**own)

    def lengths(self, dim: int) -> list[int]:
        """The number of coordinates of each block."""
        if self.slices:
            return [dim * (i + 1) // self.slices - dim * i // self.slices for i in range(self.slices)]
        if self.sizes == "model":
            raise ValueError('sizes = "model" needs a run of a model, whose blocks they are; give slices or sizes')
        return self.sizes or []

    def check(self, dim: int) -> None:
        lengths = self.lengths(dim)
        if sum(lengths) != dim:
            raise ValueError(f"sizes add up to {sum(lengths)}, and there are d = {dim} coordinates")
        if len(lengths) > dim:
            raise ValueError(f"slices = {self.slices} are more than the d = {dim} coordinates there are")
        for size in set(lengths):
            self.each.check(size)

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        ends = np.cumsum(lengths := self.lengths(V.shape[1]))
        blocks = [np.ascontiguousarray(V[:, end - size : end]) for end, size in zip(ends, lengths, strict=True)]
        parts = [self.each.compress_rows(block, t) for block in blocks]
        together = Blocks(tuple(parts), self._codec)
        joined = together.sparse() if self.joined else None
        return together if joined is None else joined

    @property
    def _codec(self) -> str:
        return self.codec_of_block or self.each.codec

    def known(self, dim: int) -> SideInfo:
        if self.joined:
            return {}
        return {"codec": self._codec, "blocks": tuple((size, self.each.makes, self.each.known(size)) for size in self.lengths(dim))}

    def delta(self, dim: int) -> float | None:
        return self._over(min, self.each.delta, dim)

    def omega(self, dim: int) -> float | None:
        return self._over(max, self.each.omega, dim)

    def variance(self, dim: int) -> float | None:
        return self._over(sum, self.each.variance, dim)

    def unbiased(self, dim: int) -> bool:
        return self.each.unbiased(dim)

    def _over(self, taken: Callable[..., float], stated: Callable[[int], float | None], dim: int) -> float | None:
        """What each block states, taken together; None where one states nothing."""
        found = [stated(size) for size in self.lengths(dim)]
        known = [value for value in found if value is not None]
        return taken(known) if len(known) == len(found) else None


@compressors.register("chain")
class Chain(AmongWorkers):
    """C₂(C₁(v)): `first` chooses coordinates, and `then` quantises the T values there, as one vector (T,).

    Norms are of these T values, so that precision follows what is sent; `sq` and `gspar` have one magnitude for many coordinates.

    - Both unbiased, draws independent: E‖C₂C₁v‖² ≤ (1 + ω₂)E‖C₁v‖² ≤ (1 + ω₂)(1 + ω₁)‖v‖², so ω = (1 + ω₁)(1 + ω₂) − 1.
    - C₁ keeps v on a set S, as top-k does, and drops the rest, which C₂ leaves 0: ‖v − C₂C₁v‖² = ‖v‖² − ‖v_S‖² + ‖v_S − C₂v_S‖²
      ≤ ‖v‖² − δ₂‖v_S‖², and ‖v_S‖² ≥ δ₁‖v‖² (in the mean), so δ = δ₁δ₂. An unbiased C₂ has δ₂ = 1 − ω₂ where ω₂ < 1, and
      C₂/(1 + ω₂) has δ₂ = 1/(1 + ω₂) for every ω₂: that is `shrunk`, for methods that need δ.

    ω₂ and δ₂ are those of vectors (k,), or (d,) where T varies.
    """

    first: str | dict[str, Any]  # the compressor that chooses coordinates, such as { name = "top-k", k = "10%" }
    then: str | dict[str, Any]  # the compressor of their values, such as { name = "dithering", levels = 4 }
    codec_of_first: str = ""  # the codec of the coordinates; left out: the one that `first` counts
    codec_of_then: str = ""  # the codec of the values; left out: the one that `then` counts
    shrunk: bool = False  # true: the values times 1/(1 + ω₂), which is contractive; the receiver multiplies, so it costs no bits
    makes = Chained
    codec = "chain"
    paper = "Qsparse-local-SGD (Basu et al. 2019) §2; not checked against the paper"

    @cached_property
    def outer(self) -> Compressor:
        return compressors.build(self.first, "first")

    @cached_property
    def inner(self) -> Compressor:
        return compressors.build(self.then, "then")

    @fact
    def draws_indices(self) -> bool:
        return self.outer.draws_indices

    def __post_init__(self) -> None:
        super().__post_init__()
        outer, inner = self.outer, self.inner
        for each in (outer, inner):
            if has_state(each) or each.follows:
                raise ValueError(f"{each.name} follows the run, which no part of a chain can")
        if outer.makes not in (Sparse, Drawn, Permuted):
            raise ValueError(f"first = '{outer.name}' sends no value of its own for each coordinate; try top-k or random-k")
        if not issubclass(inner.makes, Whole):
            raise ValueError(f"then = '{inner.name}' does not send all values; try dithering or natural")
        of_first = IndexCodec if outer.makes is Sparse else FieldCodec
        for key, name, kind, base in (
            ("codec_of_first", self._codecs[0], outer.makes, of_first),
            ("codec_of_then", self._codecs[1], inner.makes, Codec),
        ):
            if not (name in codecs and issubclass(codecs[name], base) and codecs[name]().writes(kind)):
                raise ValueError(f"{key} = '{name}' cannot write what is sent there")

    @property
    def _codecs(self) -> tuple[str, str]:
        return self.codec_of_first or self.outer.codec, self.codec_of_then or self.inner.codec

    def among(self, n: int) -> Self:
        return self.bound_to(outer=among(self.outer, n), inner=self.inner)

    def _most(self, dim: int) -> int:
        """The number of values, or d where it varies."""
        return coordinates_sent(self.outer, dim) or dim

    def check(self, dim: int) -> None:
        self.outer.check(dim)
        self.inner.check(self._most(dim))

    def compress(self, v: Vector, t: Round) -> Compressed:
        placed: Any = self.outer.compress(v, t)
        values = self.inner.compress(placed.values, t) if placed.elements else no_coordinates(0)
        return Chained(placed, values, self._codecs, self._scale(values.dim))

    def _scale(self, T: int) -> float:
        """What T values are multiplied by."""
        return 1 / (1 + (self.inner.omega(T) or 0.0)) if self.shrunk and T else 1.0

    def known(self, dim: int) -> SideInfo:
        first, then = (self.outer.makes, self.outer.known(dim)), (self.inner.makes, self.inner.known)
        return {"codecs": self._codecs, "first": first, "then": then, "scale": self._scale}

    def omega(self, dim: int) -> float | None:
        first, then = self.outer.omega(dim), self.inner.omega(self._most(dim))
        return None if first is None or then is None or (self.shrunk and then) else (1 + first) * (1 + then) - 1

    def unbiased(self, dim: int) -> bool:
        T = self._most(dim)
        return self.outer.unbiased(dim) and self.inner.unbiased(T) and self._scale(T) == 1

    def delta(self, dim: int) -> float | None:
        T = self._most(dim)
        ω = self.inner.omega(T)
        first, then = self.outer.delta(dim), 1 / (1 + ω) if self.shrunk and ω else self.inner.delta(T)
        keeps_values = is_ours(self.outer) and self.outer.makes is Sparse
        return None if first is None or then is None or not keeps_values else first * then
