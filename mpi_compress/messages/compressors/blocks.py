from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from mpi_compress.core.registry import fact, is_ours
from mpi_compress.core.streams import Round
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors.base import AmongWorkers, Composed, Compressor, compressors, one_of
from mpi_compress.messages.kinds import Blocks, Compressed, Known, Sparse, Vector


@compressors.register("blocks")
class BlockWise(AmongWorkers, Composed):
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
        if each.has_state or each.follows == "step" or each.needs_noise:
            raise ValueError(f"{each.name} follows the run, which no block can: blocks are for compressors that do not")
        codec = self._codec
        if not (codec in codecs and codecs[codec]().writes(each.makes)):
            raise ValueError(f"codec_of_block = '{codec}' cannot write what '{each.name}' makes")
        if self.joined and self.codec_of_block:
            raise ValueError("joined = true leaves one message, so codec_of_block has no use: leave it out, and choose [up] codec")
        if self.joined and each.makes is not Sparse:
            raise ValueError(f"joined = true is for compressors that send coordinates with their values, and not '{each.name}'")

    def among(self, n: int) -> Self:
        return self.bound_to(each=self.each.among(n)) if isinstance(self.each, AmongWorkers) else self

    def within_model(self, sizes: Sequence[int]) -> Self:
        if self.sizes != "model":
            return self
        held = [size for size in sizes if size > 0]
        if not held:
            raise ValueError('sizes = "model" takes the blocks of a model, and a loss of a margin has none; give slices or sizes')
        return self.bound_to(each=self.each, sizes=held)

    @fact
    def follows(self) -> Literal["", "step", "regime"]:
        return self.each.follows

    def in_round(self, dim: int, step: float, critical: bool) -> Self:
        return self.bound_to(each=self.each.in_round(dim, step, critical)) if self.follows else self

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

    def compress(self, v: Vector, t: Round) -> Compressed:
        ends = np.cumsum(lengths := self.lengths(v.size))
        parts = [self.each.compress(v[end - size : end], t) for end, size in zip(ends, lengths, strict=True)]
        if not is_ours(self.each):
            parts = [part.checked(size) for part, size in zip(parts, lengths, strict=True)]
        together = Blocks(tuple(parts), self._codec)
        joined = together.sparse() if self.joined else None
        return together if joined is None else joined

    @property
    def _codec(self) -> str:
        return self.codec_of_block or self.each.codec

    def known(self, dim: int) -> Known:
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
