from mpi_compress.core.streams import Round
from mpi_compress.kernels import select
from mpi_compress.kernels.probabilities import size_of
from mpi_compress.messages.compressors.base import Count, OfK, compressors, count_of
from mpi_compress.messages.kinds import Compressed, SignSparse, Vector


@compressors.register("sq")
class SQ(OfK):
    """S+Q: ‖g‖·sign(g_j) on I_T(g), the k = T coordinates of largest magnitude (CAT eq. 3).

    Biased, and not contractive: its error can be larger than ‖g‖. Algorithms make up for it by the step, which they fold into
    the one magnitude. Coordinates that are 0 are never sent.
    """

    k: Count | None = None  # k, how many coordinates are sent: a count or a share of d, "0.2%"; left out: the algorithm sets it
    makes = SignSparse
    paper = "CAT eq. 3"

    def compress(self, v: Vector, t: Round) -> Compressed:
        return SignSparse.at(v, select.largest(v, count_of(self.k, v.size)), size_of(v).norm)
