"""Parts that are wrong on purpose: what `claims_mutants.py` puts in the place of right ones."""

from mpi_compress.algorithms.papers.iade import AIADE, IADE, IADESGD
from mpi_compress.algorithms.vocabulary import algorithms


@algorithms.register("aiade, no correction")
class Plain(AIADE):
    """y = x⁺, without τ (x⁺ − x)."""

    @property
    def τ(self):
        return 0.0


class Coarse:
    """It quantises four times as coarsely as its budget allows."""

    def sigma(self, k):
        return 4 * super().sigma(k)


@algorithms.register("aiade, coarse")
class CoarseAIADE(Coarse, AIADE):
    """AIADE, coarse."""


@algorithms.register("iade, slow")
class Slow(IADE):
    """It takes a fortieth of its step, and claims the rate of the whole."""

    def all_hear(self, node, down, t):
        x = node.x.copy()
        super().all_hear(node, down, t)
        node.x[:] = x + (node.x - x) / 40


@algorithms.register("iade, coarse")
class CoarseIADE(Coarse, IADE):
    """IADE, coarse."""


@algorithms.register("iade, fine")
class FineIADE(IADE):
    """It quantises 10⁹ times as finely as its budget asks."""

    def sigma(self, k):
        return super().sigma(k) / 1e9


@algorithms.register("iade-sgd, coarse")
class CoarseSGD(Coarse, IADESGD):
    """IADE-SGD, coarse."""

    def budget(self, k):
        return super().budget(k) / 4  # which follows from σ
