"""Losses and penalties with one defect each: the check of that name finds it, wherever it is, and the others hold."""

from dataclasses import dataclass

import numpy as np
import pytest

import mpi_compress as mc
from mpi_compress.guard.testing import findings

pytestmark = pytest.mark.usefixtures("registered_for_one_test_only")


@dataclass(frozen=True)
class LeastSquares(mc.Loss):
    """(y − m)²/2, or with one defect."""

    formula = "(y - m)^2/2"
    curvature = 1.0
    real_labels = True
    defect: str = ""

    def value_and_slope(self, y, m):
        value, slope = (y - m) ** 2 / 2, m - y
        match self.defect:
            case "slope":  # far out alone
                slope = np.where(m > 3.9, 1.5 * slope, slope)
            case "curvature":  # twice what is stated, beyond 2
                far = np.maximum(np.abs(m) - 2, 0)
                value, slope = value + far**2 / 2, slope + np.sign(m) * far
            case "convex":  # a slope that falls between 1 and 3
                value, slope = value + 0.6 * np.cos(2 * m), slope - 1.2 * np.sin(2 * m)
            case "samples":
                value = value + np.mean(m)
        return value, slope

    def second_derivative(self, y, m):
        match self.defect:
            case "second derivative":
                return np.where(m > 3.9, 1.1, 1.0)
            case "curvature":
                return 1.0 + (np.abs(m) > 2)
        return np.ones_like(m)


DEFECTS = ("", "slope", "curvature", "convex", "samples", "second derivative")


@pytest.mark.parametrize("defect", DEFECTS)
def test_each_defect_of_a_loss_is_found_by_its_name(defect):
    mc.losses.register("with-a-defect")(LeastSquares)
    found = {each.what: each.holds for each in findings(LeastSquares(defect))}
    assert {"slope", "curvature", "convex", "second derivative", "samples", "arguments"} <= set(found)
    failing = {name for name, holds in found.items() if not holds}
    also = {"slope": {"curvature", "second derivative", "convex"}, "convex": {"curvature", "second derivative"}, "samples": {"slope"}}
    assert (defect in failing) == bool(defect)
    assert failing - {defect} <= also.get(defect, set())


@dataclass(frozen=True)
class Logistic(mc.Loss):
    """log(1 + exp(m)) − t m of labels t = 0 and 1, or of ±1 as they are here; `lower` lies below 0."""

    formula = "log(1 + exp(m)) - t m"
    curvature = 0.25
    labels_0_1: bool = False
    lower: float = 0.0

    def value_and_slope(self, y, m):
        t = y if self.labels_0_1 else (y + 1) / 2
        return np.logaddexp(0, m) - t * m - self.lower, 1 / (1 + np.exp(-m)) - t


@pytest.mark.parametrize(("loss", "holds", "said"), [
    (Logistic(), True, "1.929e-22, at the label"),
    (Logistic(lower=0.5), True, "-0.5, at the label -1 and the margin -"),
    (Logistic(labels_0_1=True), False, "-50, at the label -1 and the margin -50, and it falls on: labels here are −1 and +1, and not 0 and 1"),
])  # fmt: skip
def test_a_loss_of_labels_0_and_1_is_found_by_its_values(loss, holds, said):
    mc.losses.register("labels-0-1")(Logistic)
    (found,) = (each for each in findings(loss) if each.what == "least value")
    assert found.holds == holds
    assert said in found.text
    assert {each.what for each in findings(loss) if not each.holds} == (set() if holds else {"least value"})


@dataclass(frozen=True)
class Ridge(mc.Penalty):
    """λ‖x‖²/2, or with one defect."""

    smooth = True
    curvature = 1.0
    lowest = 1.0
    defect: str = ""

    def value(self, x):
        return float(self.λ / 2 * (x @ x)) + (0.1 * self.λ * abs(x[0]) ** 3 if self.defect == "curvature" else 0.0)

    def gradient(self, x):
        g = self.λ * x
        if self.defect == "gradient":
            g[-1] *= 1.2
        if self.defect == "curvature":
            g[0] += 0.3 * self.λ * x[0] * abs(x[0])
        return g


@dataclass(frozen=True)
class Lasso(mc.Penalty):
    """λ‖x‖₁; its prox may shrink by too little."""

    share: float = 1.0

    def value(self, x):
        return float(self.λ * np.abs(x).sum())

    def prox(self, x, γ):
        return np.sign(x) * np.maximum(np.abs(x) - self.share * γ * self.λ, 0.0)


@pytest.mark.parametrize("defect", ["", "gradient", "curvature"])
def test_each_defect_of_a_smooth_penalty_is_found_by_its_name(defect):
    mc.penalties.register("own-ridge")(Ridge)
    found = {each.what: each.holds for each in findings(Ridge(defect=defect))}
    assert {"gradient", "curvature", "lowest"} <= set(found)
    failing = {name for name, holds in found.items() if not holds}
    assert (defect in failing) == bool(defect)
    assert failing <= {"", "gradient", "curvature"} if defect else not failing


@pytest.mark.parametrize(("share", "holds"), [(1.0, True), (0.9, False), (1.1, False), (0.0, False)])
def test_a_prox_that_shrinks_by_too_little_or_too_much_is_found(share, holds):
    mc.penalties.register("own-lasso")(Lasso)
    assert {each.what for each in findings(Lasso(share=share)) if not each.holds} == (set() if holds else {"prox"})
