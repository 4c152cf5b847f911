"""CAT's search against brute force over all T, and what the paper says of T."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mpi_compress.compressed import Sparse
from mpi_compress.costs.affine import Affine
from mpi_compress.costs.packet import Packet
from mpi_compress.costs.payload import Payload
from mpi_compress.tuning import TIE, BudgetSearch

COSTS = {
    "payload": Payload(),
    "affine": Affine(c0="54 B"),
    "affine, dear start": Affine(c0="1 MB"),
    "affine, start only": Affine(c0=3.0, c1=0.0),
    "packet": Packet(c1="128 B", pmax="128 B", c0="64 B"),
    "small packets": Packet(c1="20 B", pmax="16 B"),
}


def brute_force(g, cost, bits):
    """The smallest T with α(T)/C(T) within 1e-12 of the largest, over all T."""
    d = g.size
    order = np.argsort(-np.abs(g), kind="stable")
    peak = np.abs(g).max()
    squares = (g[order] / peak) ** 2 if peak > 0 else np.zeros(d)
    ratios = np.cumsum(squares) / cost.cost(np.arange(1, d + 1) * float(bits))
    T = int(np.argmax(ratios >= ratios.max() * (1 - TIE))) + 1
    return T, np.sort(order[:T])


def search(g, cost, bits):
    return BudgetSearch(lambda T: cost.cost(T * float(bits)), g.size).best(g)


values = st.one_of(
    st.floats(-1e3, 1e3, allow_subnormal=True),
    st.sampled_from([0.0, 1.0, -1.0, 2.0, 1e-300, 5e-324, 1e300]),
)
gradients = st.integers(1, 300).flatmap(
    lambda d: st.one_of(
        arrays(np.float64, d, elements=values),
        arrays(np.float64, d, elements=st.sampled_from([0.0, 0.0, 0.0, 1.0, -2.0])),  # sparse, tied
        st.floats(-1e3, 1e3).map(lambda a: np.full(d, a)),  # constant
        st.integers(0, 2**32).map(lambda s: np.random.default_rng(s).standard_cauchy(d)),
        st.integers(0, 2**32).map(lambda s: np.random.default_rng(s).normal(size=d) ** 7),
    )
)


@settings(max_examples=300, deadline=None)
@given(g=gradients, name=st.sampled_from(sorted(COSTS)))
def test_budget_equals_brute_force_over_all_budgets(g, name):
    bits = Sparse.bits_per_element(g.size, 64)
    T, indices = brute_force(g, COSTS[name], bits)
    chosen = search(g, COSTS[name], bits)
    assert chosen.elements == T
    assert np.array_equal(chosen.indices, indices)
    assert np.array_equal(chosen.values, g[indices])


@pytest.mark.parametrize("name", sorted(COSTS))
@pytest.mark.parametrize("d", [1000, 20_000])
def test_budget_equals_brute_force_where_the_search_looks_more_than_once(name, d):
    rng = np.random.default_rng(d)
    for g in (
        rng.normal(size=d),
        rng.normal(size=d) * np.geomspace(1, 1e-3, d),
        np.ones(d),
        np.r_[np.ones(500), np.zeros(d - 500)],
    ):
        bits = Sparse.bits_per_element(d, 32)
        assert search(g, COSTS[name], bits).elements == brute_force(g, COSTS[name], bits)[0]


@settings(max_examples=100, deadline=None)
@given(g=gradients)
def test_payload_cost_gives_one_coordinate_each_time(g):
    """CAT Proposition 2."""
    assert search(g, Payload(), Sparse.bits_per_element(g.size, 64)).elements == 1


@settings(max_examples=100, deadline=None)
@given(g=gradients)
def test_packets_are_full_but_for_the_last_nonzeros(g):
    """CAT Proposition 1: T = ⌊m·Pmax/bits⌋ for a whole m, or as many as there are nonzeros."""
    bits = Sparse.bits_per_element(g.size, 64)
    T = search(g, Packet(c1="128 B", pmax="128 B", c0="64 B"), bits).elements
    full = {m * 1024 // bits for m in range(1, 1 + (g.size * bits) // 1024 + 1)}
    flat_from = brute_force(g, Affine(c0=1.0, c1=0.0), bits)[0]  # where α has reached its end
    assert T in full or g.size == T or flat_from <= T or T == 1


def test_a_gradient_that_is_not_finite_is_passed_on():
    for bad in (np.nan, np.inf, -np.inf):
        g = np.array([1.0, bad, 2.0])
        chosen = search(g, Payload(), 66)
        assert chosen.indices.tolist() == [1]
        assert not chosen.is_finite()


def test_budget_never_exceeds_the_coordinates_there_are():
    g = np.arange(1.0, 6.0)
    assert search(g, Packet(c1="1 MB", pmax="1 MB"), 67).elements == 5
