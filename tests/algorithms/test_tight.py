"""The tight factor of EF and EF21 bounds every round of quadratics, whatever of size √ε is lost, and some round nearly reaches it."""

import numpy as np
import pytest

from mpi_compress.algorithms.theorem import TIGHT, tight_factor
from mpi_compress.core.expressions import evaluate

CASES = [(1.0, 0.1, 0.25), (3.0, 1.5, 0.25), (1.0, 0.1, 0.7), (1.0, 0.01, 0.1)]


@pytest.mark.parametrize(("L", "mu", "ε"), CASES)
@pytest.mark.parametrize("method", ["ef", "ef21"])
def test_v_falls_by_the_factor_and_not_by_less(L, mu, ε, method):
    rng, η, s, worst = np.random.default_rng(7), evaluate(TIGHT, {"L_mean": L, "mu": mu, "delta": 1 - ε}), np.sqrt(ε), 0.0
    for _ in range(20_000):
        h, x, a, u = rng.choice([L, mu], 2), rng.standard_normal(2), rng.standard_normal(2), rng.standard_normal(2)
        g, a = h * x, a * 10 ** rng.uniform(-1, 1) * np.linalg.norm(h * x if method == "ef21" else x)
        lost = s * u / np.linalg.norm(u)
        if method == "ef":
            p = a + η * g
            e = np.linalg.norm(p) * lost
            before, after = (np.sum((y - r) ** 2) + np.sum(r**2) / s for y, r in ((x, a), (x - p + e, e)))
        else:
            new = h * (x - η * (g + a))
            before, after = (np.sum(r**2) + s * np.sum(v**2) for v, r in ((g, a), (new, np.linalg.norm(new - g - a) * lost)))
        worst = max(worst, after / before)
    assert worst <= tight_factor(L, mu, ε) * (1 + 1e-12)
    assert worst >= 0.99 * tight_factor(L, mu, ε)
