"""x* and f*: computed once by the solver that the loss states, and kept beside the data.

They are computed over the whole set in file order by one process, so no number of workers or ranks changes a bit of them.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

from mpi_compress.core.errors import UserError, nearest
from mpi_compress.core.plugins import source_of
from mpi_compress.problem.datasets.cache import replace, safe
from mpi_compress.problem.datasets.store import DataSet
from mpi_compress.problem.losses import Loss
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.optimum import hinge, newton
from mpi_compress.problem.optimum.base import Optimum

__all__ = ["SOLVERS", "Optimum", "minimize", "optimum", "optimum_file", "solver_of"]


class Solver(NamedTuple):
    """A way to compute x*."""

    minimize: Callable[[Objective], Optimum]  # of the whole objective, weight 1/N
    measure: str  # what it brings to zero, `Optimum.reached`


SOLVERS = {"newton": Solver(newton.minimize, "gradient"), "hinge-dual": Solver(hinge.minimize, "duality gap")}


def solver_of(loss: Loss) -> Solver:
    """The solver that a loss states; UserError if it states none, or one that does not exist."""
    if loss.solver is None:
        complaint = f"the loss '{loss.name}' states no solver; there are: {', '.join(SOLVERS)}"
    elif loss.solver not in SOLVERS:
        complaint = f"the loss '{loss.name}' states a solver that does not exist: {nearest(loss.solver, SOLVERS, 'solver')}"
    else:
        return SOLVERS[loss.solver]
    raise UserError(f"objective: x* cannot be computed: {complaint}")


def minimize(f: Objective) -> Optimum:
    """x* and f* of the whole objective, weight 1/N; UserError if its loss states no solver."""
    return solver_of(f.loss).minimize(f)


def optimum_file(data: DataSet, loss: Loss, mu: float) -> Path:
    """The file that keeps x*; a user's loss is known by its source, too."""
    source = source_of(loss)
    own = f"-{hashlib.sha256(source.encode()).hexdigest()[:12]}" if source else ""
    return data.beside(f"optimum-{safe(loss.name)}{own}-{float(mu).hex()}.h5")


def optimum(data: DataSet, loss: Loss, mu: float) -> Optimum:
    """The minimiser of (1/N) Σ ℓ + (µ/2)‖x‖², from the file beside the data if it is there; UserError if the loss has no solver."""
    note = optimum_file(data, loss, mu)
    try:
        with h5py.File(note, "r", locking=False) as h5:
            kept = Optimum(h5["x"][:], *(float(h5.attrs[a]) for a in ("f", "accuracy", "reached")))
            if kept.x.shape == (data.dim,) and np.isfinite(kept.x).all():
                return kept
    except (OSError, KeyError, RuntimeError, ValueError):
        pass  # not there yet, or damaged
    rows = data.read(0, data.n_samples)
    found = minimize(Objective(rows, loss, 1 / len(rows), mu))

    def fill(part: Path) -> None:
        with h5py.File(part, "w") as h5:
            h5["x"] = found.x
            h5.attrs.update(f=found.f, accuracy=found.accuracy, reached=found.reached)

    replace(note, fill)
    return found
