"""Gradients whose rows are clipped, and the noise on them: a wrapper of the rows of any objective."""

from dataclasses import dataclass
from math import inf
from typing import Annotated, ClassVar

from mpi_compress.core.errors import UserError
from mpi_compress.core.fields import NotNegative, within
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.losses import Loss
from mpi_compress.problem.models import Model


@dataclass(frozen=True)
class RowClipping:
    """[objective] clip_rows = { norm = 1.0, noise = 0.5 } clips the gradient of every row to this norm, and adds noise.

    For a minibatch B, or for the whole shard, a method gets

        (n|D_i|/N) (1/|B|) (Σ_{j ∈ B} min(1, τ/‖∇ℓ_j(x)‖) ∇ℓ_j(x) + N(0, σ²τ² I)) + µx + ∇r(x)

    in place of ∇f_i(x): the gradients of µ and of a penalty are not clipped. f, f*, x*, L and all logged values stay those of
    the problem without clipping. Each gradient that a method asks for has noise of its own, drawn at (seed, worker, round), so that
    none cancels where two gradients of a round are subtracted.
    """

    norm: Annotated[float, within("(0, inf]")]  # τ, the longest gradient of a sample that is left as it is; inf clips none
    noise: NotNegative = 0.0  # σ, the noise multiplier: the sum over the samples gets N(0, σ²τ²) a coordinate
    paper: ClassVar[str] = "Abadi et al. 2016, Algorithm 1"

    def __post_init__(self) -> None:
        if self.norm == inf and self.noise:
            raise ValueError("norm = inf leaves the noise, σ τ, without a size: give a finite norm, or noise = 0")

    def noise_on_mean(self, m: int, dim: int, t: Round | None) -> Vector:
        """The noise (dim,) on the mean over m rows, in a worker's round t."""
        if t is None:
            raise UserError("objective.clip_rows: noise is that of a round, and a gradient was asked for before the first one")
        return self.noise * self.norm / m * t.noise.standard_normal(dim)


def refuse_rows_together(loss: Loss | Model) -> None:
    """ValueError where a row has no gradient of its own."""
    if loss.random or (isinstance(loss, Model) and not loss.rows_apart):
        raise ValueError(
            f"the model '{loss.name}' draws, or takes samples together, so no sample has a gradient of its own to clip; "
            "up.compressor = \"clip\" clips what a worker sends"
        )
