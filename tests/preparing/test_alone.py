"""mc.problem: the functions, rows and constants of a job are those that its runs play."""

import numpy as np
import pytest
import scipy.optimize

import mpi_compress as mc

JOB = {
    "name": "alone", "data": {"generator": "gspar", "samples": 60, "dim": 8}, "objective": {"mu": 0.05}, "workers": {"count": 3},
    "algorithm": {"name": "gd", "step": "1/L"}, "stop": {"rounds": 4}, "start": {"at": "random"},
}  # fmt: skip


@pytest.fixture(scope="module")
def problem():
    return mc.problem(JOB)


def test_the_minimiser_is_scipys(problem):
    found = scipy.optimize.minimize(problem.value, problem.x0, jac=problem.gradient, method="BFGS", options={"gtol": 1e-9})
    assert problem.f_star == pytest.approx(found.fun, abs=1e-12)
    np.testing.assert_allclose(problem.x_star, found.x, atol=1e-6)
    assert scipy.optimize.check_grad(problem.value, problem.gradient, problem.x0) < 1e-6


def test_descent_by_hand_is_the_run_of_the_job(problem, tmp_path):
    (run,) = mc.run(JOB, out=tmp_path)
    x, values = problem.x0.copy(), []
    for _ in range(5):
        values.append(problem.value(x))
        x -= problem.gradient(x) / problem.L
    np.testing.assert_allclose(run.trace["loss"], values, rtol=1e-13)


def test_each_workers_smoothness_bounds_its_curvature_and_that_of_f_is_no_larger_than_their_mean(problem):
    rows = problem.rows
    assert len(rows) == 60
    assert len(problem.L_i) == len(problem.f_i) == 3
    for f, L in zip(problem.f_i, problem.L_i, strict=True):
        A = np.array([f.rows.margins(e) for e in np.eye(8)]).T
        largest = np.linalg.eigvalsh(A.T @ A)[-1] / (4 * len(f.rows)) + problem.mu  # the logistic curvature is at most 1/4
        assert pytest.approx(largest, rel=1e-9) == L
    assert np.mean(problem.L_i) * (1 + 1e-12) >= problem.L
    assert problem.held_out is None


def test_the_problem_of_a_result_is_that_of_its_job(problem, tmp_path):
    (run,) = mc.run(JOB, out=tmp_path)
    np.testing.assert_array_equal(mc.problem(run).x_star, problem.x_star)
