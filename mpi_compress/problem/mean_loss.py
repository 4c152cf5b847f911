"""The contract of what f averages over rows, which losses of a margin and models share."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import ClassVar, Self

import numpy as np
from numpy.random import Generator

from mpi_compress.core.fields import Curvature
from mpi_compress.core.registry import Part
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.datasets.labels import Labels

Shapes = Mapping[str, tuple[int, ...]]  # of the blocks of x by their names, in order


@dataclass(frozen=True)
class Outline:
    """What a model may know of a data set before it sees its rows."""

    samples: int
    features: int
    classes: int  # labels are 0 … classes − 1; 0 where they are numbers
    sizes: Mapping[str, int] = field(default_factory=dict, hash=False)  # that the format states, such as the height of images


def places(blocks: Shapes) -> dict[str, slice]:
    """Where each block lies in x."""
    ends = accumulate(map(math.prod, blocks.values()), initial=0)
    return {name: slice(*span) for name, span in zip(blocks, pairwise(ends), strict=True)}


class MeanLoss(Part):
    """The mean loss of rows at a flat x (d,): of a margin, or a model's. `within` gives the data's outline before anything else is
    asked."""

    what: ClassVar[str]  # "loss" or "model": its key in [objective]
    of_margin: ClassVar[bool]  # True: a loss ℓ(y, m) of a margin m = a·x, which has slopes and curvatures
    kernel: ClassVar[int | None] = None  # the code of its row in kernels.losses
    labels: ClassVar[Labels]  # what labels are
    curvature: ClassVar[Curvature] = math.inf  # bounds |∂²ℓ/∂m²|, so L = curvature · λmax(AᵀA)/N + µ; ∞: not stated, or not smooth
    convex: ClassVar[bool] = True  # True: the loss of any samples is convex in x
    solver: ClassVar[str | None] = None  # how x* is computed, a name in problem.optimum.SOLVERS; None: f* is NaN
    random: ClassVar[bool] = False  # True if it draws, such as for dropout or noise
    provenance: ClassVar[Mapping[str, str]] = {}  # what else decides a run's bits; UserError where it is not installed
    outline: ClassVar[Outline]  # set by `within`

    def within(self, outline: Outline) -> Self:
        """The same for data of this outline; ValueError if it does not go with them."""
        bound = self.bound_to(outline=outline)
        bound.check()
        return bound

    def check(self) -> None:
        """Raise ValueError where it and the data do not go together."""

    @property
    def blocks(self) -> Shapes:
        """Names and shapes of the parts of x, in order; none for a loss of a margin."""
        return {}

    @property
    def dim(self) -> int:
        return sum(map(math.prod, self.blocks.values())) if self.blocks else self.outline.features

    def start(self, rng: Generator) -> Vector:
        """x0 (d,), where a job names no other: zeros."""
        return np.zeros(self.dim)
