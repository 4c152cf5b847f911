"""Communication-efficient distributed optimisation over MPI, with every bit really sent."""

import os as _os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS"):
    _os.environ.setdefault(
        _variable, "1"
    )  # one thread a rank, before NumPy is imported: more would change bits, and crowd the cores

from mpi_compress import algorithms, codecs, compressors, costs, datasets  # noqa: E402
from mpi_compress.algorithms import Algorithm  # noqa: E402
from mpi_compress.codecs import Codec  # noqa: E402
from mpi_compress.compressed import Compressed, Dense, Sparse  # noqa: E402
from mpi_compress.compressors import Compressor  # noqa: E402
from mpi_compress.costs import CostModel  # noqa: E402
from mpi_compress.datasets import Generator  # noqa: E402
from mpi_compress.errors import CorruptMessage, UserError  # noqa: E402
from mpi_compress.figures import plot  # noqa: E402
from mpi_compress.job import Job, load_job  # noqa: E402
from mpi_compress.results import Run, read  # noqa: E402
from mpi_compress.runner import run  # noqa: E402
from mpi_compress.streams import Round  # noqa: E402

__all__ = [
    "Algorithm", "Codec", "Compressed", "Compressor", "CorruptMessage", "CostModel", "Dense", "Generator", "Job", "Round", "Run",
    "Sparse", "UserError", "algorithms", "codecs", "compressors", "costs", "datasets", "load_job", "plot", "read", "run",
]  # fmt: skip
