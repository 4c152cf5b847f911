"""What a compressor states of its loss is what it loses: on vectors that attain its theorem neither less nor more, by sampling."""

from math import inf, sqrt

import numpy as np
import pytest

import mpi_compress as mc
from mpi_compress.core.streams import Role, Streams
from mpi_compress.messages.compressors import compressors

STREAMS = Streams(1)
rng = np.random.default_rng(0)
ANY, ONES, ONE = rng.standard_normal(16), np.ones(16), np.eye(1, 16, 3)[0]
DIAGONAL = np.array([1.0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1])  # of the identity (5, 5), row by row
PEAK = np.append(np.full(15, 1 / (sqrt(16) + 1)), 1.0)  # TernGrad's worst

CASES = [
    # unbiased: E‖C(v) − v‖² = ω‖v‖²
    ({"name": "random-k", "k": 3}, "omega", ANY, 16 / 3 - 1),
    ({"name": "random-k", "k": "50%"}, "omega", ANY, 1),
    ({"name": "unisp", "kappa": 0.3}, "omega", ANY, 7 / 3),
    ({"name": "unisp", "kappa": 0.3, "shared_seed": True}, "omega", ANY, 7 / 3),
    ({"name": "stochastic", "k": 3}, "omega", ONES, 16 / 3 - 1),
    ({"name": "perm-k", "n": 4}, "omega", ANY, 3),
    ({"name": "perm-k", "n": 50}, "omega", ANY, 15),
    ({"name": "pattern", "s": 2, "n": 5}, "omega", ANY, 1.5),
    ({"name": "count-sketch", "columns": 4, "rows": 2}, "omega", ANY, 15 / 8),
    ({"name": "count-sketch", "columns": 4, "rows": 2}, "omega", ONE, 15 / 8),
    ({"name": "core", "m": 4}, "omega", ANY, 17 / 4),
    ({"name": "natural"}, "omega", np.full(16, 4 / 3), 1 / 8),
    ({"name": "natural", "fraction": 3}, "omega", np.full(16, 1 + (1 / 8) / (2 + 1 / 8)), (1 / 64) / (4 * 9 / 8)),
    ({"name": "terngrad"}, "omega", PEAK, (sqrt(16) - 1) / 2),
    ({"name": "lq", "q": inf}, "omega", PEAK, (sqrt(16) - 1) / 2),
    ({"name": "lq", "q": 2.0}, "omega", ONES, 3),
    ({"name": "lq", "q": 1.5}, "omega", ONES, 16 ** (2 / 3) - 1),
    ({"name": "lq", "q": 1.0}, "omega", ONES, 15),
    ({"name": "qsgd", "levels": 2}, "omega", ONES, 1),  # b/(4s²): all levels are halves
    ({"name": "qsgd", "levels": 1, "bucket": 4}, "omega", ONES, 1),
    ({"name": "dithering", "levels": 2, "p": 2.0}, "omega", ONES, 1),
    ({"name": "dithering", "levels": 8, "p": 1.0}, "omega", ONES, 1),
    ({"name": "correlated-dithering", "levels": 2, "n": 4}, "omega", ONES, 1),
    ({"name": "gspar", "epsilon": 0.5}, "omega", ANY, 0.5),
    ({"name": "gspar", "epsilon": 3.0}, "omega", ONES, 3),
    ({"name": "blocks", "of": {"name": "random-k", "k": 1}, "sizes": [4, 12]}, "omega", np.append(np.zeros(4), ANY[:12]), 11),
    ({"name": "chain", "first": {"name": "random-k", "k": 4}, "then": {"name": "qsgd", "levels": 1}}, "omega", ONES, 7),
    # contractive: E‖C(v) − v‖² = (1 − δ)‖v‖²
    ({"name": "top-k", "k": 3}, "delta", ONES, 3 / 16),
    ({"name": "top-k", "k": "50%"}, "delta", ONES, 1 / 2),
    ({"name": "random-k", "k": 3, "scaled": False}, "delta", ANY, 3 / 16),
    ({"name": "block-sign"}, "delta", ONE, 1 / 16),
    ({"name": "uniform", "levels": 1}, "delta", np.append(np.full(15, 1 / 2), 1.0), 4 / 19),
    ({"name": "low-rank"}, "delta", DIAGONAL, 1 / 5),
    ({"name": "low-rank", "rank": 3}, "delta", DIAGONAL, 3 / 5),
    ({"name": "block-sign", "block": 4}, "delta", ONE, 1 / 4),
    ({"name": "blocks", "of": {"name": "top-k", "k": 1}, "sizes": [4, 12]}, "delta", np.append(np.zeros(4), np.ones(12)), 1 / 12),
    ({"name": "chain", "first": {"name": "top-k", "k": 4}, "then": "natural"}, "delta", np.full(16, 4 / 3), 7 / 32),
    ({"name": "chain", "first": {"name": "top-k", "k": 4}, "then": {"name": "qsgd", "levels": 1}, "shrunk": True}, "delta", ONES, 1 / 8),
    # absolute: E‖C(v) − v‖² = σ², whatever ‖v‖
    ({"name": "rounding", "step": 0.5}, "variance", np.full(16, 1.25), 1),
    ({"name": "rounding", "step": 0.5, "stochastic": True}, "variance", np.full(16, 1.25), 1),
    ({"name": "lattice", "sigma": 2.0}, "variance", np.full(16, 3.5), 4),  # a grid of 2σ/√d = 1
    ({"name": "lattice", "sigma": 2.0, "stochastic": True}, "variance", np.full(16, 3.5), 4),
    ({"name": "hard-threshold", "threshold": 0.5}, "variance", np.full(16, 0.4999), 4),
    ({"name": "blocks", "of": {"name": "hard-threshold", "threshold": 0.5}, "slices": 3}, "variance", np.full(16, 0.4999), 4),
]  # fmt: skip
LOOSE = {
    # what is stated, and what the worst vector loses: the theorem gives away that much
    "a share of κ": ({"name": "gspar", "kappa": 0.05, "passes": 5}, ONES, 20, 19),
    "the largest magnitude": ({"name": "qsgd", "levels": 16, "norm": "max"}, np.append(np.full(15, 1 / 32), 1.0), 15 / 1024, (sqrt(1 + 15 / 256) - 1) / 2),
    "a 2-norm with one level": ({"name": "qsgd", "levels": 1}, np.ones(400), 20, 19),
    "a 2-norm, dithered": ({"name": "dithering", "levels": 1, "p": 2.0}, np.ones(400), 20, 19),
}  # fmt: skip


def shares(C, v, draws):
    """‖C(v) − v‖² in several rounds."""
    return np.array([np.sum((C.applied(v, mc.Round(k, STREAMS, Role.WORKER, 0)).dense() - v) ** 2) for k in range(draws)])


def check(found, wanted):
    """The mean within 5 standard errors; these are small beside it, so that half as much again would be seen."""
    error = 5 * np.std(found) / np.sqrt(found.size) + 1e-3 * wanted
    assert error < wanted / 4
    assert abs(np.mean(found) - wanted) < error


@pytest.mark.parametrize(("spec", "kind", "v", "value"), CASES, ids=lambda value: str(value) if isinstance(value, dict | str) else "")
def test_a_vector_that_attains_the_theorem_loses_what_is_stated(spec, kind, v, value):
    C = compressors.build(spec, "up")
    assert getattr(C, kind)(v.size) == pytest.approx(value, rel=1e-12)
    lost = shares(C, v, 1000)
    check(lost, {"omega": value * (v @ v), "delta": (1 - value) * (v @ v), "variance": value}[kind])


@pytest.mark.parametrize("name", LOOSE)
def test_where_a_theorem_is_not_attained_what_it_gives_away_is_known(name):
    spec, v, stated, lost = LOOSE[name]
    C = compressors.build(spec, "up")
    assert C.omega(v.size) == pytest.approx(stated, rel=1e-12)
    check(shares(C, v, 600), lost * (v @ v))
    assert lost < stated < 1.5 * lost


def test_the_identity_loses_nothing():
    C = compressors["identity"]()
    assert (C.delta(16), C.omega(16), shares(C, ANY, 3).max()) == (1.0, 0.0, 0.0)


def test_accordion_states_the_coarser_of_its_two_regimes():
    C = compressors["accordion"](k_min=2, k_max=4)
    assert C.delta(16) == 2 / 16
    for critical, k in ((False, 2), (True, 4)):
        assert shares(C.in_run(16, step=0.1, regime=critical), ONES, 1)[0] == 16 - k


def test_every_compressor_that_states_a_theorem_is_among_them():
    there = {spec["name"] for spec, *_ in CASES} | {"identity", "accordion"}
    assert set(compressors) - there == {"clip", "sq"}, "these state none"
