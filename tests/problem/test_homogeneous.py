"""The homogeneous setting: every worker has all rows, and gradients have a normal noise."""

import json

import numpy as np
import pytest
from helpers.plain_literature import stream
from helpers.running import run_of

import mpi_compress as mc
from mpi_compress.core.errors import UserError

MODEL = 4  # who draws
SEED, D = 3, 40


def whole():
    A, labels = mc.generators["gspar"](samples=100, dim=D, seed=2).make()
    return A, np.where(labels > 0, 1.0, -1.0)


def gradient(x, mu):
    A, y = whole()
    return A.T @ (-y / (1 + np.exp(y * (A @ x)))) / 100 + mu * x


def test_where_everyone_has_all_rows_f_i_is_f(tmp_path):
    settings = {"workers": {"count": 7, "partition": "everyone"}, "seed": SEED, "log": {"theory": True}}
    run = run_of(tmp_path / "7", {"name": "gd", "step": "1/L_max"}, rounds=20, **settings)
    alone = run_of(tmp_path / "1", {"name": "gd", "step": "1/L_max"}, count=1, rounds=20, seed=SEED)
    assert np.abs(run.x - alone.x).max() < 1e-14
    assert run.attrs["L_max"] == run.attrs["L"] == alone.attrs["L"]
    assert run.trace["loss"] == pytest.approx(alone.trace["loss"], rel=1e-13)
    assert run.trace["epoch"][-1] == 7 * alone.trace["epoch"][-1]


def test_there_may_be_more_workers_than_samples(tmp_path):
    settings = {"data": {"generator": "gspar", "samples": 4, "dim": D}}
    run = run_of(tmp_path, {"name": "gd"}, rounds=2, workers={"count": 9, "partition": "everyone"}, **settings)
    assert run.status == "complete"
    with pytest.raises(UserError, match="9 workers are more than the 4 samples"):
        run_of(tmp_path, {"name": "gd"}, count=9, rounds=2, **settings)


@pytest.mark.parametrize("batch", [None, 3])
def test_noise_is_drawn_by_worker_and_round_and_no_evaluation_has_it(batch, tmp_path):
    σ = 0.5
    objective = {"mu": "1e-2 L", "noise": σ}
    algorithm = {"name": "sgd", "step": 0.5, **({} if batch is None else {"batch": batch})}
    run, exact = (
        run_of(tmp_path / str(of["noise"]), algorithm, rounds=12, seed=SEED, workers={"count": 4, "partition": "everyone"}, objective=of)
        for of in (objective, {**objective, "noise": 0.0})
    )
    x, mu = np.zeros(D), run.attrs["mu"]
    if batch is None:
        for k in range(12):
            noise = np.mean([stream(SEED, MODEL, i, k).standard_normal(D) for i in range(4)], axis=0)
            x = x - json.loads(run.attrs["settled"])["step"] * (gradient(x, mu) + σ / np.sqrt(D) * noise)
        assert np.abs(run.x - x).max() < 1e-12
    A, y = whole()
    assert run.trace["loss"][-1] == pytest.approx(np.mean(np.log1p(np.exp(-y * (A @ run.x)))) + mu / 2 * run.x @ run.x)
    assert run.trace["loss"][0] == exact.trace["loss"][0]
    assert run.trace["epoch"].tolist() == exact.trace["epoch"].tolist()
    assert not np.array_equal(run.x, exact.x)


def test_a_noise_below_0_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"objective\.noise: -1"):
        run_of(tmp_path, {"name": "gd"}, objective={"noise": -1.0})
