"""x* and f*: computed once by the solver that the loss states, and kept beside the data.

They are computed over the whole set in file order by one process, so no number of workers or ranks changes a bit of them.
"""

# ruff: noqa: F401
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

from mpi_compress.core.errors import UserError, nearest
from mpi_compress.core.progress import ignore
from mpi_compress.core.registry import parameters
from mpi_compress.core.sources import source_of
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.datasets.cache import is_kept, keep, safe
from mpi_compress.problem.datasets.store import DataSet
from mpi_compress.problem.losses.base import DIFFERENCE
from mpi_compress.problem.mean_loss import MeanLoss
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.optimum import base, hinge, newton
from mpi_compress.problem.optimum.base import Optimum, Tell, is_soon_solved, lowest_seen
from mpi_compress.problem.penalties import Penalty

_SOLVED = 1e-8  # the largest ‖∇f(x)‖/‖∇f(0)‖ at which f(x) is called f*
_SAME = 1e-5  # of the largest slope: what a quotient of values may be off by


class Unsolved(UserError):
    """A solver found no x*."""


def _unsolved(loss: MeanLoss, why: str, whether: str = "where") -> Unsolved:
    check = f"; `check-part {loss.name} --job JOB` says {whether} its slopes are wrong" * bool(source_of(loss))
    return Unsolved(f"objective: x* cannot be computed: {why}{check}")


class Solver(NamedTuple):
    """A way to compute x*."""

    minimize: Callable[[Objective, Tell], Optimum]  # of the whole objective, weight 1/N
    measure: str  # what it brings to zero, `Optimum.reached`


SOLVERS = {
    "newton": Solver(newton.minimize, "gradient"),
    "hinge-dual": Solver(hinge.minimize, "duality gap"),
    "exact": Solver(base.minimize, "gradient"),
}


def solver_of(loss: MeanLoss) -> Solver:
    """The solver that a loss or a model states; UserError if it states none, or one that does not exist."""
    if loss.solver in SOLVERS:
        return SOLVERS[loss.solver]
    states = f"a solver that does not exist: {nearest(loss.solver, SOLVERS, 'solver')}" if loss.solver else None
    states = states or f"no solver; there are: {', '.join(SOLVERS)}"
    raise UserError(f"objective: x* cannot be computed: the {loss.what} '{loss.name}' states {states}")


def minimize(f: Objective, tell: Tell = ignore) -> Optimum:
    """x* and f* of the whole objective, weight 1/N; UserError if its loss states no solver."""
    return solver_of(f.loss).minimize(f, tell)


def solved(f: Objective, x0: Vector, apart: Penalty | None = None) -> Vector:
    """The minimiser (d,) of the whole objective, by its loss's solver; where none is known for it, the lowest seen."""
    own = f.penalty is None and apart is None and f.loss.solver in SOLVERS
    return (minimize(f) if own else lowest_seen(f, x0, apart)).x


def optimum_file(data: DataSet, loss: MeanLoss, mu: float, suffix: str = "") -> Path:
    """The file that keeps x*; a part with parameters is known by them, and a user's by its source, too."""
    source = source_of(loss)
    own = f"checked {source}" * bool(source) + (repr(loss) if parameters(type(loss)) else "") + suffix
    mark = f"-{hashlib.sha256(own.encode()).hexdigest()[:12]}" if own else ""
    kind = "optimum" if mu else "infimum"  # earlier versions called one an optimum where some rows are separable
    return data.beside(f"{kind}-{safe(loss.name)}{mark}-{float(mu).hex()}.h5")


def optimum(data: DataSet, loss: MeanLoss, mu: float, tell: Tell = ignore) -> Optimum:
    """The minimiser of the mean loss + (µ/2)‖x‖², from the file beside the data if it is there.

    Raises:
        UserError: there is no solver.
        Unsolved: it ends before x*, or slopes and values of the loss are of two functions.
    """
    best = _kept(optimum_file(data, loss, mu), lambda: _agreed(_whole(data, loss, mu), tell))
    if best.reached <= _SOLVED:
        return best
    why = f"the {solver_of(loss).measure} falls to {best.reached:.1e} of its start only" + "; set mu > 0" * (not mu)
    raise _unsolved(loss, why, "whether")


def _agreed(f: Objective, tell: Tell) -> Optimum:
    """The optimum; Unsolved unless values rise as slopes say, at all margins of x*: by difference quotients, each of which lies
    between the slopes at its two ends."""
    best = minimize(f, tell)
    if not f.loss.of_margin or best.reached > _SOLVED:
        return best
    m = f.rows.margins(best.x)
    h = DIFFERENCE * (1 + np.abs(m))
    values, slopes = np.array([f.loss.value_and_slope(f.rows.labels, at) for at in (m - h, m + h)]).swapaxes(0, 1)
    rises = (values[1] - values[0]) / (2 * h)
    rounding = _SAME * np.abs(slopes).max() + 16 * base.EPS * np.abs(values).max(axis=0) / h
    off = np.abs(rises - np.clip(rises, *np.sort(slopes, axis=0))) - rounding
    i = int(np.argmax(off))
    if off[i] > 0:
        why = f"at the margin {m[i]:.6g} the slope of '{f.loss.name}' is {slopes[0, i]:.6g}, and its values rise by {rises[i]:.6g}"
        raise _unsolved(f.loss, why)
    return best


def lowest(data: DataSet, loss: MeanLoss, mu: float, x0: Vector, penalty: Penalty | None) -> Optimum:
    """`lowest_seen` from x0 (d,), with a penalty of any kind, from the file beside the data if it is there."""
    smooth = penalty if penalty is not None and penalty.smooth else None
    apart = None if penalty is smooth else penalty
    recipe = f"lowest {penalty!r} {source_of(penalty) if penalty else ''} {hashlib.sha256(x0.tobytes()).hexdigest()}"
    return _kept(optimum_file(data, loss, mu, recipe), lambda: lowest_seen(_whole(data, loss, mu, smooth), x0, apart))


def _whole(data: DataSet, loss: MeanLoss, mu: float, penalty: Penalty | None = None) -> Objective:
    rows = data.read(0, data.n_samples)
    return Objective(rows, loss, 1 / len(rows), mu, penalty)


def _kept(note: Path, find: Callable[[], Optimum]) -> Optimum:
    """The optimum that a file keeps; found and written to it, where it is not there or damaged."""
    if is_kept(note):
        with h5py.File(note, "r", locking=False) as h5:
            return Optimum(h5["x"][:], **{name: value.item() for name, value in h5.attrs.items()})
    found = find()

    def fill(part: Path) -> None:
        with h5py.File(part, "w") as h5:
            numbers = dict(vars(found))
            h5["x"] = numbers.pop("x")
            h5.attrs.update(numbers)

    keep(note, fill)
    return found
