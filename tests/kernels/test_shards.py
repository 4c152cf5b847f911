"""Value and gradient of a shard against the order of additions as it is written down, in exact arithmetic rounded where it is said."""

import itertools
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from mpi_compress.kernels.losses import LOGISTIC, exponential, log_of_one_plus, loss_and_slope, losses_and_slopes
from mpi_compress.kernels.shards import losses_and_gradients
from mpi_compress.problem.rows import Rows


def fma(a, b, c) -> float:
    return float(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))


def plain(matrix, labels, weight, mu, x) -> tuple[float, np.ndarray]:
    """`losses_and_gradients` of one shard of sparse rows, as its module states it."""
    indptr, indices, values = matrix
    gradient, of_rows = np.zeros(x.size), []
    for i, y in enumerate(labels):
        row = range(int(indptr[i]), int(indptr[i + 1]))
        sums = [0.0] * 4
        for p in row:
            k = (p - row.start) % 4 if p < row.start + len(row) // 4 * 4 else 0
            sums[k] = fma(values[p], x[indices[p]], sums[k])
        value, slope = loss_and_slope(LOGISTIC, y, ((sums[1] + sums[2]) + sums[3]) + sums[0])
        of_rows.append(value)
        for p in row:
            gradient[indices[p]] = fma(weight * slope, values[p], gradient[indices[p]])
    total = float(sum(map(Fraction, of_rows)))
    return weight * total + 0.5 * mu * float(x @ x), gradient + mu * x


def shard(rng, n, dim, dtype=np.float64, equal=False) -> tuple[tuple, np.ndarray]:
    """n rows, of 0 to 12 nonzeros but the first and the last, which have none, and labels."""
    a = sp.random_array((n, dim), density=min(1.0, 6 / dim), format="csr", rng=rng)
    lengths = np.diff(a.indptr)
    values = np.repeat(rng.standard_normal(n), lengths) if equal else rng.standard_normal(a.nnz)
    indptr = np.concatenate([[0], a.indptr, [a.nnz]]).astype(np.uint64)
    return (indptr, a.indices.astype(np.uint32), values.astype(dtype)), rng.choice([-1.0, 1.0], n + 2)


def computed(matrix, labels, mu, x, cuts=None) -> tuple[np.ndarray, np.ndarray]:
    cuts = np.array([0, labels.size] if cuts is None else cuts, dtype=np.uint64)
    values, gradients = np.full(cuts.size - 1, np.nan), np.full((cuts.size - 1, x.size), np.nan)
    losses_and_gradients(matrix, labels, cuts, LOGISTIC, 1 / labels.size, mu, x[None], values, gradients)
    return values, gradients


@pytest.mark.parametrize(("n", "dim"), [(1, 3), (40, 9), (520, 20), (40, 70_000)])  # one block, two, and x so long that fetching ahead pays
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("equal", [False, True])
def test_gradient_of_a_shard_has_the_bits_of_the_stated_order_of_additions(n, dim, dtype, equal):
    rng = np.random.default_rng(n)
    matrix, labels = shard(rng, n, dim, dtype, equal)
    x = rng.standard_normal(dim)
    value, gradient = plain(matrix, labels, 1 / labels.size, 0.25, x)
    compact = Rows(matrix, labels, dim).compact
    assert compact[2].size == (labels.size if equal and labels.size < matrix[2].size else matrix[2].size)
    for stored in (matrix, compact):
        values, gradients = computed(stored, labels, 0.25, x)
        assert gradients[0].tobytes() == gradient.tobytes()
        assert values[0] == pytest.approx(value, rel=1e-14)


def in_lanes(A, labels, weight, mu, x) -> tuple[float, np.ndarray]:
    """`losses_and_gradients` of one shard of dense rows, as `kernels.lanes` states it."""
    gradient, of_rows, whole = np.zeros(x.size), [], x.size // 8 * 8
    for a, y in zip(A, labels, strict=True):
        s = [0.0] * 8
        for j in range(whole):
            s[j % 8] = fma(a[j], x[j], s[j % 8])
        margin = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
        for j in range(whole, x.size):
            margin = fma(a[j], x[j], margin)
        value, slope = loss_and_slope(LOGISTIC, y, margin)
        of_rows.append(value)
        gradient = np.array([fma(weight * slope, a[j], gradient[j]) for j in range(x.size)])
    return weight * float(sum(map(Fraction, of_rows))) + 0.5 * mu * float(x @ x), gradient + mu * x


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "dim"), [(0, 5), (1, 8), (7, 13), (8, 3), (21, 29), (530, 3), (2, 2050), (9, 2049), (25, 2064)])  # long rows, too
def test_gradient_of_dense_rows_has_the_bits_of_the_stated_order_of_additions(n, dim, dtype):
    rng = np.random.default_rng(n)
    A, labels, x = rng.standard_normal((n, dim)).astype(dtype), rng.choice([-1.0, 1.0], n), rng.standard_normal(dim)
    value, gradient = in_lanes(A, labels, 1 / max(n, 1), 0.25, x)
    values, gradients = np.empty(1), np.empty((1, dim))
    cuts = np.array([0, n], dtype=np.uint64)
    losses_and_gradients((A,), labels, cuts, LOGISTIC, 1 / max(n, 1), 0.25, x[None], values, gradients)
    assert gradients[0].tobytes() == gradient.tobytes()
    assert values[0] == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize("equal", [False, True])
def test_shards_together_have_the_bits_of_each_alone(equal):
    rng = np.random.default_rng(5)
    matrix, labels = shard(rng, 600, 20, equal=equal)
    whole, x, cuts = Rows(matrix, labels, 20), rng.standard_normal(20), [0, 3, 3, 520, 602]
    values, gradients = computed(whole.compact, labels, 0.0, x, cuts)
    for i, (start, stop) in enumerate(itertools.pairwise(cuts)):
        alone = whole.cut(start, stop)
        value, gradient = np.zeros(1), np.zeros((1, 20))
        ends = np.array([0, len(alone)], dtype=np.uint64)
        losses_and_gradients(alone.compact, alone.labels, ends, LOGISTIC, 1 / labels.size, 0.0, x[None], value, gradient)
        assert value[0] == values[i]
        assert gradient.tobytes() == gradients[i].tobytes()


@pytest.mark.parametrize("j", [0, 40, -1])  # in the first rows, later, in the last
def test_rows_with_one_other_value_are_stored_as_they_are(j):
    matrix, labels = shard(np.random.default_rng(6), 50, 9, equal=True)
    matrix[2][j] += 1.0
    assert Rows(matrix, labels, 9).compact[2] is matrix[2]


def exactly(f, *numbers) -> Decimal:
    with localcontext() as context:
        context.prec = 60
        return f(*map(Decimal, numbers))


def ulps(found: float, exact: Decimal) -> float:
    return float(abs(exactly(lambda f: f - exact, found))) / np.spacing(float(exact))


def test_exponential_and_logarithm_are_within_an_ulp():
    rng = np.random.default_rng(7)
    for t in np.concatenate([[0.0, 1e-300, 511.9], np.exp(rng.uniform(-30, 6.2, 100)), rng.uniform(0, 5, 100)]):
        assert ulps(exponential(-t), exactly(lambda d: (-d).exp(), t)) < 0.52
    edges = [1e-300, 2.0**-29, 2.0**-29 * 0.999, 0.41421, 0.41422, 1 - 2.0**-20, 1 - 2.0**-19, 1 - 2.0**-53, 1.0]
    for e in np.concatenate([edges, np.exp(-rng.uniform(0, 25, 100)), rng.random(100)]):
        assert ulps(log_of_one_plus(e), exactly(lambda d: (1 + d).ln() if d > Decimal(10) ** -40 else d, e)) < 1.0
    assert log_of_one_plus(0.0) == 0.0


@pytest.mark.parametrize("code", [0, 1])
def test_losses_at_once_are_those_one_by_one_also_far_out(code):
    margins = np.array([0.0, -0.0, 1e-5, -3.0, 511.0, -511.0, 512.0, -513.0, 745.2, -1e8, np.inf, -np.inf, np.nan, 0.3])
    for some in (margins, margins[:5]):
        y, found = np.where(np.arange(some.size) % 3, 1.0, -1.0), np.empty((2, some.size))
        losses_and_slopes(code, y, some, *found)
        np.testing.assert_array_equal(found, np.transpose([loss_and_slope(code, a, m) for a, m in zip(y, some, strict=True)]))


def test_rows_that_are_not_contiguous_have_the_gradient_of_their_copy():
    whole, labels, x = np.random.default_rng(8).standard_normal((12, 9)), np.ones(4), np.ones(9)
    for A in (whole[::3], np.asfortranarray(whole[:4]), whole[:4, ::-1]):
        values, gradients = computed(Rows((A,), labels, 9).matrix, labels, 0.0, x)
        again, expected = computed((np.ascontiguousarray(A),), labels, 0.0, x)
        assert gradients.tobytes() == expected.tobytes()
        assert values == again
    with pytest.raises(Exception, match="rows are C-contiguous"):
        computed((whole[::3],), labels, 0.0, x)
