"""test_loss and test_accuracy in the trace, and the two jobs that come with these losses."""

from pathlib import Path

import numpy as np
import pytest
from helpers.running import command
from sklearn.datasets import load_svmlight_file

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.problem.metrics.base import HeldOut
from mpi_compress.problem.rows import Rows

JOBS = Path(__file__).parents[2] / "jobs"
TRAIN = "".join(f"{1 + i % 2} {i % 3 + 1}:{i % 7 - 3} {i % 5 + 4}:1\n" for i in range(60))
TEST = "".join(f"{1 + i % 2} {i % 4 + 1}:{i % 5 - 2}\n" for i in range(21))
JOB = """
data = {{ path = "train", test = "test", normalize = "columns" }}
objective = {{ loss = "{loss}", lambda2 = 0.01 }}
workers.count = 4
algorithm = {{ name = "gd", step = 0.1 }}
stop.rounds = 5
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train").write_text(TRAIN)
    (tmp_path / "test").write_text(TEST)
    return tmp_path


@pytest.mark.parametrize("loss", ["logistic", "squared-hinge", "hinge"])
def test_columns_are_those_of_plain_numpy_at_every_round(folder, loss):
    job = folder / "job.toml"
    job.write_text(JOB.format(loss=loss))
    (run,) = mc.run(mc.load_job(job), out=folder / "out")
    train, y = load_svmlight_file(str(folder / "train"), n_features=8)
    test, t = load_svmlight_file(str(folder / "test"), n_features=8)
    norms = np.linalg.norm(train.toarray(), axis=0)
    a, b = (m.toarray() / np.where(norms > 0, norms, 1) for m in (train, test))
    y, t = (np.where(labels == 2, 1.0, -1.0) for labels in (y, t))
    value, slope = {
        "logistic": (lambda z: np.logaddexp(0, -z), lambda z: -1 / (1 + np.exp(z))),
        "squared-hinge": (lambda z: np.maximum(1 - z, 0) ** 2, lambda z: -2 * np.maximum(1 - z, 0)),
        "hinge": (lambda z: np.maximum(1 - z, 0), lambda z: -1.0 * (z < 1)),
    }[loss]
    x = np.zeros(8)
    for k in range(6):
        assert run.trace["loss"][k] == pytest.approx(value(y * (a @ x)).mean() + 0.01 * x @ x, rel=1e-12)
        assert run.trace["test_loss"][k] == pytest.approx(value(t * (b @ x)).mean(), rel=1e-12)
        assert run.trace["test_accuracy"][k] == np.mean(np.where(b @ x > 0, 1, -1) == t)
        x = x - 0.1 * (a.T @ (y * slope(y * (a @ x))) / 60 + 0.02 * x)


def test_a_hinge_run_has_f_star_and_no_smoothness(folder):
    job = folder / "job.toml"
    job.write_text(JOB.format(loss="hinge"))
    (run,) = mc.run(mc.load_job(job), out=folder / "out")
    assert np.isnan(run.attrs["L"])
    assert 0 <= run.attrs["f_star_accuracy"] <= 1e-9
    assert np.all(run.trace["suboptimality"] > 0)


def test_lambda2_is_half_of_mu(folder):
    job = folder / "job.toml"
    runs = []
    for form in ("lambda2 = 0.01", "mu = 0.02"):
        job.write_text(JOB.format(loss="logistic").replace("lambda2 = 0.01", form))
        runs += mc.run(mc.load_job(job), out=folder / "out")
    np.testing.assert_array_equal(runs[0].trace["loss"], runs[1].trace["loss"])


def test_a_run_with_another_test_set_is_another_run(folder):
    job = folder / "job.toml"
    job.write_text(JOB.format(loss="logistic"))
    (first,) = mc.run(mc.load_job(job), out=folder / "out")
    (folder / "test").write_text(TEST + TEST)
    (second,) = mc.run(mc.load_job(job), out=folder / "out")
    assert first.attrs["run_id"] != second.attrs["run_id"]


@pytest.mark.slow
def test_svm_on_a9a_is_the_same_on_three_ranks_test_columns_included(real_data, tmp_path):
    line = ("run", str(JOBS / "svm-a9a.toml"), "--set", "stop.rounds=20", "--quiet", "--out")
    assert main([*line, str(tmp_path / "one")]) == 0
    done = command(*line, tmp_path / "three", ranks=3)
    assert done.returncode == 0, done.stderr
    for file in (tmp_path / "one" / "svm-a9a").glob("*.h5"):
        one, three = mc.read(file), mc.read(tmp_path / "three" / "svm-a9a" / file.name)
        assert {"test_loss", "test_accuracy"} <= set(one.trace)
        for column, values in one.trace.items():
            np.testing.assert_array_equal(values, three.trace[column], err_msg=column)
        assert one.trace["test_accuracy"][0] == pytest.approx(12435 / 16281)  # all said to be −1
        assert one.trace["test_accuracy"][-1] > 0.77


def test_runs_on_least_squares_bring_the_suboptimality_below_a_tenth(tmp_path):
    runs = mc.run(mc.load_job(JOBS / "least-squares.toml", {"stop.rounds": 200}), out=tmp_path)
    assert [r.label for r in runs] == ["GD", "top-10", "CAT"]
    for run in runs:
        assert run.attrs["L"] == pytest.approx(1, rel=1e-12)
        assert run.trace["suboptimality"][-1] < 0.1 * run.trace["suboptimality"][0]


@pytest.mark.parametrize(("labels", "accuracy"), [([1, -1, -1], 1.0), ([1, 1, -1], 2 / 3), ([1, -1, 2], None), ([0.5, 2, 3], None)])
def test_an_accuracy_is_one_of_labels_that_are_all_plus_or_minus_1(labels, accuracy):
    """Margins 2, −1 and 0, which counts as −1."""
    rows = Rows((np.array([[2.0], [-1.0], [0.0]]),), np.array(labels, dtype=float), 1)
    found = HeldOut(rows, mc.losses["least-squares"]()).columns(np.ones(1))
    assert found["test_loss"] == pytest.approx(np.mean((np.array([2, -1, 0]) - labels) ** 2) / 2)
    assert found.get("test_accuracy") == (None if accuracy is None else pytest.approx(accuracy))
