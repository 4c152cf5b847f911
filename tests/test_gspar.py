"""GSpar: what is measured along a run, and its methods."""

import numpy as np
import pytest
from plays import play, problem

from mpi_compress.algorithms.measuring import Measuring
from mpi_compress.link import Link

UPS = [{"name": "gspar", "kappa": 0.2}, {"name": "unisp", "kappa": 0.3}, {"name": "qsgd", "levels": 4}, {"name": "terngrad"}]


@pytest.mark.parametrize("up", UPS, ids=lambda up: up["name"])
@pytest.mark.parametrize("algorithm", [{"name": "sgd", "batch": 2, "step": 0.05}, {"name": "svrg", "batch": 2, "epoch": 5, "step": 0.05}], ids=["sgd", "svrg"])  # fmt: skip
def test_variance_and_density_along_a_run_are_those_of_the_vectors_sent(algorithm, up, monkeypatch):
    """Recomputed from every g and Q(g) of the run."""
    seen = []
    pack = Measuring.pack

    def noting(self, link: Link, worker, g, t):
        before = np.array(g)
        message = pack(self, link, worker, g, t)
        seen.append((before, link.unpack(message).dense()))
        return message

    monkeypatch.setattr(Measuring, "pack", noting)
    done = play(problem(), algorithm, up, 40)
    var = sum(np.sum(q**2) for _, q in seen) / sum(np.sum(g**2) for g, _ in seen)
    spa = np.mean([np.count_nonzero(q) / q.size for _, q in seen])
    assert done.trace["variance"][-1] == pytest.approx(var, rel=1e-9)
    assert done.trace["spa"][-1] == pytest.approx(spa, rel=1e-9)
    assert done.trace["variance_spa"][-1] == pytest.approx(var * spa, rel=1e-9)
    assert done.trace["variance"][0] == 1.0


def test_nothing_is_measured_where_nothing_is_lost():
    done = play(problem(), {"name": "sgd", "batch": 2, "step": 0.05}, {"name": "identity"}, 3)
    assert "variance" not in done.trace
