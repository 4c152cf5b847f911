"""L, x* and f*: against published values, other solvers, and duality."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from helpers.objectives import problem
from sklearn.svm import LinearSVC

from mpi_compress.problem.constants import gradient_noise, gram_eigenvalues, largest_eigenvalue
from mpi_compress.problem.datasets.store import open_data
from mpi_compress.problem.datasets.table import DataTable
from mpi_compress.problem.losses import losses
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.optimum import hinge, minimize, newton
from mpi_compress.problem.optimum.base import lowest_seen, value_and_gradient
from mpi_compress.problem.partitions import Split
from mpi_compress.problem.penalties import penalties
from mpi_compress.problem.rows import Rows
from mpi_compress.problem.second_order import curvature_at, dense_hessian


def whole(table: DataTable, loss: str, mu: float, tmp_path) -> tuple[Objective, float]:
    """The objective on all rows, and L of the data part; `mu` is its share of that, where the loss is smooth."""
    data = open_data(table, tmp_path, Split(), "number" if losses[loss].real_labels else "sign")
    rows = data.read(0, data.n_samples)
    if not losses[loss]().smooth:
        return Objective(rows, losses[loss](), 1 / len(rows), mu), np.nan
    L = losses[loss]().curvature * gram_eigenvalues(data)[0] / data.n_samples
    return Objective(rows, losses[loss](), 1 / len(rows), mu * L), L


@pytest.mark.parametrize(("name", "rows", "L", "f_star", "digits"), [
    ("madelon", None, 29790805.649, 0.66791955, 5e-9),
    ("mushrooms", 8000, 2.59380464, 0.0232243210, 6e-11),
    ("a9a", 32000, 1.57221824, 0.3249566847, 6e-11),
])  # fmt: skip
def test_published_smoothness_and_minimum(real_data, tmp_path, name, rows, L, f_star, digits):
    f, ours = whole(DataTable(name=name, rows=rows), "logistic", 1e-4, tmp_path)
    assert ours == pytest.approx(L, rel=4e-9)  # as many digits as were published
    best = minimize(f)
    assert abs(best.f - f_star) <= digits
    assert best.reached <= 1e-12


@pytest.mark.slow
def test_text_of_many_features_is_solved(real_data, tmp_path):
    table = DataTable(name="news20", positive=[float(i) for i in range(1, 11)], normalize="rows")
    best = minimize(whole(table, "logistic", 1e-4, tmp_path)[0])
    assert best.reached <= 3e-12  # 1e-12, or as far as rounding lets it
    assert best.accuracy <= 1e-15
    assert best.f == pytest.approx(0.02944803653, abs=1e-11)


@pytest.mark.parametrize("name", sorted(n for n in losses if losses[n].solver == "newton"))
@pytest.mark.parametrize("mu", [0.3, 1e-6])
def test_minimum_is_the_one_that_another_solver_finds(name, mu):
    f, _ = problem(name, sparse=True, mu=mu)
    best = minimize(f)

    def value(x):
        value, gradient = f.value_and_gradient(x)
        return value, gradient.copy()

    other = scipy.optimize.minimize(value, np.zeros(7), jac=True, method="BFGS", options={"gtol": 1e-9})
    assert best.reached <= 1e-12
    assert best.f <= other.fun + 1e-15
    assert best.f == pytest.approx(other.fun, abs=1e-9)


def test_conjugate_gradients_and_a_dense_hessian_agree(monkeypatch, tmp_path):
    f, _ = whole(DataTable(generator="gspar", parameters={"samples": 200, "dim": 60}), "logistic", 1e-3, tmp_path)
    dense = minimize(f)
    monkeypatch.setattr("mpi_compress.problem.optimum.newton.DENSE_HESSIAN_UP_TO", 0)
    iterated = minimize(f)
    assert iterated.reached <= 1e-12
    np.testing.assert_allclose(iterated.x, dense.x, atol=1e-10 * np.abs(dense.x).max())


@pytest.mark.parametrize("loss", ["logistic", "squared-hinge"])
def test_many_rows_are_solved_from_samples_of_them_with_few_passes(monkeypatch, tmp_path, loss):
    f, _ = whole(DataTable(generator="gspar", parameters={"samples": 20_000, "dim": 30}), loss, 1e-4, tmp_path)
    direct = minimize(f)
    passes = []
    monkeypatch.setattr(newton, "is_soon_solved", lambda *size: False)
    monkeypatch.setattr(newton, "value_and_gradient", lambda f, x: passes.append(len(f.rows)) or value_and_gradient(f, x))
    monkeypatch.setattr(newton, "dense_hessian", lambda f, c: passes.append(len(f.rows)) or dense_hessian(f, c))
    best = minimize(f)
    assert best.reached <= 1e-12
    np.testing.assert_allclose(best.x, direct.x, atol=1e-10 * np.abs(direct.x).max())
    assert sum(passes) <= 20 * len(f.rows)


@pytest.mark.parametrize("solver", ["interior point", "coordinate ascent"])
@pytest.mark.parametrize("mu", [0.1, 1e-3])
def test_hinge_minimum_is_within_its_duality_gap(monkeypatch, tmp_path, solver, mu):
    if solver == "coordinate ascent":
        monkeypatch.setattr(hinge, "_INTERIOR_UP_TO", 0)
    table = DataTable(generator="gspar-svm", parameters={"samples": 300, "dim": 20})
    f, _ = whole(table, "hinge", mu, tmp_path)
    best = hinge.minimize(f)
    value, gap = best.f, best.reached
    assert 0 <= gap <= hinge.GAP
    assert f.value_and_gradient(best.x)[0] == value
    svc = LinearSVC(loss="hinge", C=1 / (mu * 300), fit_intercept=False, tol=1e-6, max_iter=1_000_000, random_state=0)
    theirs = svc.fit(f.rows.matrix[0], f.rows.labels).coef_[0]
    other = f.value_and_gradient(theirs)[0]
    assert value - gap <= other + 1e-15  # no point is below f* ≥ P − gap
    assert value == pytest.approx(other, abs=1e-5)


def test_hinge_without_a_regulariser_has_no_f_star(tmp_path):
    f, _ = whole(DataTable(generator="gspar-svm", parameters={"samples": 30, "dim": 5}), "hinge", 0.0, tmp_path)
    assert minimize(f).reached == 1.0


def test_least_squares_has_the_condition_number_and_the_minimum_that_were_asked_for(tmp_path):
    table = DataTable(generator="least-squares", parameters={"samples": 300, "dim": 20, "condition": 1e4})
    f, smoothness = whole(table, "least-squares", 0.0, tmp_path)
    assert smoothness == pytest.approx(1, rel=1e-12)
    eigenvalues = np.linalg.eigvalsh(dense_hessian(f, curvature_at(f, np.zeros(20))))
    assert eigenvalues[-1] / eigenvalues[0] == pytest.approx(1e4, rel=1e-9)
    assert minimize(f).f <= 1e-20  # interpolated


def test_more_features_than_samples_without_a_regulariser_give_no_warning(tmp_path):
    table = DataTable(generator="gspar", parameters={"samples": 60, "dim": 120})
    assert minimize(whole(table, "logistic", 0.0, tmp_path)[0]).f >= 0  # warnings are errors here


@pytest.mark.parametrize(("samples", "dim", "loss"), [(20, 40, "logistic"), (60, 3, "logistic"), (20, 40, "squared-hinge"), (300, 3, "logistic")])
def test_separable_rows_without_a_regulariser_have_an_infimum_and_no_minimiser(samples, dim, loss, tmp_path):
    """The logistic loss falls to 0 along an exponential tail; the squared hinge reaches 0; other rows have a minimiser."""
    f, _ = whole(DataTable(generator="gspar", parameters={"samples": samples, "dim": dim}), loss, 0.0, tmp_path)
    best, far = minimize(f), f.value_and_gradient(1e4 * minimize(f).x)[0]
    assert best.attained == (far > 0 or loss == "squared-hinge")
    assert best.attained or (best.f, best.accuracy) == (0.0, 0.0)


@pytest.mark.parametrize("apart", [True, False])
def test_rows_of_which_some_are_separable_have_an_infimum_above_0_and_no_minimiser(apart):
    """Ten rows of a third feature that says their labels, or, not apart, errs in one: f falls towards the infimum of the others."""
    rng = np.random.default_rng(0)
    A, y = np.c_[rng.standard_normal((40, 2)), np.zeros(40)], np.sign(rng.standard_normal(40))
    A[:10, :2], A[:10, 2] = 0, y[:10] * rng.uniform(0.5, 1, 10) * np.r_[np.ones(9), 1 if apart else -1]
    best = minimize(Objective(Rows((A,), y, 3), losses["logistic"](), 1 / 40, 0.0))
    others = minimize(Objective(Rows((A[10:],), y[10:], 3), losses["logistic"](), 1 / 40, 0.0))
    assert best.attained == (not apart)
    assert (best.f == pytest.approx(others.f, abs=1e-11)) == apart
    assert others.attained


@pytest.mark.parametrize("name", sorted(n for n in losses if losses[n].solver == "newton"))
def test_the_accuracy_is_the_square_of_the_newton_decrement(name, monkeypatch):
    """Seen where Newton's method is broken off; where f is quadratic that is twice the error."""
    f, _ = problem(name, sparse=False, mu=0.3)
    f_star = minimize(f).f
    monkeypatch.setattr("mpi_compress.problem.optimum.newton._STEPS", 0 if name == "least-squares" else 2)
    best = minimize(f)
    assert best.f - f_star <= best.accuracy
    if name == "least-squares":
        assert best.accuracy == pytest.approx(2 * (best.f - f_star), rel=1e-9)


@pytest.mark.parametrize(("n", "dim"), [(6, 70_000), (2, 70_000), (6, 900)])
def test_wide_rows_have_the_eigenvalue_of_all_columns(n, dim, monkeypatch):
    a = scipy.sparse.random_array((n, dim), density=0.002, format="csr", rng=np.random.default_rng(n))
    rows = Rows((a.indptr.astype(np.uint64), a.indices.astype(np.uint32), a.data), np.ones(n), dim)
    assert largest_eigenvalue(rows) == pytest.approx(np.linalg.eigvalsh((a @ a.T).toarray())[-1], rel=2.0**-40)
    there = largest_eigenvalue(rows)
    monkeypatch.setattr("mpi_compress.problem.constants.WIDE", 2**40)
    assert largest_eigenvalue(rows) == pytest.approx(there, rel=1e-12)


@pytest.mark.parametrize("generator", ["gspar", "rcv1-like"])
def test_the_eigenvalue_of_a_shard_of_one_row_is_that_of_lanczos(generator, tmp_path):
    data = open_data(DataTable(generator=generator, parameters={"samples": 30}), tmp_path, Split(), "sign")
    each = [largest_eigenvalue(rows) for rows in data.shards(range(30), 30)]
    assert gram_eigenvalues(data, 30) == pytest.approx(each, rel=2.0**-39)


def test_as_many_workers_as_rows_that_all_have_all_rows_have_the_eigenvalue_of_all(tmp_path):
    data = replace(open_data(DataTable(generator="gspar", parameters={"samples": 31}), tmp_path, Split(), "sign"), shared=True)
    assert gram_eigenvalues(data, 31) == gram_eigenvalues(data) * 31


def test_noise_whose_squares_overflow_is_infinite(tmp_path):
    data = open_data(DataTable(generator="gspar", parameters={"samples": 20, "dim": 5}), tmp_path, Split(), "sign")
    fs = [Objective(rows, losses["logistic"](), 2 / 20, 0.1) for rows in data.shards(range(2), 2)]
    assert gradient_noise(fs, 2, 3, np.full(5, 1e200)) == (np.inf, np.inf)
    assert np.isfinite(gradient_noise(fs, 2, 3, np.full(5, 1e10))).all()


@pytest.mark.parametrize("weight", [0.01, 0.3])
def test_the_lowest_value_that_is_seen_is_that_of_a_long_plain_loop(weight):
    """Proximal gradient descent with steps 1/L: 30,000 of them, by NumPy alone."""
    f, _ = problem("logistic", sparse=False, mu=0.0)
    (A,), y = f.rows.matrix, f.rows.labels
    N, L = len(y), np.linalg.eigvalsh(A.T @ A)[-1] / 4 / len(y)
    x = np.zeros(A.shape[1])
    for _ in range(30_000):
        v = x + A.T @ (y / (1 + np.exp(y * (A @ x)))) / N / L
        x = np.sign(v) * np.maximum(np.abs(v) - weight / L, 0)
    least = np.mean(np.logaddexp(0, -y * (A @ x))) + weight * np.abs(x).sum()
    found = lowest_seen(f, np.zeros(x.size), penalties["l1"](weight=weight).evaluated({}))
    assert found.f == pytest.approx(least, rel=1e-10)
    assert np.isnan(found.accuracy)
    smooth = lowest_seen(problem("logistic", sparse=False, mu=0.1)[0], np.zeros(x.size))
    assert smooth.f == pytest.approx(minimize(problem("logistic", sparse=False, mu=0.1)[0]).f, rel=1e-10)
