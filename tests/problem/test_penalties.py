"""Penalties: gradients against differences, proxes against their definition, constants against eigenvalues."""

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

from mpi_compress.core.errors import UserError
from mpi_compress.core.returned import check_returned
from mpi_compress.problem.penalties import Penalty, penalties

VECTORS = st.lists(st.floats(-100, 100), min_size=1, max_size=25).map(np.array)
ALL = pytest.mark.parametrize("name", sorted(penalties))
SMOOTH = pytest.mark.parametrize("name", [name for name in sorted(penalties) if penalties[name]().smooth])
PROXIMAL = pytest.mark.parametrize("name", [name for name in sorted(penalties) if not penalties[name]().smooth])


def of(name, weight=0.3, **parameters) -> Penalty:
    return penalties.build({"name": name, "weight": weight, **parameters}, "penalty")


FORMULAS = {
    "l2": lambda x: 0.15 * np.sum(x**2),
    "ratio": lambda x: 0.3 * np.sum(x**2 / (1 + x**2)),
    "l1": lambda x: 0.3 * np.sum(np.abs(x)),
    "group": lambda x: 0.3 * sum(np.sqrt(g.size) * np.linalg.norm(g) for g in np.split(x, range(10, x.size, 10))),
    "weight-decay": lambda x: 0.15 * np.sum(x**2),
}


@ALL
@given(x=VECTORS)
def test_value_is_the_formula(name, x):
    assert of(name).value(x) == pytest.approx(FORMULAS[name](x), rel=1e-12, abs=1e-15)


@SMOOTH
@given(x=VECTORS)
def test_gradient_is_the_derivative(name, x):
    for j, slope in enumerate(of(name).gradient(x)):
        h = 1e-5 * np.eye(x.size)[j]
        assert slope == pytest.approx((FORMULAS[name](x + h) - FORMULAS[name](x - h)) / 2e-5, rel=1e-4, abs=1e-6)


@SMOOTH
def test_smoothness_bounds_the_change_of_gradients_and_is_reached(name):
    penalty = of(name)
    t = np.linspace(-3, 3, 200_001)
    change = np.abs(np.diff(penalty.gradient(t))) / np.diff(t)
    assert change.max() <= penalty.smoothness * (1 + 1e-9)
    assert change.max() >= penalty.smoothness * (1 - 1e-6)


def test_the_ratio_stays_finite_far_out():
    x = np.array([1e200, -1e300, 0.0, 1e-300])
    with np.errstate(all="raise", under="ignore"):
        assert of("ratio").value(x) == pytest.approx(0.6)
        assert np.isfinite(of("ratio").gradient(x)).all()


@PROXIMAL
@given(x=VECTORS, γ=st.floats(1e-3, 10))
def test_no_point_is_better_than_the_prox(name, x, γ):
    z = of(name).prox(x, γ)

    def objective(z):
        return FORMULAS[name](z) + np.sum((z - x) ** 2) / (2 * γ)

    rng = np.random.default_rng(0)
    for scale in (1e-6, 1e-3, 1.0):
        for step in scale * rng.standard_normal((20, x.size)):
            assert objective(z) <= objective(z + step) + 1e-12 * max(1.0, objective(z))
    assert objective(z) <= min(objective(x), objective(np.zeros_like(x))) + 1e-9


@PROXIMAL
def test_the_prox_is_what_another_solver_finds(name):
    x = np.random.default_rng(1).standard_normal(13)
    found = scipy.optimize.minimize(
        lambda z: FORMULAS[name](z) + np.sum((z - x) ** 2),
        x,
        method="Powell",
        options={"xtol": 1e-10, "ftol": 1e-14, "maxiter": 99_999},
    )
    np.testing.assert_allclose(of(name).prox(x, 0.5), found.x, atol=1e-4)


@pytest.mark.parametrize("weight", [-1.0, "mu - 1", "0/mu"])
def test_a_weight_that_is_negative_or_has_no_value_is_refused(weight):
    with pytest.raises(ValueError, match=r"weight = -1 must be 0 or more|divides by zero"):
        of("ratio", weight).evaluated({"mu": 0.0})


class Mine(Penalty):
    name = "mine"

    def __init__(self, given):
        object.__setattr__(self, "given", given)

    def value(self, x):
        return self.given

    def gradient(self, x):
        return self.given


Mine.__module__, Mine.name = "somebody", "mine"
check_returned(Mine)


@pytest.mark.parametrize(("given", "complaint"), [
    (np.ones(3), r"mine, gradient: coordinates have shape \(3,\); it should be \(2,\)"),
    (np.array([np.nan, 1.0]), r"mine, gradient: the coordinate is NaN at 0, where 0 was given"),
    ("much", r"mine, gradient: .* \(\)"),
])  # fmt: skip
def test_what_is_wrong_in_a_penalty_is_an_error_that_names_it(given, complaint):
    with pytest.raises(UserError, match=f"^{complaint}"):
        Mine(given).gradient(np.zeros(2))
    with pytest.raises(UserError, match=r"^mine, value: .* NaN"):
        Mine(np.nan).value(np.zeros(2))


def test_weight_decay_is_on_the_blocks_that_are_named():
    layers = {"conv1": (2, 3), "scale1": (2,), "W": (3,), "shift1": (1,)}
    x = np.arange(12.0)
    decay = of("weight-decay", but=["scale*", "shift?"]).within_model(layers)
    kept = np.repeat([1.0, 0.0, 1.0, 0.0], [6, 2, 3, 1])
    assert decay.value(x) == pytest.approx(0.15 * np.sum((kept * x) ** 2))
    np.testing.assert_allclose(decay.gradient(x), 0.3 * kept * x)
    only = of("weight-decay", blocks=["W"]).within_model(layers)
    assert np.flatnonzero(only.gradient(x)).tolist() == [8, 9, 10]
    with pytest.raises(ValueError, match="no block of the model is called 'bias'; its blocks are conv1, scale1, W, shift1"):
        of("weight-decay", but=["bias"]).within_model(layers)
    with pytest.raises(ValueError, match="a loss of a margin; write l2"):
        of("weight-decay").within_model({})
