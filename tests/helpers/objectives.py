"""Small objectives on random samples."""

import numpy as np
import scipy.sparse as sp

from mpi_compress.problem.losses import losses
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.rows import Rows


def problem(name: str, sparse: bool, dtype: type = np.float64, mu: float = 0.3) -> tuple[Objective, np.ndarray]:
    """An objective on 40 samples with d = 7, and the samples as an array."""
    rng = np.random.default_rng(5)
    a = rng.standard_normal((40, 7)) * (rng.random((40, 7)) < 0.5)
    a[3] = 0
    a = a.astype(dtype)
    labels = rng.standard_normal(40) if losses[name].real_labels else np.where(rng.random(40) < 0.5, 1.0, -1.0)
    csr = sp.csr_matrix(a)
    parts = (csr.indptr.astype(np.uint64), csr.indices.astype(np.uint32), csr.data)
    return Objective(Rows(parts if sparse else (a,), labels, 7), losses[name](), 1 / 40, mu), a.astype(np.float64)
