"""Networks: gradients against finite differences, losses against plain NumPy, the papers' numbers of parameters, one compilation."""

import importlib
import os

import numpy as np
import pytest
from helpers.networks import CASES, QUICK, needs_jax, tiny

from mpi_compress.core.errors import UserError
from mpi_compress.problem.models import Outline, models
from mpi_compress.problem.models.deep import framework
from mpi_compress.problem.models.deep.network import Network, compiled

EACH = pytest.mark.parametrize("name", CASES)
KEY = np.array([3, 4], dtype=np.uint32)  # of dropout


def point(model):
    rng = np.random.default_rng(0)
    return model.start(rng) + 0.2 * rng.standard_normal(model.dim)


def in_double(model, x, rows, training=1.0):
    """The sum of losses and its gradient, computed in float64."""
    import jax

    a, y = model.inputs(rows), rows.labels.astype(np.int32 if model.labels == "class" else np.float64)
    with jax.enable_x64(True):
        function = compiled(model, model.outline).loss_and_gradient
        value, gradient = function(x, a, y, np.ones(len(rows), dtype=np.float32), KEY, np.float32(training))
        assert gradient.dtype == np.float64
        return float(value), np.asarray(gradient)


def test_every_network_is_tried_here():
    assert {name for name, cls in models.items() if issubclass(cls, Network)} == {*CASES, "resnet-18"}


@pytest.mark.parametrize(("name", "parameters", "outline", "dim"), [
    ("resnet-18", {}, Outline(9, 3072, 10), 11_173_962),
    ("lstm", {"hidden": 650}, Outline(9, 31, 0, {"vocabulary": 28869}), 28_949_319),
    ("ncf", {}, Outline(9, 165_237, 0, {"users": 138_493, "items": 26_744}), 31_832_577),
])  # fmt: skip
def test_the_networks_of_the_hard_threshold_paper_have_its_numbers_of_parameters(name, parameters, outline, dim):
    """Table 2."""
    assert models[name](**parameters).within(outline).dim == dim


@needs_jax
@EACH
def test_the_flat_gradient_is_the_derivative_with_dropout_on(name):
    model, rows = tiny(name, 8)
    assert 50 < model.dim < 500
    x = point(model)
    gradient = in_double(model, x, rows)[1]
    assert np.count_nonzero(gradient) > model.dim / 2
    for j in range(0, model.dim, 3):
        h = np.where(np.arange(model.dim) == j, 1e-6, 0.0)
        difference = (in_double(model, x + h, rows)[0] - in_double(model, x - h, rows)[0]) / 2e-6
        assert gradient[j] == pytest.approx(difference, rel=1e-5, abs=1e-7), j


@needs_jax
@EACH
def test_what_is_computed_in_float32_is_close_and_compiled_once_for_any_number_of_rows(name):
    model, rows = tiny(name, 8)
    x, function = point(model), compiled(model, model.outline).loss_and_gradient
    before = function._cache_size()
    value, gradient = model.loss_and_gradient(x, rows, None)
    assert gradient.shape == (model.dim,)
    exact = in_double(model, x, rows, training=0.0)
    assert value == pytest.approx(exact[0] / 8, rel=1e-5)
    np.testing.assert_allclose(gradient, exact[1] / 8, atol=1e-5)
    few = [model.loss_and_gradient(x, rows.cut(0, n), None)[0] for n in (5, 1, 8)]
    more = [model.loss_and_gradient(x, tiny(name, 19)[1], np.random.default_rng(seed))[0] for seed in (1, 1, 2)]
    assert np.isfinite(few).all()
    assert few[2] == value
    assert function._cache_size() - before <= 2  # float64 above, and float32
    assert more[0] == more[1]
    assert (more[1] != more[2]) == model.random


def relu(h):
    return np.maximum(h, 0)


def sigmoid(h):
    return 1 / (1 + np.exp(-h))


def convolved(h, w, stride=1):
    """By loops over the window, padded as XLA pads: the smaller half before."""
    n, height, width, _ = h.shape
    k = w.shape[0]
    out_height, out_width = -(-height // stride), -(-width // stride)
    over = [max(0, (out - 1) * stride + k - size) for out, size in ((out_height, height), (out_width, width))]
    padded = np.pad(h, [(0, 0), *((o // 2, o - o // 2) for o in over), (0, 0)])
    out = np.zeros((n, out_height, out_width, w.shape[3]))
    for i in range(k):
        for j in range(k):
            window = padded[:, i : i + stride * (out_height - 1) + 1 : stride, j : j + stride * (out_width - 1) + 1 : stride]
            out += window @ w[i, j]
    return out


def normal(h, scale, shift):
    return (h - h.mean((0, 1, 2))) / np.sqrt(h.var((0, 1, 2)) + 1e-5) * scale + shift


def crossed(scores, y):
    scores = scores - scores.max(-1, keepdims=True)
    logs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    return -np.take_along_axis(logs, y.astype(int)[..., None], -1)[..., 0]


def plain_cnn(p, a, y):
    h = a.reshape(-1, 6, 5, 1)
    for i in (1, 2, 3):
        h = relu(normal(convolved(h, p[f"conv{i}"]), p[f"scale{i}"], p[f"shift{i}"]))
        if i < 3:
            h = np.stack([h[:, i : h.shape[1] // 2 * 2 : 2, j : h.shape[2] // 2 * 2 : 2] for i in (0, 1) for j in (0, 1)]).max(0)
    return crossed(relu(h.reshape(len(a), -1) @ p["W"] + p["b"]) @ p["V"] + p["c"], y)


def plain_resnet(p, a, y):
    def layer(name, h, stride=1):
        return normal(convolved(h, p[f"{name}.w"], stride), p[f"{name}.scale"], p[f"{name}.shift"])

    h = relu(layer("first", a.reshape(-1, 6, 5, 1)))
    h = relu(h + layer("1.1.b", relu(layer("1.1.a", h))))
    h = relu(layer("2.1.shortcut", h, 2) + layer("2.1.b", relu(layer("2.1.a", h, 2))))
    return crossed(h.mean((1, 2)) @ p["W"] + p["c"], y)


def plain_lstm(p, a, y):
    ids = a.astype(int)
    below = [p["words"][ids[:, t]] for t in range(4)]
    for layer in (1, 2):
        h, c, above = np.zeros((len(a), 3)), np.zeros((len(a), 3)), []
        for now in below:
            gates = now @ p[f"input{layer}"] + h @ p[f"state{layer}"] + p[f"bias{layer}"][0] + p[f"bias{layer}"][1]
            i, f, g, o = gates[:, :3], gates[:, 3:6], gates[:, 6:9], gates[:, 9:]
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            above.append(h)
        below = above
    return np.mean([crossed(h @ p["words"].T + p["c"], ids[:, t + 1]) for t, h in enumerate(below)], axis=0)


def plain_ncf(p, a, y):
    user, item = a[:, :4].argmax(1), a[:, 4:].argmax(1)
    h = relu(np.hstack([p["deep users"][user], p["deep items"][item]]) @ p["W1"] + p["b1"])
    s = (np.hstack([p["users"][user] * p["items"][item], h]) @ p["w"])[:, 0] + p["c"]
    return np.log1p(np.exp(np.where(y > 0, -s, s)))


PLAIN = {"gspar-cnn": plain_cnn, "resnet-8": plain_resnet, "lstm": plain_lstm, "ncf": plain_ncf}


@needs_jax
@EACH
def test_the_loss_is_that_of_plain_numpy(name):
    model, rows = tiny(name, 8)
    x = point(model)
    losses = PLAIN[name](model.split(x), rows.dense(), rows.labels)
    assert in_double(model, x, rows, training=0.0)[0] == pytest.approx(losses.sum(), rel=1e-9)
    some = rows.cut(0, 5)  # which are padded
    losses = PLAIN[name](model.split(x), some.dense(), some.labels)
    assert model.loss_and_gradient(x, some, None)[0] == pytest.approx(losses.mean(), rel=1e-5)


@needs_jax
def test_scores_are_one_a_class_or_one_a_row():
    for name, shape in (("gspar-cnn", (11, 3)), ("ncf", (11,))):
        model, rows = tiny(name, 11)
        assert model.scores(point(model), rows).shape == shape
    user, item = model.inputs(rows).T
    p = model.split(point(model))
    h = relu(np.hstack([p["deep users"][user], p["deep items"][item]]) @ p["W1"] + p["b1"])
    s = (np.hstack([p["users"][user] * p["items"][item], h]) @ p["w"])[:, 0] + p["c"]
    np.testing.assert_allclose(model.scores(point(model), rows), s, rtol=1e-4, atol=1e-6)


@needs_jax
def test_the_environment_is_as_before_once_jax_has_started():
    framework.require()
    assert "NPROC" not in os.environ
    assert os.environ["XLA_FLAGS"] == QUICK


def test_provenance_names_framework_device_and_instruction_set():
    words = framework._instruction_set().split()
    assert words
    assert words[0]


def test_without_jax_one_line_names_the_extra(monkeypatch):
    real = importlib.import_module

    def without(name, *more):
        if name.partition(".")[0] == "jax":
            raise ModuleNotFoundError(name)
        return real(name, *more)

    monkeypatch.setattr(importlib, "import_module", without)
    framework.require.cache_clear()
    with pytest.raises(UserError, match=r"pip install 'mpi-compress\[deep\]'"):
        _ = tiny("lstm", 5)[0].provenance
    framework.require.cache_clear()


@pytest.mark.parametrize(("name", "parameters", "outline", "message"), [
    ("gspar-cnn", {"channels": 0}, Outline(9, 16, 3), "channels = 0"), ("gspar-cnn", {"hidden": 0}, Outline(9, 16, 3), "hidden = 0"),
    ("gspar-cnn", {"chunk": 0}, Outline(9, 16, 3), "chunk = 0"),
    ("gspar-cnn", {}, Outline(9, 15, 3), "15 features are no square image"),
    ("gspar-cnn", {}, Outline(9, 16, 3, {"vocabulary": 9}), "needs images"),
    ("resnet-8", {}, Outline(9, 16, 0), "at least two classes"),
    ("resnet-8", {"stages": 0}, Outline(9, 16, 3), "stages = 0"),
    ("lstm", {}, Outline(9, 16, 0), "needs text"),
    ("lstm", {"dropout": 1.0}, Outline(9, 16, 0, {"vocabulary": 9}), "dropout = 1.0"),
    ("ncf", {}, Outline(9, 16, 0), "needs ratings"),
    ("ncf", {"layers": [3, 2]}, Outline(9, 16, 0, {"users": 9, "items": 7}), "first layer even"),
    ("ncf", {"dropout": -0.1}, Outline(9, 16, 0, {"users": 9, "items": 7}), "dropout = -0.1"),
])  # fmt: skip
def test_data_and_parameters_that_do_not_go_together_are_refused(name, parameters, outline, message):
    with pytest.raises(ValueError, match=message):
        models[name](**parameters).within(outline)


@needs_jax
@EACH
def test_the_mean_loss_of_a_test_set_is_that_of_the_gradient_s_pass_without_dropout(name):
    model, rows = tiny(name, 8)
    x = point(model)
    assert model.mean_loss(x, rows) == pytest.approx(model.loss_and_gradient(x, rows, None)[0], rel=1e-6)
    assert model.mean_loss(x, rows) == pytest.approx(in_double(model, x, rows, 0.0)[0] / len(rows), rel=1e-4)


def test_a_network_of_one_channel_and_one_unit_is_one():
    one = models["gspar-cnn"](channels=1, hidden=1).within(Outline(9, 4 * 4 * 3, 2, {"height": 4, "width": 4, "channels": 3}))
    # conv1 … conv3 with scales and shifts; 1 × 1 × 1 numbers into the unit; the unit into 2 classes
    assert one.dim == 3 * 3 * 3 + 2 + 2 * (3 * 3 + 2) + (1 + 1) + (2 + 2)
