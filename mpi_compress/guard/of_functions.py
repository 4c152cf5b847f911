"""Losses, penalties and models against what they state: slopes, curvature, convexity, prox."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from mpi_compress.guard.findings import SEED, Finding, Findings, either, seeded
from mpi_compress.kernels.vectors import norm
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.losses import Loss
from mpi_compress.problem.models import Model, Outline
from mpi_compress.problem.penalties import Penalty
from mpi_compress.problem.rows import Rows

_SLACK = 1e-6  # of bounds, over rounding
_WEIGHT, _DIM = 0.37, 12  # λ of a penalty that is checked, and d
_STEPS = ((1e-5, 1e-4), (1e-2, 5e-2))  # of difference quotients, and what they may differ by: the second is for floats of 32 bits
_SAMPLES, _FEATURES, _CLASSES = 40, 6, 3  # of made-up rows


def _margins(loss: Loss) -> tuple[Vector, Vector]:
    """Labels and margins (N,) that a loss is asked for."""
    rng = seeded()
    m = np.concatenate([3 * rng.standard_normal(300), np.linspace(-4, 4, 801)])
    return rng.standard_normal(m.size) if loss.real_labels else rng.choice([-1.0, 1.0], m.size), m


def slope(loss: Loss) -> Findings:
    """A loss's slopes against difference quotients of its values."""
    f, (y, m) = loss.value_and_slope, _margins(loss)
    yield _between("slope", lambda at: f(y, at)[0], f(y, m)[1], y, m, "values")


def second_derivative(loss: Loss) -> Findings:
    """A loss's second derivatives against difference quotients of its slopes."""
    f, (y, m) = loss.value_and_slope, _margins(loss)
    yield _between("second derivative", lambda at: f(y, at)[1], loss.second_derivative(y, m), y, m, "slopes", 1e-3)


def _between(what: str, f: Callable[[Vector], Vector], given: Vector, y: Vector, m: Vector, of: str, slack: float = 0.0) -> Finding:
    """Whether what is given lies between the difference quotients of f to the left and to the right of each margin."""
    h, here = 1e-6 * (1 + np.abs(m)), f(m)
    low, high = np.sort([(here - f(m - h)) / h, (f(m + h) - here) / h], axis=0)
    rounding = slack + 1e-4 * (1 + np.maximum(-low, high))
    wrong = (given < low - rounding) | (given > high + rounding)
    i = int(np.argmax(wrong))
    found = f"at the label {y[i]:g} and the margin {m[i]:g} it is {given[i]:.6g}; its {of} rise by {(low[i] + high[i]) / 2:.6g}"
    return either(what, not wrong.any(), f"is the difference quotient of the {of} at {m.size} margins", found)


def curvature(loss: Loss) -> Findings:
    """How fast slopes change, and whether they fall."""
    for label in (0.3, -1.2) if loss.real_labels else (1.0, -1.0):
        grid = np.linspace(-8, 8, 1601)
        slopes = loss.value_and_slope(np.full(grid.size, label), grid)[1]
        quotients = np.diff(slopes) / np.diff(grid)
        i = int(np.argmax(np.abs(quotients)))
        found = abs(float(quotients[i]))
        where = f"at the label {label:g} and the margin {grid[i]:.3g}"
        if math.isfinite(loss.curvature):
            text = f"{loss.curvature:g} is stated; slopes change by up to {found:.4g} times the margin, {where}"
            yield Finding("curvature", found <= loss.curvature * (1 + _SLACK) + _SLACK, text)
        if loss.convex:
            least = float(quotients.min())
            falls = least < -1e-5 * (1 + found)
            yield Finding("convex", not falls, "is stated" + f", and the slope falls by {least:.4g}" * falls)


def least(loss: Loss) -> Findings:
    """The least value of a loss of two classes, which does not fall on far from 0."""
    m = np.linspace(-50, 50, 201)
    for label in () if loss.real_labels else (1.0, -1.0):
        values = loss.value_and_slope(np.full(m.size, label), m)[0]
        i = int(np.argmin(values))
        falls = bool(values[i] < min(1.5 * values[90:111].min(), -_SLACK))
        found = f"{values[i]:.4g}, at the label {label:g} and the margin {m[i]:g}"
        yield Finding("least value", not falls, found + ", and it falls on: labels here are −1 and +1, and not 0 and 1" * falls)


def samples(loss: Loss) -> Findings:
    """Whether a loss is a function of each sample."""
    f, (y, m) = loss.value_and_slope, _margins(loss)
    order = seeded().permutation(m.size)
    kept = np.array([y, m])
    whole, again, mixed = (np.array(f(*at)) for at in ((y, m), (y, m), kept[:, order]))
    same = np.array_equal(whole, again) and np.array_equal(whole[:, order], mixed)
    yield either("samples", same, "the same whatever the others are, and when asked again", "depend on the others, or on the call")
    yield either("arguments", np.array_equal(kept, (y, m)), "are left as they are", "labels or margins are written to")


def _weighted(penalty: Penalty) -> tuple[Penalty, list[Vector]]:
    """A penalty with a weight λ that is not 1, and points to ask it at."""
    rng = seeded()
    points = [scale * rng.standard_normal(_DIM) for scale in (0.1, 1.0, 5.0) for _ in range(4)]
    return replace(penalty, weight=_WEIGHT), points


def gradient_of_penalty(penalty: Penalty) -> Findings:
    """A smooth penalty's gradient, and its curvature, the largest and the least."""
    r, points = _weighted(penalty)
    if r.smooth:
        yield from _gradients(lambda x: (r.value(x), r.gradient(x)), points)
        yield from _bounds(r.gradient, points, r.smoothness, r.λ * r.lowest)


def _gradients(f: Any, points: list[Vector]) -> Findings:
    """∇f against difference quotients of f along directions."""
    rng, worst, said = seeded(), 0.0, ""
    for x in points:
        g = f(x)[1]
        for _ in range(6):
            d = rng.standard_normal(x.size)
            d /= norm(d)
            slope = float(g @ d)
            scale, missed = norm(g) / math.sqrt(x.size) + abs(slope) + 1e-4, []
            for step, slack in _STEPS:
                h = step * (1 + norm(x))
                quotient = (f(x + h * d)[0] - f(x - h * d)[0]) / (2 * h)
                missed.append((abs(quotient - slope) / (slack * scale), quotient))
            least, quotient = min(missed)
            if least > max(worst, 1.0):
                worst, said = least, f"along a direction it is {slope:.6g}, and values rise by {quotient:.6g}"
    yield Finding("gradient", not said, said or f"is the difference quotient of the values at {len(points)} points")


def _bounds(gradient: Any, points: list[Vector], L: float, lowest: float) -> Findings:
    """Changes of a gradient, over those of its point, from `lowest` to L."""
    pairs = [(x, z) for i, x in enumerate(points) for z in (*points[:i], x + 1e-3 * points[i - 1])]
    most, least = 0.0, math.inf
    for x, z in pairs:
        change, apart = gradient(x) - gradient(z), x - z
        most = max(most, norm(change) / norm(apart))
        least = min(least, float(change @ apart / (apart @ apart)))
    if math.isfinite(L):
        text = f"{L:.6g} is stated; gradients change by up to {most:.6g} times the distance"
        yield Finding("curvature", most <= L * (1 + _SLACK) + _SLACK, text)
    if math.isfinite(lowest):
        text = f"the least curvature is stated as {lowest:.6g}; {least:.6g} was found"
        yield Finding("convex" if lowest == 0 else "lowest", least >= lowest - 1e-5 * (1 + abs(most)), text)


def prox(penalty: Penalty) -> Findings:
    """prox(x, γ) minimises r(z) + ‖z − x‖²/(2γ): no point beside it, and none on the way to x or to 0, has a smaller value."""
    (r, points), rng = _weighted(penalty), np.random.default_rng(SEED + 1)
    if r.smooth:
        return
    zero = np.zeros(_DIM)

    def h(at: Vector, x: Vector, γ: float) -> float:
        return r.value(at) + float(np.sum((at - x) ** 2)) / (2 * γ)

    for γ, x in product((0.3, 2.0), (*points, zero)):
        z, ways = r.prox(x, γ), (*np.eye(_DIM), *-np.eye(_DIM), *rng.standard_normal((8, _DIM)))
        beside = [z + s * d for s in (1e-1, 1e-2, 1e-3) for d in ways]
        on_the_way = [z + s * (end - z) for end in (x, zero) for s in (0.01, 0.1, 0.5, 1.0)]
        found, least = h(z, x, γ), min(h(at, x, γ) for at in (*beside, *on_the_way))
        if least < found - 1e-9 * (1 + abs(found)):
            text = f"with λ = {r.λ:g} and γ = {γ:g} it gives a point of the value {found:.6g}, and another has {least:.6g}"
            yield Finding("prox", False, text)
            return
    yield Finding("prox", True, f"no other point has a smaller value, with λ = {r.λ:g}")


def made_up_rows(model: Model) -> tuple[Model, Rows]:
    """A model within made-up rows; ValueError if it needs others."""
    rng = seeded()
    a = rng.standard_normal((_SAMPLES, _FEATURES))
    classes = _CLASSES if model.labels == "class" else 0
    y = np.array(np.arange(_SAMPLES) % _CLASSES if classes else rng.standard_normal(_SAMPLES), dtype=np.float64)
    return model.within(Outline(_SAMPLES, _FEATURES, classes)), Rows((a,), y, _FEATURES)


def _points_of(model: Model) -> list[Vector]:
    rng = seeded()
    return [model.start(np.random.default_rng(k)) + 0.3 * rng.standard_normal(model.dim) for k in range(4)]


def _loss(model: Model, rows: Rows, x: Vector) -> tuple[float, Vector]:
    value, gradient = model.loss_and_gradient(x, rows, None)
    return value, np.array(gradient)


def gradient_of_model(model: Model, rows: Rows) -> Findings:
    """A model's gradient."""
    yield from _gradients(partial(_loss, model, rows), _points_of(model))


def smoothness(model: Model, rows: Rows) -> Findings:
    """A model's L and its convexity, where it states them."""
    L = math.nan
    if math.isfinite(model.curvature):
        L = model.smoothness(rows, float(np.linalg.norm(rows.dense(), 2) ** 2))
    if not math.isnan(L) or model.convex:
        yield from _bounds(lambda x: _loss(model, rows, x)[1], _points_of(model), L, 0.0 if model.convex else -math.inf)


def mean_of_rows(model: Model, rows: Rows) -> Findings:
    """Whether a model's loss is the mean over rows, and the same when asked again."""
    x = _points_of(model)[0]
    once, again = _loss(model, rows, x), _loss(model, rows, x)
    twice = _loss(model, rows.take(np.tile(np.arange(len(rows), dtype=np.uint64), 2)), x)
    same = once[0] == again[0] and np.array_equal(once[1], again[1])
    yield either("calls", same, "give the same when asked again", "give something else when asked again")
    close = abs(twice[0] - once[0]) <= 1e-4 * (1e-6 + abs(once[0]))
    text = f"the loss of {len(rows)} rows is {once[0]:.6g}, and of the same samples twice {twice[0]:.6g}"
    yield Finding("mean", close, text + "; it should be the mean of the samples" * (not close))


def hessian_product(model: Model, rows: Rows) -> Findings:
    """A model's products with the Hessian, where it has them, against difference quotients of gradients."""
    if type(model).hessian_product is Model.hessian_product:
        return
    points, f = _points_of(model), partial(_loss, model, rows)
    x, v = points[0], points[1] - points[2]
    h = 1e-5 / norm(v)
    quotient = (f(x + h * v)[1] - f(x - h * v)[1]) / (2 * h)
    apart = norm(model.hessian_product(x, rows, v) - quotient) / (1e-9 + norm(quotient))
    yield Finding("hessian_product", apart < 1e-3, f"differs from the difference quotient of gradients by {apart:.2g} of it")
