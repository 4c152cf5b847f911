"""The adapter for PyTorch in docs/own-loss.md, where PyTorch is installed."""

import re
from pathlib import Path

import numpy as np
import pytest

from mpi_compress.problem.models import Outline, models
from mpi_compress.problem.rows import Rows

pytest.importorskip("torch", reason="PyTorch is not installed")
PAGE = Path(__file__).parents[2] / "docs" / "own-loss.md"


@pytest.mark.usefixtures("registered_for_one_test_only")
def test_the_adapter_of_the_page_gives_the_gradient_and_repeats_its_dropout():
    (source,) = re.findall(r"^```python\n# torch_model\.py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    exec(compile(source, str(PAGE), "exec"), {"__name__": "torch_model"})
    rng = np.random.default_rng(0)
    rows = Rows((rng.standard_normal((20, 4)),), np.arange(20) % 3.0, 4)
    model = models["torch-model"](hidden=5).within(Outline(20, 4, 3))
    x = model.start(np.random.default_rng(1))
    assert x.shape == (model.dim,)
    value, gradient = model.loss_and_gradient(x, rows, None)
    for j in range(0, model.dim, 7):
        h = np.where(np.arange(model.dim) == j, 1e-2, 0.0)
        difference = (model.loss_and_gradient(x + h, rows, None)[0] - model.loss_and_gradient(x - h, rows, None)[0]) / 2e-2
        assert gradient[j] == pytest.approx(difference, abs=1e-3)
    scores = model.scores(x, rows)
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    assert value == pytest.approx(-logs[np.arange(20), rows.labels.astype(int)].mean(), rel=1e-5)
    drawn = [model.loss_and_gradient(x, rows, np.random.default_rng(seed))[1] for seed in (1, 1, 2)]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[1], drawn[2])
