"""Penalties that are sums over coordinates, over groups of them, or over blocks of a model."""

import fnmatch
from dataclasses import field
from typing import Self

import numpy as np

from mpi_compress.core.fields import AtLeastOne
from mpi_compress.core.registry import fact
from mpi_compress.core.sums import added
from mpi_compress.kernels.vectors import squared_norm
from mpi_compress.problem.mean_loss import places
from mpi_compress.problem.penalties.base import Penalty, Shapes, Vector, penalties


@penalties.register("l1")
class L1(Penalty):
    """Lasso: Tibshirani (1996); its prox is soft thresholding."""

    formula = "λ ‖x‖₁"

    def value(self, x: Vector) -> float:
        return self.λ * float(np.sum(np.abs(x)))

    def prox(self, x: Vector, γ: float) -> Vector:
        return np.sign(x) * np.maximum(np.abs(x) - γ * self.λ, 0.0)


@penalties.register("l2")
class L2(Penalty):
    """Ridge: the same as mu = weight."""

    formula = "(λ/2) ‖x‖²"
    curvature = 1.0

    @fact
    def mu(self) -> float:
        return self.λ

    def value(self, x: Vector) -> float:
        return 0.5 * self.λ * squared_norm(x)

    def gradient(self, x: Vector) -> Vector:
        return self.λ * x


@penalties.register("ratio")
class Ratio(Penalty):
    """The nonconvex penalty of the EF21, MARINA and DASHA papers; its second derivatives are within [−λ/2, 2λ]."""

    formula = "λ Σ x_j² / (1 + x_j²)"
    curvature = 2.0
    lowest = -0.5

    def value(self, x: Vector) -> float:
        return self.λ * float(np.sum(np.square(x / np.hypot(1.0, x))))

    def gradient(self, x: Vector) -> Vector:
        shorter = 1.0 / np.hypot(1.0, x)
        return 2.0 * self.λ * (x * shorter) * shorter**3


@penalties.register("group")
class Group(Penalty):
    """Group lasso: Yuan and Lin (2006); each group is `size` coordinates in a row, the last one what is left."""

    formula = "λ Σ_g √|g| ‖x_g‖"
    size: AtLeastOne = 10  # coordinates of a group

    def value(self, x: Vector) -> float:
        norms, roots = self._groups(x)
        return self.λ * float(np.sum(roots * norms))

    def prox(self, x: Vector, γ: float) -> Vector:
        norms, roots = self._groups(x)
        cut = γ * self.λ * roots
        kept = np.where(norms > cut, 1.0 - cut / np.where(norms > cut, norms, 1.0), 0.0)
        return x * np.repeat(kept, self.size)[: x.size]

    def _groups(self, x: Vector) -> tuple[Vector, Vector]:
        """‖x_g‖ and √|g| of every group."""
        starts = np.arange(0, x.size, self.size)
        return np.sqrt(np.add.reduceat(x * x, starts)), np.sqrt(np.diff(np.append(starts, x.size)))


@penalties.register("weight-decay")
class WeightDecay(Penalty):
    """Ridge on some blocks of a model: weight decay that leaves out biases and what normalises batches (Goyal et al. 2017)."""

    formula = "(λ/2) Σ_b ‖x_b‖²"
    curvature = 1.0
    blocks: list[str] = field(default_factory=lambda: ["*"])  # names of the model's blocks that decay, or patterns of them
    but: list[str] = field(default_factory=list)  # those among them that do not
    decays: tuple[slice, ...] = field(default=(slice(None),), init=False, repr=False, compare=False)  # where the blocks lie in x

    def within_model(self, blocks: Shapes) -> Self:
        if not blocks:
            raise ValueError("weight-decay is for the blocks of a model, and the job has a loss of a margin; write l2")
        for pattern in (*self.blocks, *self.but):
            if not fnmatch.filter(blocks, pattern):
                raise ValueError(f"no block of the model is called '{pattern}'; its blocks are {', '.join(blocks)}")
        named, but = ({name for pattern in of for name in fnmatch.filter(blocks, pattern)} for of in (self.blocks, self.but))
        return self.bound_to(decays=tuple(place for name, place in places(blocks).items() if name in named - but))

    def value(self, x: Vector) -> float:
        return 0.5 * self.λ * added(squared_norm(x[place]) for place in self.decays)

    def gradient(self, x: Vector) -> Vector:
        out = np.zeros(x.size)
        for place in self.decays:
            np.multiply(x[place], self.λ, out=out[place])
        return out
