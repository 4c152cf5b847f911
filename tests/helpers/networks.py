"""Tiny networks with rows for them, and whether JAX is installed."""

import importlib.util
import os

import numpy as np
import pytest
import scipy.sparse as sp

from mpi_compress.problem.models import Model, Outline, models
from mpi_compress.problem.rows import Rows

needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed: pip install 'mpi-compress[deep]'")

QUICK = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"  # halves the time that XLA compiles
os.environ["XLA_FLAGS"] = QUICK  # for tests, and for the processes that they start

IMAGES = {"height": 6, "width": 5, "channels": 1}
WORDS = {"vocabulary": 7, "window": 4}
RATINGS = {"users": 4, "items": 6, "candidates": 3}


def images(n: int) -> Rows:
    rng = np.random.default_rng(1)
    return Rows((rng.random((n, 30)),), np.arange(n) % 3.0, 30)


def words(n: int) -> Rows:
    ids = np.random.default_rng(2).integers(0, 7, (n, 5)).astype(float)
    return Rows((ids,), ids[:, -1].copy(), 5)


def ratings(n: int) -> Rows:
    rng = np.random.default_rng(3)
    a = np.zeros((n, 10))
    a[np.arange(n), rng.integers(0, 4, n)] = a[np.arange(n), 4 + rng.integers(0, 6, n)] = 1
    csr = sp.csr_matrix(a)
    return Rows((csr.indptr.astype(np.uint64), csr.indices.astype(np.uint32), csr.data), np.arange(n) % 2.0, 10)


CASES = {
    "gspar-cnn": ({"channels": 2, "hidden": 3}, images, 3, IMAGES),
    "resnet-8": ({"width": 2, "stages": 2}, images, 3, IMAGES),
    "lstm": ({"hidden": 3, "layers": 2, "dropout": 0.3}, words, 0, WORDS),
    "ncf": ({"factors": 2, "layers": [4, 3], "dropout": 0.3}, ratings, 0, RATINGS),
}


def tiny(name: str, n: int, chunk: int = 8) -> tuple[Model, Rows]:
    """A network of a few hundred parameters, and n rows."""
    parameters, make, classes, sizes = CASES[name]
    rows = make(n)
    return models[name](chunk=chunk, **parameters).within(Outline(n, rows.dim, classes, sizes)), rows
