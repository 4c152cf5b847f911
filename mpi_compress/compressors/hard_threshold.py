from dataclasses import dataclass
from math import sqrt

from mpi_compress.compressed import Compressed, Sparse, Vector
from mpi_compress.compressors.base import Compressor, compressors, one_of, positive
from mpi_compress.kernels import select
from mpi_compress.kernels.threshold import reaching
from mpi_compress.streams import Round


@compressors.register("hard-threshold")
@dataclass(frozen=True)
class HardThreshold(Compressor):
    """All coordinates with |v_j| ≥ λ (HT §4.2).  Absolute with v² = dλ² (HT §5).

    λ is `threshold`; or follows from `accuracy` ε and the step size γ by dγ²λ² = ε, which only an algorithm that has a step can
    settle (`at_step`); or from `like_k`, the k of a top-k of about the same cost, by its short form 1/(2√k) (HT §D).
    """

    threshold: float | None = None  # λ
    accuracy: float | None = None  # ε, on the error γ²dλ² that error feedback can hold
    like_k: int | None = None
    paper = "HT §4.2"

    def __post_init__(self) -> None:
        one_of(threshold=self.threshold, accuracy=self.accuracy, like_k=self.like_k)
        positive(threshold=self.threshold, accuracy=self.accuracy, like_k=self.like_k)

    def compress(self, v: Vector, t: Round) -> Sparse:
        return Sparse(v.size, *reaching(v, self.level))

    def compress_again(self, c: Compressed, t: Round) -> Compressed:
        if not isinstance(c, Sparse):
            return super().compress_again(c, t)
        kept = select.at_least(c.values, self.level)
        return Sparse(c.dim, c.indices[kept], c.values[kept])

    @property
    def level(self) -> float:
        """λ."""
        if self.threshold is not None:
            return self.threshold
        if self.like_k is not None:
            return 1 / (2 * sqrt(self.like_k))
        raise ValueError("accuracy needs the step size of an algorithm that sets it (ef); or give threshold = λ")

    def at_step(self, step: float, dim: int) -> "HardThreshold":
        """This compressor with λ settled for the step size γ = `step`."""
        return self if self.accuracy is None else HardThreshold(sqrt(self.accuracy / dim) / step)

    def check(self, dim: int) -> None:
        self.level  # noqa: B018  raises where it is not settled

    def variance(self, dim: int) -> float:
        return dim * self.level**2
