"""Models: gradients against finite differences, optima against other solvers, constants against dense eigenvalues."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from mpi_compress.core.errors import UserError
from mpi_compress.problem.constants import steepest_change
from mpi_compress.problem.datasets import generators
from mpi_compress.problem.metrics.base import HeldOut
from mpi_compress.problem.models import Model, Outline, models
from mpi_compress.problem.models.deep.network import Network
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.optimum import minimize
from mpi_compress.problem.rows import Rows
from mpi_compress.problem.second_order import hessian_at, sampling_noise


def rows_of(a, labels, sparse):
    csr = sp.csr_matrix(a)
    parts = (csr.indptr.astype(np.uint64), csr.indices.astype(np.uint32), csr.data)
    return Rows(parts if sparse else (np.ascontiguousarray(a),), labels, a.shape[1])


def classified(sparse=False, samples=40, features=6, classes=3, dtype=np.float64):
    rng = np.random.default_rng(3)
    labels = np.arange(samples) % classes
    a = (rng.standard_normal((samples, features)) + labels[:, None] * 0.3) * (rng.random((samples, features)) < 0.7)
    return rows_of(a.astype(dtype), labels.astype(float), sparse)


def rated(sparse=True, users=5, items=7, samples=30):
    rng = np.random.default_rng(4)
    a = np.zeros((samples, users + items))
    pairs = list(itertools.product(range(users), range(items)))
    for j, p in enumerate(rng.permutation(len(pairs))[:samples]):
        a[j, pairs[p][0]] = a[j, users + pairs[p][1]] = 1.0
    return rows_of(a, rng.integers(1, 6, samples).astype(float), sparse)


def quadratics(samples=4, heterogeneity=0.5):
    a, labels = generators["tridiagonal"](samples=samples, heterogeneity=heterogeneity, seed=1).make()
    return rows_of(a, labels, False)


CASES = {
    "softmax": (models["softmax"](), classified()),
    "softmax, sparse": (models["softmax"](bias=True), classified(sparse=True)),
    "softmax, float32": (models["softmax"](bias=True), classified(dtype=np.float32)),
    "matrix-factorisation": (models["matrix-factorisation"](rank=3), rated()),
    "matrix-factorisation, dense": (models["matrix-factorisation"](rank=2, bias=True), rated(sparse=False)),
    "quadratic": (models["quadratic"](dim=12, convexity=0.1), quadratics()),
}
ALL = pytest.mark.parametrize("case", CASES)


def bound(case) -> tuple[Model, Rows]:
    model, rows = CASES[case]
    classes = int(rows.labels.max()) + 1 if model.labels == "class" else 0
    return model.within(Outline(len(rows), rows.dim, classes)), rows


def test_every_model_is_tried_here():
    assert {type(model).name for model, _ in CASES.values()} == {k for k, cls in models.items() if not issubclass(cls, Network)}


@ALL
def test_gradient_is_the_derivative(case):
    model, rows = bound(case)
    x = np.random.default_rng(0).standard_normal(model.dim)
    _, gradient = model.loss_and_gradient(x, rows, None)
    for j in range(model.dim):
        h = 1e-6 * np.eye(model.dim)[j]
        sides = [model.loss_and_gradient(x + t * h, rows, None)[0] for t in (1, -1)]
        assert gradient[j] == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-6, abs=1e-7)


@ALL
def test_a_minibatch_is_the_mean_over_its_rows_and_all_rows_are_the_whole(case):
    model, rows = bound(case)
    x, n = np.random.default_rng(0).standard_normal(model.dim), len(rows)
    f = Objective(rows, model, 1 / n, 0.3)
    each = [f.gradient(x, np.array([j], dtype=np.uint64)).copy() for j in range(n)]
    np.testing.assert_allclose(f.gradient(x, np.array([2, 0, 2], dtype=np.uint64)), (2 * each[2] + each[0]) / 3, atol=1e-12)
    np.testing.assert_allclose(f.value_and_gradient(x)[1], np.mean(each, axis=0), atol=1e-12)
    assert sampling_noise(f, x) == pytest.approx(np.mean([np.sum((g - np.mean(each, axis=0)) ** 2) for g in each]), rel=1e-9)


@ALL
def test_the_blocks_are_all_of_x_in_order(case):
    model, _ = bound(case)
    x = np.arange(float(model.dim))
    assert np.array_equal(np.concatenate([block.ravel() for block in model.split(x).values()]), x)
    start = model.start(np.random.default_rng(0))
    assert start.shape == (model.dim,)
    assert np.array_equal(start, model.start(np.random.default_rng(0)))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_softmax_is_the_mean_negative_log_probability(bias, sparse):
    rows = classified(sparse)
    model = models["softmax"](bias=bias).within(Outline(40, 6, 3))
    x = np.random.default_rng(1).standard_normal(model.dim)
    blocks = model.split(x)
    scores = classified().matrix[0] @ blocks["X"] + (blocks["b"] if bias else 0.0)
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    assert model.loss_and_gradient(x, rows, None)[0] == pytest.approx(-logs[np.arange(40), rows.labels.astype(int)].mean(), rel=1e-14)
    np.testing.assert_allclose(model.scores(x, rows), scores, rtol=1e-12)
    found = HeldOut(rows, model).columns(x)
    assert found["test_accuracy"] == np.mean(scores.argmax(axis=1) == rows.labels)


def test_softmax_of_two_classes_is_the_logistic_loss_of_the_difference():
    rows = classified(classes=2)
    model = models["softmax"]().within(Outline(40, 6, 2))
    x = np.random.default_rng(1).standard_normal((6, 2))
    margins = rows.matrix[0] @ (x[:, 1] - x[:, 0])
    value, _ = model.loss_and_gradient(x.ravel(), rows, None)
    assert value == pytest.approx(np.logaddexp(0, -margins * (2 * rows.labels - 1)).mean(), rel=1e-13)


def test_softmax_stays_finite_far_out():
    rows, model = classified(), models["softmax"]().within(Outline(40, 6, 3))
    value, gradient = model.loss_and_gradient(np.full(18, 1e8) * np.arange(18), rows, None)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("bias", [False, True])
def test_a_hessian_product_is_the_derivative_of_the_gradient_and_below_the_smoothness(bias):
    rows, model = classified(), models["softmax"](bias=bias).within(Outline(40, 6, 3))
    f = Objective(rows, model, 1 / 40, 0.1)
    x, v = np.random.default_rng(2).standard_normal((2, model.dim))
    sides = [f.value_and_gradient(x + t * v)[1].copy() for t in (1e-6, -1e-6)]
    np.testing.assert_allclose(hessian_at(f, x)(v), (sides[0] - sides[1]) / 2e-6, rtol=1e-5, atol=1e-8)
    hessian = np.stack([hessian_at(f, np.zeros(model.dim))(e) for e in np.eye(model.dim)])
    largest = np.linalg.eigvalsh(rows.matrix[0].T @ rows.matrix[0])[-1]
    assert np.linalg.eigvalsh(hessian)[-1] <= model.smoothness(rows, largest) + 0.1 + 1e-12


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_products_with_kept_probabilities_and_with_those_of_parts_agree(bias, sparse, monkeypatch):
    rows, model = classified(sparse), models["softmax"](bias=bias).within(Outline(40, 6, 3))
    x, v, w = np.random.default_rng(5).standard_normal((3, model.dim))
    product = model.hessian_at(x, rows)
    found = [product(v), product(w), product(v)]
    assert found[0].tobytes() == found[2].tobytes() == model.hessian_product(x, rows, v).tobytes()
    monkeypatch.setattr("mpi_compress.problem.models.softmax._KEPT", 7 * 3)  # 7 rows at once
    for of, whole in ((v, found[0]), (w, found[1])):
        np.testing.assert_allclose(model.hessian_at(x, rows)(of), whole, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_minimum_of_softmax_is_the_one_that_scikit_learn_finds(bias, sparse):
    """Without a bias, for scikit-learn does not regularise it."""
    rows, mu = classified(sparse), 0.05
    f = Objective(rows, models["softmax"](bias=bias).within(Outline(40, 6, 3)), 1 / 40, mu)
    best = minimize(f)
    assert best.reached <= 1e-10
    if bias:
        return
    theirs = LogisticRegression(C=1 / (40 * mu), fit_intercept=False, tol=1e-12, max_iter=10_000).fit(classified().matrix[0], rows.labels)
    other, _ = f.value_and_gradient(theirs.coef_.T.ravel().copy())
    assert best.f <= other + 1e-15
    assert best.f == pytest.approx(other, rel=1e-9)


def test_matrix_factorisation_is_half_the_squared_error_of_products():
    rows, model = rated(), models["matrix-factorisation"](rank=3, bias=True).within(Outline(30, 12, 0))
    x = np.random.default_rng(1).standard_normal(model.dim)
    F, b = model.split(x).values()
    a = rated(sparse=False).matrix[0]
    pairs = [np.flatnonzero(row) for row in a]
    predicted = np.array([F[i] @ F[j] + b[i] + b[j] for i, j in pairs])
    assert model.loss_and_gradient(x, rows, None)[0] == pytest.approx(0.5 * np.mean((predicted - rows.labels) ** 2), rel=1e-14)
    np.testing.assert_allclose(model.scores(x, rows), predicted)
    assert np.any(model.start(np.random.default_rng(0)))


def test_a_rank_is_at_least_1():
    outline = Outline(30, 12, 0)
    assert models["matrix-factorisation"](rank=1).within(outline).dim == 12
    with pytest.raises(ValueError, match="rank = 0"):
        models["matrix-factorisation"](rank=0)


def test_a_rating_of_three_features_is_refused():
    rows = rows_of(np.array([[1.0, 1.0, 1.0, 0.0]]), np.ones(1), True)
    with pytest.raises(UserError, match="a row has 3 nonzero features; a rating has two"):
        models["matrix-factorisation"]().within(Outline(1, 4, 0)).loss_and_gradient(np.zeros(32), rows, None)


def tridiagonal(rows, convexity, dim):
    """The matrices A_i and vectors b_i of the paper, dense."""
    T = 2 * np.eye(dim) - np.eye(dim, k=1) - np.eye(dim, k=-1)
    quarters, sides = rows.matrix[0][:, 0], rows.matrix[0][:, 1]
    least = np.linalg.eigvalsh(quarters.mean() * T)[0]
    return [q * T + (convexity - least) * np.eye(dim) for q in quarters], [s * np.eye(dim)[0] for s in sides]


@pytest.mark.parametrize("heterogeneity", [0.0, 0.5, 2.0])
def test_quadratics_are_the_papers(heterogeneity):
    rows, dim, λ = quadratics(6, heterogeneity), 9, 0.01
    model = models["quadratic"](dim=dim, convexity=λ).within(Outline(6, 3, 0))
    A, b = tridiagonal(rows, λ, dim)
    mean = np.mean(A, axis=0)
    assert np.linalg.eigvalsh(mean)[0] == pytest.approx(λ, abs=1e-12)
    x = np.random.default_rng(5).standard_normal(dim)
    for j in range(6):
        value, gradient = model.loss_and_gradient(x, rows.cut(j, j + 1), None)
        assert value == pytest.approx(0.5 * x @ A[j] @ x - b[j] @ x, rel=1e-10)
        np.testing.assert_allclose(gradient, A[j] @ x - b[j], atol=1e-12)
        assert model.smoothness(rows.cut(j, j + 1), np.nan) == pytest.approx(np.abs(np.linalg.eigvalsh(A[j])).max(), rel=1e-12)
    shards = [rows.cut(0, 1), rows.cut(1, 3), rows.cut(3, 6)]  # f_i has its rows' share of the mean, times 3
    H = [sum(A[:1]) / 2, sum(A[1:3]) / 2, sum(A[3:]) / 2]
    squares = np.mean([h @ h for h in H], axis=0) - np.mean(H, axis=0) @ np.mean(H, axis=0)
    assert model.variation(shards) ** 2 == pytest.approx(np.linalg.eigvalsh(squares)[-1], abs=1e-12)
    assert model.variation(shards[:1] * 3) == pytest.approx(0.0, abs=1e-12)  # workers that are alike
    f = Objective(rows, model, 1 / 6, 0.0)
    best = minimize(f)
    np.testing.assert_allclose(best.x, np.linalg.solve(mean, np.mean(b, axis=0)), rtol=1e-8)
    assert model.smoothness(rows, np.nan) == pytest.approx(np.linalg.eigvalsh(mean)[-1], rel=1e-12)
    assert steepest_change(f, model.start(np.random.default_rng(0))) == pytest.approx(model.smoothness(rows, np.nan), rel=1e-3)


def test_the_noise_of_quadratics_has_the_size_that_was_asked_for():
    model = models["quadratic"](dim=400, noise=3.0).within(Outline(4, 3, 0))
    rows, x = quadratics(), np.zeros(400)
    exact = model.loss_and_gradient(x, rows, None)[1]
    squares = [np.sum((model.loss_and_gradient(x, rows, np.random.default_rng(k))[1] - exact) ** 2) for k in range(200)]
    assert np.mean(squares) == pytest.approx(9.0, rel=0.05)
    assert model.random
    assert not models["quadratic"]().random


def test_the_smoothness_of_softmax_counts_its_bias():
    """Short features: nearly all of the curvature is that of the bias, 1/2 at 0 for two classes."""
    rng = np.random.default_rng(4)
    A, labels = 0.01 * rng.standard_normal((20, 3)), np.repeat([0.0, 1.0], 10)
    rows, model = Rows((A,), labels, 3), models["softmax"](bias=True).within(Outline(20, 3, 2))
    zero = np.zeros(model.dim)
    hessian = np.array([model.hessian_product(zero, rows, e) for e in np.eye(model.dim)])
    largest = np.linalg.eigvalsh(hessian)[-1]
    assert largest > 0.49
    assert largest <= model.smoothness(rows, float(np.linalg.eigvalsh(A.T @ A)[-1])) * (1 + 1e-12)
