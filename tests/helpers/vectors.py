"""Vectors that are hard on compressors: drawn by hypothesis, fixed, and gradients of real data where it is at hand."""

import lzma
import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays


@st.composite
def hard(draw, most=30, largest_exponent=150):
    """(d,): zeros, ties, spikes, constants and denormals, of any scale whose squares a float can or cannot hold."""
    d = draw(st.integers(1, most))
    scale = 10.0 ** draw(st.sampled_from([0, 0, 0, -5, -160, -300, largest_exponent]))
    kind = draw(st.sampled_from(["any", "ties", "spike", "constant", "denormal", "spread"]))
    if kind == "any":
        return scale * draw(arrays(np.float64, d, elements=st.floats(-1, 1)))
    if kind == "ties":
        return scale * draw(arrays(np.float64, d, elements=st.sampled_from([0.0, 1.0, -1.0, 0.5, -2.0])))
    if kind == "constant":
        return np.full(d, scale * draw(st.sampled_from([0.0, 1.0, -0.3])))
    if kind == "denormal":
        return 5e-324 * draw(arrays(np.float64, d, elements=st.integers(-9, 9).map(float)))
    if kind == "spread":
        return scale * np.sign(draw(arrays(np.float64, d, elements=st.floats(-1, 1)))) * 0.25 ** np.arange(d)
    v = scale * 1e-3 * draw(arrays(np.float64, d, elements=st.floats(-1, 1)))
    v[draw(st.integers(0, d - 1))] = scale
    return v


def fixed(d=12):
    """A few vectors (d,) for what is measured over many draws."""
    rng = np.random.default_rng(d)
    return {
        "normal": rng.standard_normal(d), "heavy": rng.standard_cauchy(d), "constant": np.full(d, -0.7),
        "spike": np.r_[5.0, np.full(d - 1, 0.3)], "zeros": np.r_[1.0, -2.0, np.zeros(d - 2)], "zero": np.zeros(d),
        "tiny": 1e-310 * rng.standard_normal(d), "huge": 1e150 * rng.standard_normal(d),
    }  # fmt: skip


@cache
def real():
    """Gradients of the logistic loss on real data, at 0 and at a random point."""
    folder = os.environ.get("MPI_COMPRESS_DATA")
    if not folder:
        pytest.skip("MPI_COMPRESS_DATA names no folder of real data")
    from sklearn.datasets import load_svmlight_file

    out = {}
    for name in ("madelon", "news20"):
        file = Path(folder) / f"{name}.xz"
        if not file.exists():
            pytest.skip(f"{file} is not there")
        with lzma.open(file) as text:
            A, labels = load_svmlight_file(text)
        y = np.where(labels <= np.median(labels), -1.0, 1.0)
        x = np.random.default_rng(0).standard_normal(A.shape[1]) / abs(A).sum(axis=1).mean()
        for where, margin in (("0", np.zeros(y.size)), ("x", y * (A @ x))):
            out[f"{name} at {where}"] = A.T @ (-y / (1 + np.exp(margin))) / y.size
    return out
