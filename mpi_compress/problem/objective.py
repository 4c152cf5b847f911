"""f_i on one shard: value, gradient, curvature; the mean over shards is f exactly, also where their sizes differ."""

import itertools
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mpi_compress.kernels import batches as batch_kernels
from mpi_compress.kernels import losses as loss_kernels
from mpi_compress.kernels import rows as kernels
from mpi_compress.messages.kinds import Indices, Sparse, Vector

_ROWS_AT_ONCE = 8192
_CACHED = 2**20  # bytes


@dataclass(frozen=True)
class Loss:
    """ℓ(y, m); `curvature` bounds ∂²ℓ/∂m², so that curvature · λmax(AᵀA)/N is the data part's smoothness."""

    code: int
    curvature: float  # infinite: not smooth
    formula: str

    @property
    def smooth(self) -> bool:
        return math.isfinite(self.curvature)


LOSSES = {
    "logistic": Loss(loss_kernels.LOGISTIC, 0.25, "log(1 + exp(−y m))"),
    "logistic-base2": Loss(loss_kernels.LOGISTIC_BASE2, 0.25 / np.log(2.0), "log2(1 + exp(−y m))"),
    "squared-hinge": Loss(loss_kernels.SQUARED_HINGE, 2.0, "max(1 − y m, 0)²"),
    "hinge": Loss(loss_kernels.HINGE, math.inf, "max(1 − y m, 0)"),
    "least-squares": Loss(loss_kernels.LEAST_SQUARES, 1.0, "½ (m − y)²"),
}


def stay_cached(m: int, dim: int) -> bool:
    """Whether m vectors (dim,) stay in the cache until they are looked at again."""
    return 8 * m * dim <= _CACHED


@dataclass(frozen=True)
class Rows:
    """Samples a_j with their labels y_j."""

    matrix: tuple[NDArray, ...]  # (indptr, indices, values) in CSR form, or (values (N, d),)
    labels: Vector  # (N,)
    dim: int
    whole: "Rows | None" = None  # what these were cut from,
    start: int = 0  # and from which row on

    def __len__(self) -> int:
        return self.labels.size

    def cut(self, start: int, stop: int) -> "Rows":
        """Rows start … stop − 1, in the same memory."""
        matrix: tuple[NDArray, ...]
        if len(self.matrix) == 1:
            matrix = (self.matrix[0][start:stop],)
        else:
            indptr, indices, values = self.matrix
            span = slice(int(indptr[start]), int(indptr[stop]))
            matrix = (indptr[start : stop + 1] - indptr[start], indices[span], values[span])
        return Rows(matrix, self.labels[start:stop], self.dim, self, start)


class Objective:
    """f_i(x) = weight · Σ_{j ∈ D_i} ℓ(y_j, a_j·x) + (µ/2)‖x‖², with weight = n/N.

    Returned gradients are valid until the next call. A full gradient is kept until `forget`, so a round that is logged, which
    needs f and ∇f at x, does not pay twice. `samples` and `seconds` count what the algorithm asked for, kept gradients included;
    `borrowed` is the part of `seconds` that an evaluation spent.
    """

    def __init__(self, rows: Rows, loss: Loss, weight: float, mu: float):
        self.rows, self.loss, self.weight, self.mu = rows, loss, float(weight), float(mu)
        self.samples = 0
        self.seconds = 0.0
        self.borrowed = 0.0
        self._n = len(rows)
        self._cuts = np.array([0, self._n], dtype=np.uint64)
        self._value = np.zeros(1)
        self._gradient = np.zeros(rows.dim)
        self._work = np.empty(0)  # (d,) zeros, once it is needed
        self._kept_at: Vector | None = None
        self._kept = (0.0, 0.0)  # value, seconds it took
        self._ahead = False  # kept by `LookAhead`, and not asked for yet

    @property
    def dim(self) -> int:
        return self.rows.dim

    def point(self, x: Vector) -> Vector:
        """x as an array that kernels take."""
        return x

    def value_and_gradient(self, x: Vector) -> tuple[float, Vector]:
        """f_i(x) and ∇f_i(x) (d,), off the algorithm's count: kept, if x is not changed before `forget`."""
        if self._kept_at is not x:
            start = time.perf_counter()
            kernels.losses_and_gradients(
                self.rows.matrix, self.rows.labels, self._cuts, self.loss.code, self.weight, self.mu, x, self._value,
                self._gradient.reshape(1, -1),
            )  # fmt: skip
            self.keep(x, float(self._value[0]), time.perf_counter() - start)
        return self._kept[0], self._gradient

    def gradient(self, x: Vector, rows: NDArray[np.uint64] | None = None, scale: float = 1.0) -> Vector:
        """∇f_i(x) (d,); for a minibatch of `rows`, at scale · x, the mean over them in place of the mean over the shard."""
        if rows is None:
            if self._kept_at is not x:
                self.value_and_gradient(x)
            elif self._ahead:
                self._ahead = False
            else:
                self.borrowed += self._kept[1]
            self.charge(self._kept[1])
            return self._gradient
        self.forget()
        self._gradient[:] = 0.0
        self.add_gradient(self._gradient, x, rows, scale)
        return self._gradient

    def add_gradient(self, out: Vector, x: Vector, rows: NDArray[np.uint64] | None, scale: float = 1.0) -> None:
        """out += `gradient(x, rows, scale)`, out (d,) not being what `gradient` returns."""
        if rows is None:
            out += self.gradient(x)
            return
        start = time.perf_counter()
        weight = self.weight * self._n / rows.size
        batch_kernels.add_gradient(self.rows.matrix, self.rows.labels, rows, self.loss.code, weight, self.mu, x, scale, out)
        self.samples += rows.size
        self.seconds += time.perf_counter() - start

    @property
    def touches_little(self) -> bool:
        """Whether the gradient of a minibatch is 0 but on the coordinates that its rows hold."""
        return len(self.rows.matrix) == 3 and self.mu == 0.0

    def add_touching(self, out: Vector, x: Vector, rows: NDArray[np.uint64], scale: float) -> tuple[Indices, float]:
        """`add_gradient` where it `touches_little`: the increasing coordinates that were touched, and what ‖out‖² grew by."""
        start = time.perf_counter()
        indptr, indices, values = self.rows.matrix
        touched = np.empty(int((indptr[rows + np.uint64(1)] - indptr[rows]).sum()), dtype=np.uint32)
        weight = self.weight * self._n / rows.size
        growth = batch_kernels.add_touching(
            indptr, indices, values, self.rows.labels, rows, self.loss.code, weight, x, scale, out, touched
        )
        self.samples += rows.size
        self.seconds += time.perf_counter() - start
        return (touched if rows.size == 1 else np.unique(touched)), growth

    def sparse_gradient(self, x: Vector, rows: NDArray[np.uint64], scale: float = 1.0) -> Sparse:
        """`gradient` where it `touches_little`, held as what it touches."""
        if self._work.size == 0:
            self._work = np.zeros(self.dim)
        touched, _ = self.add_touching(self._work, x, rows, scale)
        values = self._work[touched]
        self._work[touched] = 0.0
        return Sparse(self.dim, touched, values)

    def charge(self, seconds: float) -> None:
        """Count a full gradient."""
        self.seconds += seconds
        self.samples += self._n

    def keep(self, x: Vector, value: float, seconds: float, ahead: bool = False) -> None:
        """Take note that the gradient buffer holds ∇f_i(x): of an evaluation, or `ahead` of an algorithm that will ask for it."""
        self._kept_at, self._kept, self._ahead = x, (value, seconds), ahead

    def forget(self) -> None:
        """x is about to change: drop the kept gradient."""
        self._kept_at = None
        self._ahead = False

    def noise(self, x: Vector) -> float:
        """E‖g − ∇f_i(x)‖² for g the gradient of one row drawn uniformly."""
        margins = np.empty(len(self.rows))
        kernels.margins(self.rows.matrix, x, margins)
        slopes = np.empty(len(self.rows))
        loss_kernels.slopes(self.loss.code, self.rows.labels, margins, slopes)
        second_moment = 0.0
        for start in range(0, len(self.rows), _ROWS_AT_ONCE):
            a, s = self._block(slice(start, start + _ROWS_AT_ONCE)), slopes[start : start + _ROWS_AT_ONCE]
            squares = a.multiply(a).sum(axis=1) if sp.issparse(a) else np.einsum("ij,ij->i", a, a)
            second_moment += float(np.square(self.weight * len(self.rows) * s) @ np.ravel(squares)) / len(self.rows)
        mean = self.value_and_gradient(x)[1] - self.mu * x
        return max(second_moment - float(mean @ mean), 0.0)

    def curvature(self, x: Vector) -> Vector:
        """weight · ∂²ℓ/∂m² of every sample at x, for `hessian_product`."""
        margins = np.empty(len(self.rows))
        kernels.margins(self.rows.matrix, x, margins)
        out = np.empty(len(self.rows))
        loss_kernels.curvatures(self.loss.code, self.rows.labels, margins, out)
        return out * self.weight

    def hessian_product(self, curvature: Vector, v: Vector) -> Vector:
        """∇²f_i · v (d,), a new array."""
        out = np.empty(self.dim)
        kernels.gram_product(self.rows.matrix, curvature, v, out)
        out += self.mu * v
        return out

    def hessian(self, curvature: Vector) -> Vector:
        """∇²f_i (d, d) = Aᵀ diag(curvature) A + µI, for small d."""
        total = np.zeros((self.dim, self.dim))
        for start in range(0, len(self.rows), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            a = self._block(rows)
            if sp.issparse(a):
                total += (a.T @ sp.diags(curvature[rows]) @ a).toarray()
            else:
                total += (a.T * curvature[rows]) @ a
        total[np.diag_indices(self.dim)] += self.mu
        return total

    def _block(self, rows: slice) -> Any:
        """Some rows as a SciPy matrix or a dense array."""
        if len(self.rows.matrix) == 1:
            return self.rows.matrix[0][rows].astype(np.float64, copy=False)
        indptr, indices, values = self.rows.matrix
        ends = indptr[rows.start : rows.stop + 1].astype(np.int64)
        span = slice(ends[0], ends[-1])
        return sp.csr_matrix((values[span], indices[span].astype(np.int64), ends - ends[0]), shape=(ends.size - 1, self.dim))


class LookAhead:
    """Full gradients of all workers hosted here by one call, for on small shards a call takes a good part of the time.

    They are what the objectives compute one by one, to the last bit, and count as if they had.

    Args:
        whole: what the rows of the objectives were cut from, one after the other.
    """

    def __init__(self, objectives: Sequence[Objective], whole: Rows):
        first = objectives[0]
        self._objectives, self._whole = objectives, whole
        self._cuts = np.cumsum([first.rows.start, *(len(f.rows) for f in objectives)], dtype=np.uint64)
        self._values, self._gradients = np.zeros(len(objectives)), np.zeros((len(objectives), first.dim))
        for f, gradient in zip(objectives, self._gradients, strict=True):
            f._gradient = gradient
            f.forget()

    @classmethod
    def of(cls, objectives: Iterable[Objective]) -> "LookAhead | None":
        """None where their shards do not lie one after the other, or where their gradients would not stay in the cache."""
        fs = list(objectives)
        whole = fs[0].rows.whole if len(fs) > 1 else None
        if whole is None or not stay_cached(len(fs), whole.dim):
            return None
        together = all(b.rows.whole is whole and b.rows.start == a.rows.start + len(a.rows) for a, b in itertools.pairwise(fs))
        return cls(fs, whole) if together else None

    def look(self, x: Vector) -> None:
        """Keep the gradients that `gradient(x)` is about to ask for, on the algorithm's clock."""
        x = self._objectives[0].point(x)
        if not self._has(x):
            seconds = self._compute(x)
            for f, value in zip(self._objectives, self._values.tolist(), strict=True):
                f.keep(x, value, seconds, ahead=True)

    def gradients(self, x: Vector) -> NDArray[np.float64]:
        """What `gradient(x)` of all returns, as rows (m, d)."""
        if self._has(x):
            for f in self._objectives:
                f.gradient(x)
        else:
            seconds = self._compute(x)
            for f in self._objectives:
                f._kept_at = None  # an older point
                f.charge(seconds)
        return self._gradients

    def _has(self, x: Vector) -> bool:
        """Whether the gradients at x are kept, of one as of all: of an evaluation, which asks all of them."""
        return self._objectives[0]._kept_at is x

    def _compute(self, x: Vector) -> float:
        """Values and gradients at x. Returns the seconds that each took."""
        f, whole, start = self._objectives[0], self._whole, time.perf_counter()
        kernels.losses_and_gradients(
            whole.matrix, whole.labels, self._cuts, f.loss.code, f.weight, f.mu, x, self._values, self._gradients
        )
        return (time.perf_counter() - start) / len(self._objectives)
