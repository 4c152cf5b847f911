"""CAT for a compressor with a size: the choice against all sizes, its descent, and the same inside error feedback."""

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
from helpers.plays import play, problem
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mpi_compress.algorithms.estimators.cat import CAT
from mpi_compress.algorithms.estimators.ef import EF
from mpi_compress.algorithms.estimators.ef21 import EF21
from mpi_compress.algorithms.tuning.schemes import Sparsified
from mpi_compress.algorithms.tuning.search import BudgetSearch, Improvement
from mpi_compress.algorithms.tuning.sizes import SizedLink, UnbiasedSizes, sizes_of, tuned
from mpi_compress.core.errors import CorruptMessage
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.messages.batch import batch_of
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.compressors.base import Sized
from mpi_compress.messages.costs.formulas import Affine, Payload, UDPEthernet, Wire
from mpi_compress.messages.kinds import Sparse, WithSize, index_bits
from mpi_compress.messages.link import Link

COSTS = {"payload": Payload(), "affine": Affine(c0="20 B"), "udp": UDPEthernet(), "start only": Affine(c0=3.0, c1=0.0)}
T0 = Round(0, Streams(1), Role.WORKER)
vectors = arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e3, 1e3, width=32))


def linked(name, d, **parameters) -> Link:
    compressor = compressors[name](**parameters)
    return Link(compressor, codecs.build(compressor.codec, "up"), d)


def best(search, v):
    """I_T(v) for the best T."""
    return search.best(v[None], np.array([np.inf]))[0].indices


@dataclass(frozen=True)
class AnyTopK(Sized):
    """top-k as a compressor with a size: the case that CAT's paper has."""

    k: int = 1

    def compress(self, v, t):
        return compressors["top-k"](self.k).compress(v, t)

    def sizes(self, dim):
        return range(1, dim + 1)

    def at_size(self, size):
        return AnyTopK(size)

    def payload(self, dim, fpp):
        return self.k * (index_bits(dim) + fpp)


@pytest.mark.parametrize("cost", COSTS)
@given(v=vectors)
@settings(max_examples=25, deadline=None)
def test_with_top_k_as_a_compressor_with_a_size_it_is_cats_own_choice(cost, v):
    d = v.size
    of_size = SizedLink.of(Link(AnyTopK(), codecs["fixed"](), d), COSTS[cost], range(1, d + 1))
    beside = index_bits(d)  # the bits that say which size
    cats = BudgetSearch(Improvement.ALPHA, lambda T: COSTS[cost].cost(T * (index_bits(d) + 64) + beside), d)
    assert of_size.compress(v, T0).elements == best(cats, v).size


@pytest.mark.parametrize("cost", [*COSTS, "wire"])
@given(v=vectors)
@settings(max_examples=25, deadline=None)
def test_block_signs_have_the_block_of_the_most_improvement_per_cost(cost, v):
    C, d = {**COSTS, "wire": Wire()}[cost], v.size
    link = tuned(linked("block-sign", d), C)
    message = link.pack(v, T0)
    got = link.unpack(batch_of(message.raw))
    assert isinstance(got, WithSize)
    if not np.any(v):
        assert got.number == 0
        return
    sizes = compressors["block-sign"]().sizes(d)
    ratios = []
    for s in sizes:
        c = compressors["block-sign"](s).compress(v, T0)
        wire = 8 * (4 + 1) + 8 * (8 * c.scales.size + (d + 7) // 8)
        paper = d + 64 * c.scales.size + index_bits(len(sizes))
        ratios.append((1 - np.sum((v - c.dense()) ** 2) / np.sum(v**2)) / C.cost(wire if cost == "wire" else paper))
    assert ratios[got.number] >= max(ratios) * (1 - 1e-9)
    np.testing.assert_array_equal(got.dense(), compressors["block-sign"](sizes[got.number]).compress(v, T0).dense())
    assert link.paper_bits(got) == d + 64 * got.vector.scales.size + index_bits(len(sizes))


@pytest.mark.parametrize("name", ["natural", "dithering", "count-sketch"])
@pytest.mark.parametrize("cost", COSTS)
def test_unbiased_compressors_have_the_size_of_the_least_variance_per_cost(name, cost):
    d = 200
    scheme = sizes_of(linked(name, d), COSTS[cost])
    assert isinstance(scheme, UnbiasedSizes)
    at = [compressors[name]().at_size(s) for s in compressors[name]().sizes(d)]
    ratios = [1 / (1 + C.omega(d)) / COSTS[cost].cost(C.payload(d, 64)) for C in at]
    assert scheme.link.compressor == at[int(np.argmax(ratios))]
    assert scheme.gain == 1 / (1 + scheme.link.compressor.omega(d))
    sent = scheme.link.compress(np.ones(d), T0)
    assert sent.paper_bits(64) == scheme.link.compressor.payload(d, 64)
    if cost == "start only":  # bits are free: the finest
        assert scheme.gain == max(1 / (1 + C.omega(d)) for C in at)


def values(p, x):
    """f(x) and ∇f(x)."""
    each = [f.value_and_gradient(x) for f in p.fs]
    return sum(v for v, _ in each) / p.count, sum(g.copy() for _, g in each) / p.count


def test_every_round_of_a_worker_descends_as_the_lemma_says():
    p, seen = problem(count=1, loss="least-squares"), []
    play(p, CAT(), {"name": "block-sign"}, 30, lambda k, node, workers: seen.append((node.x.copy(), workers[0].budget)))
    L = p.numbers["L"]
    chosen = set()
    for (x, _), (after, s) in itertools.pairwise(seen):
        (f, g), (f_after, _) = values(p, x), values(p, after)
        Q = compressors["block-sign"](int(s)).compress(g, T0).dense()
        np.testing.assert_allclose(after, x - Q / L, rtol=1e-12, atol=1e-14)
        assert f_after <= f - (np.sum(g**2) - np.sum((g - Q) ** 2)) / (2 * L) + 1e-12 * f
        chosen.add(s)
    assert values(p, seen[-1][0])[0] < 0.9 * values(p, seen[0][0])[0]


def test_unbiased_messages_are_averaged_and_shortened_by_one_step_for_all():
    p, seen = problem(count=3), []
    play(p, CAT(), {"name": "dithering"}, 4, lambda k, node, workers: seen.append((node.x.copy(), workers[0].budget)))
    scheme = sizes_of(linked("dithering", p.dim), Payload())
    assert all(s == scheme.size for _, s in seen[1:])
    for k, ((x, _), (after, _)) in enumerate(itertools.pairwise(seen)):
        sent = [
            scheme.link.compress(f.gradient(x).copy(), Round(k, Streams(0), Role.WORKER, i)).dense() for i, f in p.fs.items()
        ]
        np.testing.assert_allclose(after, x - scheme.gain * np.mean(sent, axis=0) / p.numbers["L"], rtol=1e-11, atol=1e-13)


def test_error_feedback_tunes_the_budget_to_what_it_compresses():
    p, seen, budgets = problem(count=2), [], []
    def look(k, node, workers):
        seen.append((node.x.dense().copy(), [w.e.copy() for w in workers.values()]))

    play(p, EF(budget="cat"), {"name": "top-k"}, 12, look, cost="udp-ethernet")
    link = linked("top-k", p.dim)
    search = BudgetSearch(Improvement.ALPHA, lambda T: UDPEthernet().cost(T * (index_bits(p.dim) + 64)), p.dim)
    γ, errors = 1 / p.numbers["L"], [np.zeros(p.dim) for _ in p.fs]
    for (x, _), (after, found) in itertools.pairwise(seen):
        sent = []
        for i, f in p.fs.items():
            v = errors[i] + f.gradient(x)
            top = best(search, v)
            c = np.zeros(p.dim)
            c[top] = v[top]
            errors[i] = v - c
            sent.append(c)
            budgets.append(top.size)
        np.testing.assert_allclose(after, x - γ * np.mean(sent, axis=0), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(found, errors, rtol=1e-12, atol=1e-14)
    assert len(set(budgets)) > 1
    assert isinstance(tuned(link, Payload()).compress(np.ones(p.dim), T0), Sparse)


def test_ef21_tunes_the_budget_to_the_difference_that_it_compresses():
    p, seen = problem(count=2), []
    play(p, EF21(budget="cat", step="0.5/L"), {"name": "top-k"}, 8, lambda k, node, _: seen.append(node.x.copy()), cost="udp-ethernet")
    search = BudgetSearch(Improvement.ALPHA, lambda T: UDPEthernet().cost(T * (index_bits(p.dim) + 64)), p.dim)
    estimates, sizes = {i: np.zeros(p.dim) for i in p.fs.who}, set()
    for x, after in itertools.pairwise(seen):
        for i, f in p.fs.items():
            difference = f.gradient(x) - estimates[i]
            top = best(search, difference)
            estimates[i][top] += difference[top]
            sizes.add(top.size)
        np.testing.assert_allclose(after, x - 0.5 / p.numbers["L"] * np.mean([*estimates.values()], axis=0), rtol=1e-11, atol=1e-13)
    assert len(sizes) > 1


def test_what_cannot_be_tuned_is_refused():
    for link, cost, says in (
        (linked("top-k", 9, k=3), Payload(), "leave it out"),
        (linked("natural", 9), Payload(), "is unbiased"),
        (linked("terngrad", 9), Payload(), "has no size"),
        (replace(linked("top-k", 9), codec=codecs["rice"]()), Wire(), "by T alone"),
    ):
        with pytest.raises(ValueError, match=says):
            tuned(link, cost)
    with pytest.raises(ValueError, match="cannot be planned"):
        sizes_of(linked("natural", 9), Wire())
    with pytest.raises(ValueError, match="sets levels of 'dithering' itself"):
        sizes_of(linked("dithering", 9, levels=3), Payload())
    with pytest.raises(ValueError, match="sets block of 'block-sign' itself"):
        tuned(linked("block-sign", 9, block=3), Payload())
    with pytest.raises(ValueError, match="fraction = 40"):
        sizes_of(linked("natural", 9), Payload(), 40)
    with pytest.raises(CorruptMessage, match="names no size"):
        tuned(linked("block-sign", 9), Payload()).unpack(batch_of(np.array([200, 1, 2], dtype=np.uint8)))
    assert Sparsified(linked("top-k", 9), Payload()).payload(2) == 2 * (4 + 64)
