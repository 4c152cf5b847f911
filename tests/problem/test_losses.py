"""Each loss against its formula in plain NumPy, finite differences and eigenvalues."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.special
from helpers.objectives import problem

from mpi_compress.kernels.losses import loss_and_slope
from mpi_compress.problem.losses import losses
from mpi_compress.problem.metrics.base import HeldOut
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.rows import Rows
from mpi_compress.problem.scaled_vector import ScaledVector
from mpi_compress.problem.second_order import curvature_at, dense_hessian, hessian_product

FORMULAS = {  # ℓ(y, m) as docs/maths.md has it
    "logistic": lambda y, m: np.logaddexp(0, -y * m),
    "logistic-base2": lambda y, m: np.logaddexp(0, -y * m) / np.log(2),
    "squared-hinge": lambda y, m: np.maximum(1 - y * m, 0) ** 2,
    "hinge": lambda y, m: np.maximum(1 - y * m, 0),
    "least-squares": lambda y, m: (m - y) ** 2 / 2,
    "huber": lambda y, m: np.where(np.abs(m - y) <= 1, (m - y) ** 2 / 2, np.abs(m - y) - 0.5),
    "smooth-hinge": lambda y, m: np.where(y * m <= 0, 0.5 - y * m, np.maximum(1 - y * m, 0) ** 2 / 2),
    "squared-sigmoid": lambda y, m: scipy.special.expit(-y * m) ** 2,
}
ALL = pytest.mark.parametrize("name", sorted(losses))
SMOOTH = pytest.mark.parametrize("name", sorted(n for n in losses if losses[n]().smooth))
MARGINS = np.concatenate([np.linspace(-4, 4, 41) + 1e-3, [-700.0, 700.0, -1e8, 1e8]])


def test_every_loss_has_its_formula_here():
    assert set(FORMULAS) == set(losses)


@ALL
@pytest.mark.parametrize("y", [1.0, -1.0])
def test_value_is_the_formula_for_any_margin(name, y):
    values, _ = losses[name]().value_and_slope(np.full(MARGINS.size, y), MARGINS)
    np.testing.assert_allclose(values, FORMULAS[name](y, MARGINS), rtol=1e-14)


@pytest.mark.parametrize("name", sorted(n for n in losses if losses[n].kernel is not None))
def test_a_kernel_gives_on_arrays_what_it_gives_one_by_one(name):
    y = np.where(np.arange(MARGINS.size) % 2, 1.0, -1.0)
    one_by_one = [loss_and_slope(losses[name].kernel, label, m) for label, m in zip(y, MARGINS, strict=True)]
    assert np.array_equal(losses[name]().value_and_slope(y, MARGINS), np.transpose(one_by_one))


@ALL
@pytest.mark.parametrize("y", [1.0, -1.0])
def test_slope_is_the_derivative_and_finite(name, y):
    h = 1e-6
    _, slopes = losses[name]().value_and_slope(np.full(MARGINS.size, y), MARGINS)
    assert np.isfinite(slopes).all()
    near, quotients = np.abs(MARGINS) < 10, (FORMULAS[name](y, MARGINS + h) - FORMULAS[name](y, MARGINS - h)) / (2 * h)
    np.testing.assert_allclose(slopes[near], quotients[near], rtol=1e-6, atol=1e-8)


@SMOOTH
def test_curvature_is_the_second_derivative_and_stays_under_its_bound(name):
    m = np.linspace(-4, 4, 20001) + 1e-4
    for y in (1.0, -1.0):
        labels = np.full(m.size, y)
        ours = losses[name]().second_derivative(labels, m)
        slopes = [losses[name]().value_and_slope(labels, m + s)[1] for s in (-1e-6, 1e-6)]
        np.testing.assert_allclose(ours, (slopes[1] - slopes[0]) / 2e-6, rtol=1e-6, atol=1e-8)
        assert np.abs(ours).max() <= losses[name]().curvature * (1 + 1e-15)
    assert ours.max() >= losses[name]().curvature * (1 - 1e-6)  # the bound is reached


@ALL
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_value_and_gradient_of_rows(name, sparse, dtype):
    f, a = problem(name, sparse, dtype)
    x = np.random.default_rng(1).standard_normal(7)
    margins, y = a @ x, f.rows.labels
    value, gradient = f.value_and_gradient(x)
    assert value == pytest.approx(FORMULAS[name](y, margins).mean() + 0.15 * x @ x, rel=1e-14)
    slopes = losses[name]().value_and_slope(y, margins)[1]
    np.testing.assert_allclose(gradient, a.T @ slopes / 40 + 0.3 * x, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("dim", [1, 7, 33])
@pytest.mark.parametrize("n", range(1, 10))
def test_value_and_gradient_of_any_number_of_rows(n, dim, sparse):
    rng = np.random.default_rng(n)
    a, y, x = rng.standard_normal((n, dim)), rng.choice([-1.0, 1.0], n), rng.standard_normal(dim)
    csr = sp.csr_matrix(a)
    matrix = (csr.indptr.astype(np.uint64), csr.indices.astype(np.uint32), csr.data) if sparse else (a,)
    margins = a @ x
    for name, slopes in (("logistic", -y / (1 + np.exp(y * margins))), ("hinge", -y * (y * margins < 1))):
        value, gradient = Objective(Rows(matrix, y, dim), losses[name](), 1 / n, 0.0).value_and_gradient(x)
        assert value == pytest.approx(np.mean(FORMULAS[name](y, margins)), rel=1e-13)
        np.testing.assert_allclose(gradient, slopes @ a / n, rtol=1e-12, atol=1e-14)


@ALL
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rows", [[5], [3, 3, 17]])
def test_gradient_of_a_minibatch_is_the_mean_over_its_rows(name, sparse, dtype, rows):
    f, a = problem(name, sparse, dtype)
    for x in np.random.default_rng(1).standard_normal((2, 7)) * [[1.0], [100.0]]:  # far out some slopes are 0
        margins, y = a[rows] @ (0.5 * x), f.rows.labels[rows]
        slopes = losses[name]().value_and_slope(y, margins)[1]
        gradient = f.gradient(ScaledVector(x, 0.5), np.array(rows, dtype=np.uint64))
        np.testing.assert_allclose(gradient, a[rows].T @ slopes / len(rows) + 0.3 * 0.5 * x, rtol=1e-10, atol=1e-10)


def test_a_loss_beyond_floats_is_infinite():
    y = np.array([1.0, -1.0, 1.0])
    f = Objective(Rows((np.array([[1.0], [1e160], [1e200]]),), y, 1), losses["least-squares"](), 1 / 3, 0.0)
    assert f.value_and_gradient(np.array([1.0]))[0] == np.inf


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_cut_rows_are_those_rows(sparse, dtype):
    whole, a = problem("logistic", sparse, dtype)
    for start, stop in ((0, 40), (3, 5), (17, 40), (9, 9)):
        cut = whole.rows.cut(start, stop)
        again = cut.cut(0, stop - start)
        for rows in (cut, again):
            read = sp.csr_matrix(rows.matrix[::-1], shape=(stop - start, 7)).toarray() if sparse else rows.matrix[0]
            assert np.array_equal(read, a[start:stop])
            assert np.array_equal(rows.labels, whole.rows.labels[start:stop])
            assert start == stop or np.shares_memory(rows.matrix[-1], whole.rows.matrix[-1])


def test_an_evaluation_is_found_again_at_an_equal_point_and_at_no_other():
    f, _ = problem("logistic", True)
    x = np.arange(7.0)
    value, _ = f.value_and_gradient(x)
    g = f.gradient(x.copy()).copy()
    borrowed = f.shard.borrowed[0]
    assert borrowed > 0  # what the evaluation computed
    x[3] += 1.0  # the same array, another point
    assert f.value_and_gradient(x)[0] != value
    x[3] += 1.0
    assert f.gradient(x).tobytes() != g.tobytes()
    assert f.shard.borrowed[0] == borrowed


def test_an_evaluation_is_charged_once_where_x_stands_still():
    """At a fixed point, rounds take what their gradients take, however long the evaluation took that found one of them first."""
    f, _ = problem("logistic", True)
    x = np.arange(7.0)
    g = f.value_and_gradient(x)[1].copy()
    f.shard.took[:] = 1000.0
    again = [f.gradient(x).tobytes() for _ in range(3)]
    assert again == [g.tobytes()] * 3
    assert f.shard.borrowed[0] == 1000.0
    assert 1000.0 < f.shard.seconds[0] < 1001.0
    assert f.shard.samples[0] == 3 * 40


@SMOOTH
@pytest.mark.parametrize("sparse", [True, False])
def test_hessian_is_the_derivative_of_the_gradient(name, sparse):
    f, _ = problem(name, sparse)
    x, v = np.random.default_rng(2).standard_normal((2, 7))
    curvature = curvature_at(f, x)
    sides = [f.value_and_gradient(x + t * v)[1].copy() for t in (1e-6, -1e-6)]
    np.testing.assert_allclose(hessian_product(f, curvature, v), (sides[0] - sides[1]) / 2e-6, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(dense_hessian(f, curvature) @ v, hessian_product(f, curvature, v), rtol=1e-12)


@SMOOTH
def test_smoothness_is_the_largest_eigenvalue_that_a_hessian_can_have(name):
    f, a = problem(name, sparse=True, mu=0.0)
    L = losses[name]().curvature * np.linalg.eigvalsh(a.T @ a)[-1] / 40
    rng = np.random.default_rng(3)
    largest = max(np.linalg.eigvalsh(dense_hessian(f, curvature_at(f, x)))[-1] for x in [np.zeros(7), *rng.standard_normal((50, 7))])
    assert largest <= L * (1 + 1e-12)
    if name not in ("huber", "smooth-hinge", "squared-sigmoid"):
        assert largest >= L * (1 - 1e-12)  # the others reach it at x = 0


def test_hinge_gradient_is_a_subgradient():
    f, _ = problem("hinge", sparse=True)
    rng = np.random.default_rng(4)
    for x, z in rng.standard_normal((100, 2, 7)):
        value, g = f.value_and_gradient(x)
        g = g.copy()
        assert f.value_and_gradient(z)[0] >= value + g @ (z - x) - 1e-14


@ALL
def test_held_out_loss_is_the_mean_and_accuracy_the_share_classified_right(name):
    rng = np.random.default_rng(6)
    m, y = rng.standard_normal(101), np.where(rng.random(101) < 0.5, 1.0, -1.0)
    m[0] = 0.0  # counts as −1
    found = HeldOut(Rows((m.reshape(-1, 1),), y, 1), losses[name]()).columns(np.ones(1))
    assert found["test_loss"] == pytest.approx(FORMULAS[name](y, m).mean(), rel=1e-14)
    assert found["test_accuracy"] == np.mean(np.where(m > 0, 1, -1) == y)
