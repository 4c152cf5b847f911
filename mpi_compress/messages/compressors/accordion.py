from dataclasses import replace

from mpi_compress.core.fields import AtLeastOne, Positive
from mpi_compress.core.streams import Round
from mpi_compress.messages.compressors.base import Compressor, Count, compressors, count_of
from mpi_compress.messages.compressors.top_k import TopK
from mpi_compress.messages.kinds import Compressed, Vector


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

    def in_round(self, dim: int, step: float, critical: bool) -> "Accordion":
        return replace(self, k=self.k_max if critical else self.k_min)

    def compress(self, v: Vector, t: Round) -> Compressed:
        return TopK(self.k_max if self.k is None else self.k).compress(v, t)

    def check(self, dim: int) -> None:
        low, high = count_of(self.k_min, dim), count_of(self.k_max, dim)
        if low > high:
            raise ValueError(f"k_min = {self.k_min} is more than k_max = {self.k_max} for d = {dim}")

    def delta(self, dim: int) -> float:
        return count_of(self.k_min, dim) / dim
