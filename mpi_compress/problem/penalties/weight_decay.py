import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import field
from math import prod
from typing import Self

import numpy as np

from mpi_compress.core.sums import added
from mpi_compress.kernels.vectors import squared_norm
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.penalties.base import Penalty, penalties


@penalties.register("weight-decay")
class WeightDecay(Penalty):
    """Ridge on some blocks of a model: weight decay that leaves out biases and what normalises batches (Goyal et al. 2017)."""

    formula = "(λ/2) Σ_b ‖x_b‖²"
    curvature = 1.0
    blocks: list[str] = field(default_factory=lambda: ["*"])  # names of the model's blocks that decay, or patterns of them
    but: list[str] = field(default_factory=list)  # those among them that do not
    decays: tuple[slice, ...] = field(default=(slice(None),), init=False, repr=False, compare=False)  # where the blocks lie in x

    def within_model(self, blocks: Mapping[str, tuple[int, ...]]) -> Self:
        if not blocks:
            raise ValueError("weight-decay is for the blocks of a model, and the job has a loss of a margin; write l2")
        for pattern in (*self.blocks, *self.but):
            if not fnmatch.filter(blocks, pattern):
                raise ValueError(f"no block of the model is called '{pattern}'; its blocks are {', '.join(blocks)}")
        return self.bound_to(decays=tuple(self._places(blocks)))

    def _places(self, blocks: Mapping[str, tuple[int, ...]]) -> Iterable[slice]:
        start = 0
        for name, shape in blocks.items():
            size = prod(shape)
            named = any(fnmatch.fnmatchcase(name, pattern) for pattern in self.blocks)
            if named and not any(fnmatch.fnmatchcase(name, pattern) for pattern in self.but):
                yield slice(start, start + size)
            start += size

    def value(self, x: Vector) -> float:
        return 0.5 * self.λ * added(squared_norm(x[place]) for place in self.decays)

    def gradient(self, x: Vector) -> Vector:
        out = np.zeros(x.size)
        for place in self.decays:
            np.multiply(x[place], self.λ, out=out[place])
        return out
