"""The coordinates of largest magnitude: so many of them, or those that reach a threshold."""

from dataclasses import replace
from math import inf, sqrt
from typing import Any, Literal

from mpi_compress.core.fields import AtLeastOne, Positive
from mpi_compress.core.registry import fact
from mpi_compress.core.streams import Rounds
from mpi_compress.kernels import select
from mpi_compress.kernels.threshold import reaching_of_rows
from mpi_compress.messages.compressors.base import Compressor, Count, OfK, compressors, count_of, one_of
from mpi_compress.messages.kinds import Compressed, Sparse, Vector


@compressors.register("top-k")
class TopK(OfK):
    """The k coordinates of largest magnitude, ties to the lowest index (CAT eq. 2).  Contractive with δ = k/d (CAT Lemma 2).

    Where features are 0 and 1, many sums of a few rows have the same magnitude: on mushrooms with minibatches of 4 every thirtieth
    message of error feedback has a tie for the third place. The rounding of floats decides others: another order of additions, or
    an error in units of x, keeps another coordinate, and two right programs part by some per cent.
    """

    k: Count | None = None  # k, how many coordinates are sent: a count or a share of d, "0.2%"; left out: the algorithm sets it
    paper = "CAT eq. 2"

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        d = V.shape[1]
        return Sparse(d, *select.largest(V, count_of(self.k, d)))

    def delta(self, dim: int) -> float:
        return count_of(self.k, dim) / dim


@compressors.register("accordion")
class Accordion(Compressor):
    """Top-k that switches between k_min and k_max (ACCORDION, Agarwal et al. 2021; HT §6).  Contractive with δ = k_min/d.

    The switch needs the run: k_max in the first epoch, where the norm of the accumulated gradient has changed by a share `eta`
    or more when it is tested, every `every` epochs, and where the step size falls. An algorithm that keeps the schedule sets k
    from round to round; without one, k is k_max.
    """

    k_min: Count  # coordinates sent outside a critical regime: a count or a share of d, "0.2%"
    k_max: Count  # coordinates sent in a critical regime: a count or a share of d, "0.2%"
    eta: Positive = 0.5  # η, the relative change of the accumulated gradient's norm from which a regime is critical
    every: AtLeastOne = 10  # epochs from one test of the regime to the next
    k: Count | None = None  # coordinates sent; left out: k_min or k_max as the algorithm sets it, else k_max
    follows = "regime"
    paper = "HT §6"

    def in_run(self, dim: int, **known: Any) -> "Accordion":
        return replace(self, k=self.k_max if known["regime"] else self.k_min) if "regime" in known else self

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        d = V.shape[1]
        return Sparse(d, *select.largest(V, count_of(self.k_max if self.k is None else self.k, d)))

    def check(self, dim: int) -> None:
        low, high = count_of(self.k_min, dim), count_of(self.k_max, dim)
        if low > high:
            raise ValueError(f"k_min = {self.k_min} is more than k_max = {self.k_max} for d = {dim}")

    def delta(self, dim: int) -> float:
        return count_of(self.k_min, dim) / dim


@compressors.register("hard-threshold")
class HardThreshold(Compressor):
    """All coordinates with |v_j| ≥ λ (HT §4.2).  Absolute with v² = dλ² (HT §5).

    λ is `threshold`; or follows from `accuracy` ε and the step size γ by dγ²λ² = ε, which only an algorithm that has a step can
    settle (`in_run`); or from `like_k`, the k of a top-k that it should converge no slower than, by (2/√k)√((2d/k + M)ζ² + σ²)
    (HT §6, §D): its short form 1/(2√k), which takes ζ = 0 and σ = 1/4, or, where `estimate` is set, with ζ and σ as the run's
    workers have them at the start.
    """

    threshold: Positive | None = None  # λ, the least magnitude that is sent; left out: accuracy or like_k is given
    accuracy: Positive | None = None  # ε, what error feedback can hold: λ by γ²dλ² = ε; left out: threshold or like_k is given
    like_k: AtLeastOne | None = None  # k of the top-k that it should match: λ = 1/(2√k); left out: threshold or accuracy is given
    estimate: bool = False  # true: λ of like_k follows from the gradients' noise at the start of the run
    paper = "HT §4.2"

    def __post_init__(self) -> None:
        one_of(threshold=self.threshold, accuracy=self.accuracy, like_k=self.like_k)
        super().__post_init__()
        if self.estimate and self.like_k is None:
            raise ValueError("estimate = true is for like_k = k")

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        return Sparse(V.shape[1], *reaching_of_rows(V, self.level))

    @property
    def level(self) -> float:
        """λ."""
        if self.threshold is not None:
            return self.threshold
        if self.estimate:
            raise ValueError("estimate = true needs a run, at whose start the gradients' noise is seen, and works on the uplink")
        if self.like_k is not None:
            return 1 / (2 * sqrt(self.like_k))
        raise ValueError("accuracy needs the step size of an algorithm that sets it (ef); or give threshold = λ")

    def at_level(self, level: float) -> "HardThreshold":
        return replace(self, threshold=level, accuracy=None, like_k=None, estimate=False)

    @fact
    def follows(self) -> Literal["", "step", "noise"]:
        return "step" if self.accuracy is not None else "noise" if self.estimate else ""

    def in_run(self, dim: int, **known: Any) -> "HardThreshold":
        """This compressor with λ by the step, or by `like_k`'s full formula; ValueError where that would be 0, or not finite."""
        if self.accuracy is not None and "step" in known:
            return self.at_level(sqrt(self.accuracy / dim) / known["step"])
        if self.like_k is None or not self.estimate or "noise" not in known:
            return self
        zeta2, sigma2 = known["noise"]
        level = 2 / sqrt(self.like_k) * sqrt(2 * dim / self.like_k * zeta2 + sigma2)
        if not level < inf:
            raise ValueError("estimate = true finds gradients at the start whose squares are not finite; give threshold = λ")
        if level == 0:
            raise ValueError("estimate = true finds no noise: all workers have the same full gradient; give threshold = λ")
        return self.at_level(level)

    def check(self, dim: int) -> None:
        self.level  # noqa: B018  raises where it is not evaluated

    def variance(self, dim: int) -> float:
        return dim * self.level**2
