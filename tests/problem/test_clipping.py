"""Gradients of clipped rows against a plain loop over the rows, and the noise on them."""

from dataclasses import dataclass

import numpy as np
import pytest
from fixtures.runs import of
from helpers.objectives import problem
from helpers.refusals import naming
from hypothesis import given
from hypothesis import strategies as st

import mpi_compress as mc
from mpi_compress.core.errors import UserError
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.problem.clipping import RowClipping, refuse_rows_together
from mpi_compress.problem.losses import losses
from mpi_compress.problem.models import Model, Outline, models
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.penalties import penalties
from mpi_compress.problem.points import Point
from mpi_compress.problem.rows import Rows
from mpi_compress.problem.scaled_vector import ScaledVector

SOME = np.array([3, 5, 5, 39, 0], dtype=np.uint64)  # of 40 rows; row 3 is zero


@dataclass(frozen=True)
class Cauchy(mc.Loss):
    """A loss of a user's, without a kernel."""

    name = "cauchy"
    curvature = 1.0
    real_labels = True

    def value_and_slope(self, y, m):
        r = m - y
        return np.log1p(r * r / 2), r / (1 + r * r / 2)


def clipped(f: Objective, norm: float, noise: float = 0.0, penalty=None) -> Objective:
    return Objective(f.rows, f.loss, f.weight, f.mu, penalty, RowClipping(norm, noise))


def objective(loss, sparse, mu, dtype=np.float64) -> tuple[Objective, np.ndarray]:
    if loss != "cauchy":
        return problem(loss, sparse, dtype, mu)
    f, a = problem("least-squares", sparse, dtype, mu)
    return Objective(f.rows, Cauchy(), f.weight, f.mu), a


def plain(gradients, longest) -> np.ndarray:
    """The mean of gradients, each shortened where it is too long: row by row, as Algorithm 1 has it."""
    total = 0.0
    for g in gradients:
        total = total + g / max(1.0, np.linalg.norm(g) / longest)
    return total / len(gradients)


@pytest.mark.parametrize("loss", [*losses, "cauchy"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_gradient_is_the_mean_of_clipped_gradients_of_rows(loss, sparse, dtype):
    for mu in (0.0, 0.3):
        f, a = objective(loss, sparse, mu, dtype)
        x = np.random.default_rng(1).standard_normal(7)
        slopes = f.loss.value_and_slope(f.rows.labels, a @ x)[1]
        lengths = np.abs(slopes) * np.linalg.norm(a, axis=1)
        for τ in (float(np.median(lengths)), float(lengths.max()) / 50):
            g = clipped(f, τ)
            for rows in (None, SOME):
                chosen = range(40) if rows is None else rows.astype(int)
                wanted = plain([slopes[j] * a[j] for j in chosen], τ) + mu * x
                np.testing.assert_allclose(g.gradient(x, rows), wanted, rtol=1e-12, atol=1e-14 * np.abs(wanted).max())
            np.testing.assert_allclose(g.gradient(ScaledVector(4.0 * x, 0.25), SOME), wanted, rtol=1e-12, atol=1e-14)
            if g.gradients_are_sparse:
                np.testing.assert_allclose(g.sparse_gradient(x, SOME).dense(), wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("loss", [*losses, "cauchy"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("norm", [np.inf, 1e300])
def test_a_norm_that_no_row_reaches_changes_no_bit(loss, sparse, norm):
    for mu, x in ((0.0, np.zeros(7)), (0.3, np.random.default_rng(2).standard_normal(7))):
        f, _ = objective(loss, sparse, mu)
        g = clipped(f, norm)
        for rows in (None, SOME):
            assert g.gradient(x, rows).tobytes() == f.gradient(x, rows).tobytes()
        if f.gradients_are_sparse:
            assert g.sparse_gradient(x, SOME).dense().tobytes() == f.sparse_gradient(x, SOME).dense().tobytes()


def test_a_shard_whose_rows_have_one_value_each_is_clipped_by_their_whole_norms():
    """`Rows.compact` keeps one value a row of such a shard, of which no norm is to be taken."""
    a = np.array([[2.0, 2, 2, 2, 0], [0, 1, 1, 0, 1], [3, 0, 3, 3, 3]])
    indptr, indices = np.array([0, 4, 7, 11], dtype=np.uint64), np.nonzero(a)[1].astype(np.uint32)
    rows = Rows((indptr, indices, a[a != 0]), np.array([1.0, -1, 1]), 5)
    assert rows.compact()[2].size == 3
    f = Objective(rows, losses["least-squares"](), 1 / 3, 0.0)
    x = np.linspace(-1, 1, 5)
    wanted = plain([(a[j] @ x - rows.labels[j]) * a[j] for j in range(3)], 0.5)
    np.testing.assert_allclose(clipped(f, 0.5).gradient(x), wanted, rtol=1e-12)


def bound(name: str, rows: Rows, classes: int = 0, **parameters) -> Model:
    return models[name](**parameters).within(Outline(len(rows), rows.dim, classes))


def of_models() -> dict[str, tuple[Model, Rows]]:
    rng = np.random.default_rng(3)
    a, labels = rng.standard_normal((40, 6)), (np.arange(40) % 3).astype(float)
    classes = Rows((a,), labels, 6)
    starts, columns = np.arange(0, 81, 2).astype(np.uint64), np.stack([np.arange(40) % 5, 5 + np.arange(40) % 7], axis=1)
    ratings = Rows((starts, columns.ravel().astype(np.uint32), rng.random(80) + 0.5), rng.integers(1, 6, 40).astype(float), 12)
    quadratics = Rows((rng.random((40, 3)),), np.zeros(40), 3)
    return {
        "softmax": (bound("softmax", classes, 3), classes),
        "softmax, bias": (bound("softmax", classes, 3, bias=True), classes),
        "matrix-factorisation": (bound("matrix-factorisation", ratings, rank=3), ratings),
        "matrix-factorisation, bias": (bound("matrix-factorisation", ratings, rank=2, bias=True), ratings),
        "quadratic": (bound("quadratic", quadratics, dim=5, convexity=0.1), quadratics),
    }


@pytest.mark.parametrize("case", of_models())
def test_rows_of_models_are_clipped_whole(case):
    model, rows = of_models()[case]
    x = np.random.default_rng(0).standard_normal(model.dim)
    f = Objective(rows, model, 1 / 40, 0.1)
    each = [model.loss_and_gradient(x, rows.cut(j, j + 1), None)[1] for j in range(40)]
    τ = float(np.median(np.linalg.norm(each, axis=1)))
    for chosen in (None, SOME):
        wanted = plain(each if chosen is None else [each[j] for j in chosen.astype(int)], τ) + 0.1 * x
        np.testing.assert_allclose(clipped(f, τ).gradient(x, chosen), wanted, rtol=1e-12, atol=1e-14)
        if not case.startswith("quadratic"):  # row by row, whose sum is not that of all rows at once
            assert clipped(f, np.inf).gradient(x, chosen).tobytes() == f.gradient(x, chosen).tobytes()


FLOATS = st.floats(-1e100, 1e100, allow_subnormal=False)


@given(
    st.sampled_from([*losses, "softmax"]), st.lists(FLOATS, min_size=1, max_size=9), st.floats(1e-100, 1e100),
    st.integers(0, 2**32 - 1), st.booleans(),
)  # fmt: skip
def test_no_row_contributes_more_than_the_norm(name, a, τ, seed, sparse):
    d = len(a)
    dense = (np.array([a]),)
    matrix = (np.array([0, d], dtype=np.uint64), np.arange(d, dtype=np.uint32), np.array(a)) if sparse else dense
    rows = Rows(matrix, np.array([1.0]), d)
    loss = bound("softmax", rows, 3, bias=True) if name == "softmax" else losses[name]()
    f = Objective(rows, loss, 1.0, 0.0)
    x = np.random.default_rng(seed).standard_normal(f.dim)
    for chosen in (None, np.zeros(1, dtype=np.uint64)):
        g = clipped(f, τ).gradient(x, chosen)
        if np.isfinite(f.gradient(x, chosen)).all():
            assert np.sqrt(np.sum(np.square(g / τ))) <= 1 + 1e-12


def test_mu_and_a_penalty_are_added_as_they_are():
    f, a = problem("logistic", True, mu=3.0)
    x, r = np.random.default_rng(1).standard_normal(7), penalties["ratio"](weight=5.0).settled({})
    slopes = f.loss.value_and_slope(f.rows.labels, a @ x)[1]
    for rows, chosen in ((None, range(40)), (SOME, SOME.astype(int))):
        wanted = plain([slopes[j] * a[j] for j in chosen], 0.01) + 3.0 * x + r.gradient(x)
        np.testing.assert_allclose(clipped(f, 0.01, penalty=r).gradient(x, rows), wanted, rtol=1e-12)


def test_values_and_evaluations_are_those_of_the_function_itself():
    f, _ = problem("logistic", False)
    g, x = clipped(f, 0.01, 1.0), np.ones(7)
    g.round = round_of(0, 0)
    value, gradient = f.value_and_gradient(x)
    for ask in (lambda: g.value_and_gradient(x), lambda: g.gradient(x) is None or g.at(Point.at(x)), lambda: g.value_and_gradient(x)):
        found, at = ask()
        assert found == value
        assert at.tobytes() == gradient.tobytes()
    assert g.gradient(x).tobytes() != gradient.tobytes()  # what the evaluation keeps is not given to the method


STREAMS = Streams(4)


def round_of(who: int, k: int) -> Round:
    return Round(k, STREAMS, Role.WORKER, who)


def noise(f: Objective, x, who, k, rows=None) -> np.ndarray:
    """The noise on the first gradient of a round."""
    exact, noisy = clipped(f, 0.25), clipped(f, 0.25, 2.0)
    noisy.round = round_of(who, k)
    return noisy.gradient(x, rows) - exact.gradient(x, rows)


@pytest.mark.parametrize("rows", [None, SOME], ids=["shard", "minibatch"])
def test_noise_is_normal_of_the_stated_size_and_of_each_worker_and_round(rows):
    d, weight = 2000, 1 / 25  # a shard of 40 rows of 50 for 2 workers
    f = Objective(Rows((np.zeros((40, d)),), np.ones(40), d), losses["logistic"](), weight, 0.0)
    found = np.array([noise(f, np.zeros(d), who, k, rows) for who in range(4) for k in range(5)])
    size = (40 * weight) * 2.0 * 0.25 / (40 if rows is None else rows.size)
    assert found.std() == pytest.approx(size, rel=0.02)  # 5 standard deviations of that of 40,000 numbers
    assert abs(found.mean()) < 5 * size / np.sqrt(found.size)
    assert abs(np.corrcoef(found) - np.eye(20)).max() < 6 / np.sqrt(d)
    assert np.mean(np.abs(found) < size) == pytest.approx(0.6827, abs=0.015)


def test_each_gradient_of_a_round_has_noise_of_its_own_and_a_round_that_is_played_again_the_same():
    f, _ = problem("logistic", False)
    x, g = np.ones(7), clipped(f, 0.25, 2.0)

    def asked() -> list[np.ndarray]:
        g.round = round_of(3, 5)
        return [g.gradient(x).copy(), g.gradient(x, SOME).copy(), g.gradient(x).copy()]

    first, again = asked(), asked()
    assert [a.tobytes() for a in first] == [a.tobytes() for a in again]
    assert abs(first[0] - first[2]).min() > 0  # it cancels nowhere where a method subtracts two gradients
    numbers = STREAMS.at(Role.NOISE, 3, 5).standard_normal(21).reshape(3, 7)
    for found, rows, drawn in zip(first, (None, SOME, None), numbers, strict=True):
        exact = clipped(f, 0.25).gradient(x, rows)
        np.testing.assert_allclose(found, exact + 2.0 * 0.25 / (40 if rows is None else 5) * drawn, rtol=1e-12)


def test_noise_needs_a_round_and_fills_sparse_gradients():
    f, _ = problem("logistic", True, mu=0.0)
    assert f.gradients_are_sparse
    assert clipped(f, 1.0).gradients_are_sparse
    assert not clipped(f, 1.0, 0.5).gradients_are_sparse
    with pytest.raises(UserError, match="before the first one"):
        clipped(f, 1.0, 0.5).gradient(np.zeros(7))


@pytest.mark.parametrize("model", [models["lstm"], models["quadratic"](noise=0.1)], ids=["a network", "a model that draws"])
def test_a_model_that_takes_rows_together_is_refused_in_one_sentence(model):
    with pytest.raises(ValueError, match="draws, or takes samples together, so no sample has a gradient of its own to clip"):
        refuse_rows_together(model() if isinstance(model, type) else model)


def job(clip_rows=None, method="gd", mu=0.01, **more):
    objective = {"mu": mu, **({} if clip_rows is None else {"clip_rows": clip_rows})}
    run = of(method, more.pop("up", None), **more.pop("algorithm", {}))
    return {"data": {"generator": "gspar", "samples": 40, "dim": 12}, "workers": {"count": 3}, "stop": {"rounds": 6}} | {
        "objective": objective, **run, **more,
    }  # fmt: skip


REFUSED = {
    "no norm": ({"noise": 1.0}, {}, "objective.clip_rows.norm: is missing"),
    "norm": ({"norm": 0.0}, {}, "objective.clip_rows.norm: 0.0 0"),
    "noise": ({"norm": 1.0, "noise": -1.0}, {}, "objective.clip_rows.noise: -1.0 0"),
    "noise without a size": ({"norm": np.inf, "noise": 1.0}, {}, "objective.clip_rows: norm = inf leaves the noise"),
    "a key": ({"norm": 1.0, "nois": 1.0}, {}, "nois 'noise'"),
    "a number": (1.0, {}, "objective.clip_rows: "),
    "theory": ({"norm": 1.0}, {"method": "cat", "log": {"theory": True}}, "log.theory: CAT's improvements"),
    **{
        name: ({"norm": 1.0}, {"method": name, **more}, f"{name} uses more of the samples than their gradients, and clip_rows")
        for name, more in {
            "fednl": {},
            "bfgs": {},
            "ship-data": {},
            "ef-gdstar": {"up": {"name": "top-k", "k": 2}},
        }.items()
    },
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_clipped_is_refused_in_one_line(case, tmp_path):
    clip_rows, more, says = REFUSED[case]
    with pytest.raises(UserError, match=naming(says)):
        mc.run(job(clip_rows, **more), out=tmp_path, quiet=True)


@pytest.mark.parametrize(("method", "algorithm"), [("gd", {}), ("sgd", {"batch": 3, "regularizer": "master"}), ("page", {})])
def test_a_run_whose_norm_no_row_reaches_is_the_run_without_clipping(method, algorithm, tmp_path):
    one, other = (
        mc.run(job(clip_rows, method, algorithm=algorithm), out=tmp_path / str(i), quiet=True)[0]
        for i, clip_rows in enumerate((None, {"norm": np.inf}))
    )
    assert one.attrs["run_id"] != other.attrs["run_id"]
    assert one.x.tobytes() == other.x.tobytes()
    for column in ("loss", "grad_norm", "wire_bits_up", "epoch"):
        assert np.array_equal(one.trace[column], other.trace[column])


def test_f_star_and_l_stay_and_the_theorem_is_said_to_be_of_another_gradient(tmp_path):
    one, other = (mc.run(job(c), out=tmp_path / str(i), quiet=True)[0] for i, c in enumerate((None, {"norm": 0.05, "noise": 0.1})))
    for name in ("L", "f_star", "mu"):
        assert one.attrs[name] == other.attrs[name]
    assert one.trace["loss"][0] == other.trace["loss"][0]
    assert one.trace["grad_norm"][0] == other.trace["grad_norm"][0]
    assert one.x.tobytes() != other.x.tobytes()
    assert "condition" not in one.attrs
    assert other.attrs["condition"] == "its step follows gd's theorem, which is about gradients whose samples are not clipped"
