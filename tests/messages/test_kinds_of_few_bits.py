"""Natural compression, dithering, block signs, PermK, count sketches and blocks: small cases by hand, bits, exact codecs."""

from math import inf

import numpy as np
import pytest
from helpers.refusals import naming
from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.messages.batch import batch_of
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.coders import coder
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.compressors.base import coordinates_sent
from mpi_compress.messages.kinds import BlockSigns, Dithered, Permuted, Powers, Sketch
from mpi_compress.messages.link import Link
from mpi_compress.messages.mean import Averager

STREAMS = Streams(3)


def at(k=0, who=0, role=Role.WORKER) -> Round:
    return Round(k, STREAMS, role, who)


def linked(compressor, d, codec=None) -> Link:
    return Link(compressor, codecs.build(codec or compressor.codec, "up"), d)


def received(compressor, v, t, codec=None):
    """What a receiver sees, who has the bytes alone."""
    link = linked(compressor, v.size, codec)
    return link.unpack(batch_of(link.pack(v, t).raw))


def test_natural_rounds_to_the_two_powers_beside_a_coordinate_and_keeps_powers():
    C = compressors["natural"]()
    v = np.array([1.0, -0.25, 0.0, 3.0, -5e-324, 0.75, 2.0**1023])
    seen = {tuple(C.compress(v, at(k)).dense().tolist()) for k in range(40)}
    assert {(s[0], s[1], s[2], s[4], s[6]) for s in seen} == {(1.0, -0.25, 0.0, -5e-324, 2.0**1023)}
    assert {s[3] for s in seen} == {2.0, 4.0}
    assert {s[5] for s in seen} == {0.5, 1.0}


@pytest.mark.parametrize("fraction", [0, 2, 9])
def test_natural_attains_its_omega_at_the_worst_number(fraction):
    C, h = compressors["natural"](fraction), 2.0**-fraction
    t = 1 + h / (2 + h)
    low, high = 1.0, 1.0 + h
    up = (t - low) / h
    assert set(C.compress(np.full(400, t), at()).dense()) == {low, high}
    variance = up * (high - t) ** 2 + (1 - up) * (low - t) ** 2
    assert variance / t**2 == pytest.approx(C.omega(9), rel=1e-12)
    assert np.mean(C.compress(np.full(4000, t), at()).dense() == high) == pytest.approx(up, abs=5 * 0.5 / 4000**0.5)


def test_natural_sends_a_sign_and_the_exponents_that_there_are():
    C, d = compressors["natural"](), 1000
    v = np.where(np.arange(d) % 2, 1.0, -0.125)
    link = linked(C, d)
    message = link.pack(v, at())  # exponents 0 and −3, and 0: a field of 3 bits and a sign
    assert message.raw.size == 3 + d * 4 // 8
    np.testing.assert_array_equal(link.unpack(message).dense(), v)
    assert [codecs["packed"](float=f).paper_bits(link.unpack(message)) for f in (32, 64, 16)] == [9 * d, 12 * d, 6 * d]
    assert linked(C, d).pack(np.zeros(d), at()).raw.size == 1
    with pytest.raises(OverflowError, match="2\\^1024"):
        C.compress(np.full(50, 1.7e308), at())


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=30), st.integers(0, 16))
@settings(max_examples=50, deadline=None)
def test_what_natural_makes_comes_back_to_the_last_bit_and_is_next_to_the_vector(values, fraction):
    v = np.array(values)
    sent = received(compressors["natural"](fraction), v, at())
    np.testing.assert_array_equal(sent.dense(), compressors["natural"](fraction).compress(v, at()).dense())
    assert np.all(np.abs(sent.dense() - v) <= 2.0**-fraction * np.abs(v))
    assert np.all(np.sign(sent.dense()) == np.sign(v))


def test_block_signs_send_the_mean_magnitude_of_each_block():
    v = np.array([1.0, -3.0, 0.0, 4.0, -8.0])
    C = compressors["block-sign"](block=2)
    sent = received(C, v, at())
    np.testing.assert_array_equal(sent.dense(), [2, -2, 2, 2, -8])
    lost = np.sum((sent.dense() - v) ** 2)
    assert lost == np.sum(v**2) - (4**2 / 2 + 4**2 / 2 + 8**2)
    assert C.delta(5) == 0.5
    link = linked(C, 5, {"name": "packed", "float": 32})
    assert link.pack(v, at()).raw.size == 3 * 4 + 1
    assert link.paper_bits(sent) == 5 + 3 * 32
    spike = np.eye(1, 9, 4)[0]
    one = compressors["block-sign"]()
    assert np.sum((received(one, spike, at()).dense() - spike) ** 2) == pytest.approx(1 - one.delta(9))


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, inf])
@pytest.mark.parametrize("levels", [1, 7, 8, 300])
def test_dithering_sends_levels_of_the_p_norm(p, levels):
    v = np.random.default_rng(0).standard_normal(50)
    C = compressors["dithering"](levels, p)
    sent = C.compress(v, at())
    assert sent.scale * levels == pytest.approx(np.linalg.norm(v, p), rel=1e-12)
    assert np.all(np.abs(sent.dense() - v) <= sent.scale * (1 + 1e-12))
    np.testing.assert_array_equal(received(C, v, at()).dense(), sent.dense())
    width = 1 + levels.bit_length()
    assert linked(C, 50).pack(v, at()).raw.size == 8 + (50 * width + 7) // 8
    assert sent.paper_bits(32) == 32 + 50 * width
    part = np.abs(v) / sent.scale % 1
    assert np.sum(part * (1 - part)) * sent.scale**2 <= C.omega(50) * np.sum(v**2)


def errors_of_means(name, vs, rounds=400, **more):
    """(1/n) Σ C_i(v_i) − v̄ in several rounds, each of its d coordinates."""
    C = compressors[name](levels=2, p=inf, **more)
    sent = [[received(C, v, at(k, i)).dense() for i, v in enumerate(vs)] for k in range(rounds)]
    return np.mean(sent, axis=1) - np.mean(vs, axis=0)


@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_workers_that_share_their_dither_average_equal_vectors_to_within_an_nth_of_a_level(n):
    v = np.random.default_rng(2).uniform(-1, 1, 30)
    off = errors_of_means("correlated-dithering", np.tile(v, (n, 1)), 20, n=n)
    assert 0 < np.abs(off).max() < np.abs(v).max() / 2 / n


def test_workers_that_share_their_dither_are_never_worse_than_those_that_do_not():
    """Their errors do not correlate positively, whatever the vectors: v, −v and others."""
    rng = np.random.default_rng(3)
    for a in (rng.uniform(-1, 1, (4, 60)), np.outer([1.0, -1, 1, -1], rng.uniform(-1, 1, 60))):
        shared, own = (np.sum(errors_of_means(*of, **n) ** 2, axis=1) for of, n in ((("correlated-dithering", a), {"n": 4}), (("dithering", a), {})))
        assert shared.mean() < own.mean() + 5 * np.hypot(shared.std(), own.std()) / shared.size**0.5
        assert shared.mean() < (0.95 if a[0, 0] != -a[1, 0] else 1.05) * own.mean()


@pytest.mark.parametrize(("d", "n"), [(12, 4), (13, 4), (5, 1), (4, 12), (5, 13)])
def test_perm_k_deals_all_coordinates_to_the_workers_of_a_round(d, n):
    C, a = compressors["perm-k"]().among(n), np.random.default_rng(1).standard_normal(d)
    for k in range(5):
        sent = [received(C, a, at(k, who)) for who in range(n)]
        held = np.concatenate([c.indices for c in sent])
        counts = np.bincount(held, minlength=d)
        assert np.all(counts == 1) if d >= n else set(counts) <= {n // d, -(-n // d)}
        if d >= n or n % d == 0:
            np.testing.assert_allclose(Averager(d).mean(sent).dense(), a, rtol=1e-14)
    assert C.omega(d) == min(n, d) - 1
    rounds = [received(C, a, at(k)).indices.tolist() for k in range(9)]
    assert n == 1 or len({*map(tuple, rounds)}) > 1


@pytest.mark.parametrize("name", ["perm-k", "pattern"])
def test_what_is_dealt_to_workers_is_of_the_workers_of_the_run(name):
    C = compressors[name]()
    assert C.among(1).compress(np.ones(3), at()).dense().tolist() == [1, 1, 1], "one worker has all"
    with pytest.raises(ValueError, match="needs n"):
        C.check(10)
    with pytest.raises(ValueError, match="n = 3 was given, and there are 4 workers"):
        compressors[name](n=3).among(4)
    with pytest.raises(ValueError, match="worker 4"):
        C.among(4).compress(np.ones(10), at(0, 4))


def test_the_master_has_a_permutation_of_its_own_in_perm_k():
    C = compressors["perm-k"]()
    assert at(2, 0).common_seed == at(2, 7).common_seed != at(2, role=Role.MASTER).common_seed
    v = np.ones(40)
    link = linked(C.among(4), 40, {"name": "seeded", "float": 32})
    message = link.pack(v, at(0, 3))
    assert message.raw.size == 4 + 1 + 4 * 10
    assert link.paper_bits(link.unpack(message)) == 320


def test_perm_ks_variance_of_the_mean_is_that_of_its_paper():
    rng = np.random.default_rng(5)
    for d, n, A in ((12, 4, 1.0), (3, 12, 1 - (12 - 3) / (12 - 1))):
        a = rng.standard_normal((n, d))
        C, mean = compressors["perm-k"](n), Averager(d).mean
        errors = [np.sum((mean([C.compress(a[i], at(k, i)) for i in range(n)]).dense() - a.mean(axis=0)) ** 2) for k in range(200)]
        wanted = A * (np.mean(np.sum(a**2, axis=1)) - np.sum(a.mean(axis=0) ** 2))
        assert np.mean(errors) == pytest.approx(wanted, abs=5 * np.std(errors) / 200**0.5)


@pytest.mark.parametrize(("d", "n", "s"), [(12, 4, 2), (13, 5, 3), (3, 8, 2), (7, 3, 3), (9, 1, 1)])
def test_a_pattern_has_each_coordinate_at_s_workers_and_equal_vectors_are_averaged_exactly(d, n, s):
    C, a = compressors["pattern"](s=s).among(n), np.random.default_rng(1).standard_normal(d)
    seen = set()
    for k in range(9):
        sent = [received(C, a, at(k, who)) for who in range(n)]
        assert np.all(np.bincount(np.concatenate([c.indices for c in sent]), minlength=d) == s)
        assert {c.indices.size for c in sent} <= {s * d // n, -(-s * d // n)}
        np.testing.assert_allclose(Averager(d).mean(sent).dense(), a, rtol=1e-14)
        seen.add(tuple(sent[0].indices))
    assert len(seen) > 1 or n == s
    assert C.omega(d) == pytest.approx(n / s - 1)
    link = linked(C, d, {"name": "seeded", "float": 32})
    message = link.pack(a, at(0, n - 1))
    T = link.unpack(message).values.size
    assert (message.raw.size, link.paper_bits(link.unpack(message))) == (4 + 1 + 4 * T, 32 * T)


def test_a_pattern_s_variance_of_the_mean_is_that_of_its_docstring():
    rng, (d, n, s) = np.random.default_rng(5), (12, 6, 2)
    a, C, mean = rng.standard_normal((n, d)), compressors["pattern"](s=s, n=n), Averager(d).mean
    errors = [np.sum((mean([C.compress(a[i], at(k, i)) for i in range(n)]).dense() - a.mean(axis=0)) ** 2) for k in range(400)]
    wanted = (n - s) / (s * (n - 1)) * (np.mean(np.sum(a**2, axis=1)) - np.sum(a.mean(axis=0) ** 2))
    assert np.mean(errors) == pytest.approx(wanted, abs=5 * np.std(errors) / 400**0.5)


def test_clipping_shortens_a_vector_to_its_threshold_and_adds_noise_of_its_sigma():
    v = np.random.default_rng(3).standard_normal(2000)
    norm = np.linalg.norm(v)
    np.testing.assert_allclose(received(compressors["clip"](norm / 4), v, at()).dense(), v / 4, rtol=1e-14)
    np.testing.assert_array_equal(received(compressors["clip"](2 * norm), v, at()).dense(), v)
    np.testing.assert_array_equal(received(compressors["clip"](1.0), 0 * v, at()).dense(), 0 * v)
    assert np.linalg.norm(received(compressors["clip"](1e-200), 1e200 * v, at()).dense()) == pytest.approx(1e-200)
    noise = [received(compressors["clip"](norm, noise=0.5), v, at(k)).dense() - v for k in range(2)]
    assert np.std(noise[0]) == pytest.approx(0.5, rel=5 / 2000**0.5)
    assert np.corrcoef(noise)[0, 1] == pytest.approx(0, abs=5 / 2000**0.5)
    assert np.all(np.isnan(compressors["clip"](1.0).compress(np.array([1.0, np.nan]), at()).dense()[1:]))


def test_core_sends_projections_and_reads_them_back_along_the_same_vectors():
    """Written out with NumPy; the mean of messages is the message of the mean, and m floats cross whatever d is."""
    d, C = 30, compressors["core"](m=4)
    a = np.random.default_rng(2).standard_normal((3, d))
    sent = [C.compress(a[i], at(1, i)) for i in range(3)]
    ξ = np.random.Generator(np.random.Philox(key=sent[0].seed)).standard_normal((4, d))
    np.testing.assert_allclose(sent[1].dense(), ξ.T @ (ξ @ a[1]) / 4, rtol=1e-12)
    np.testing.assert_allclose(Averager(d).mean(sent).dense(), C.compress(a.mean(axis=0), at(1, 0)).dense(), rtol=1e-12, atol=1e-14)
    assert len({c.seed for c in sent}) == 1
    assert codecs["seeded"](float=32).encode(sent[0]).size == 4 + 4 * 4


def test_the_mean_of_sketches_is_the_sketch_of_the_mean():
    d, C = 30, compressors["count-sketch"](columns=7, rows=3)
    a = np.random.default_rng(2).standard_normal((4, d))
    sketches = [C.compress(a[i], at(1, i)) for i in range(4)]
    together = Sketch(d, np.mean([c.table for c in sketches], axis=0), sketches[0].seed)
    np.testing.assert_allclose(Averager(d).mean(sketches).dense(), together.dense(), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(C.compress(a.mean(axis=0), at(1)).table, together.table, rtol=1e-13, atol=1e-15)
    message = linked(C, d, {"name": "seeded", "float": 32}).pack(a[0], at(1))
    assert message.raw.size == 4 + 4 * 21
    one = C.compress(np.eye(1, d, 4)[0], at(1)).dense()
    assert one[4] == 1.0  # of a lone coordinate every row says the same


def test_blocks_compress_each_block_on_its_own():
    v = np.array([1.0, 5.0, 2.0, -0.1, 0.3, 0.2, 7.0])
    C = compressors.build({"name": "blocks", "of": {"name": "top-k", "k": 1}, "sizes": [3, 3, 1]}, "up")
    np.testing.assert_array_equal(received(C, v, at()).dense(), [0, 5, 0, 0, 0.3, 0, 7])
    assert C.delta(7) == pytest.approx(1 / 3)
    assert received(C, v, at()).sparse().indices.tolist() == [1, 4, 6]
    halves = compressors.build({"name": "blocks", "of": {"name": "dithering", "levels": 2}, "slices": 2}, "up")
    assert halves.lengths(7) == [3, 4]
    assert halves.omega(7) == max(halves.each.omega(3), halves.each.omega(4))
    parts = [received(halves.each, block, at()) for block in (v[:3],)]
    assert received(halves, v, at()).parts[0].scale == parts[0].scale
    apart = [linked(halves.each, size).pack(np.ones(size), at()).raw.size for size in (3, 4)]
    assert linked(halves, 7).pack(np.ones(7), at()).raw.size == sum(apart)
    perm = compressors.build({"name": "blocks", "of": "perm-k", "slices": 2}, "up").among(3)
    assert perm.omega(9) == 2.0
    perm.check(9)


def chain(first, then, **more):
    return compressors.build({"name": "chain", "first": first, "then": then, **more}, "up")


def test_a_chain_quantises_the_values_that_are_kept_and_no_others():
    """As the two do it apart: the same coordinates, the same draws, and the sum of the bytes without the floats."""
    v, top = np.random.default_rng(3).standard_normal(1000), {"name": "top-k", "k": 100}
    kept, quantiser = compressors["top-k"](k=100).compress(v, at()), compressors["dithering"](levels=4)
    C = chain(top, {"name": "dithering", "levels": 4})
    link, wanted = linked(C, 1000, {"name": "chain", "float": 32}), np.zeros(1000)
    wanted[kept.indices] = quantiser.compress(kept.values, at()).dense()
    message = link.pack(v, at())
    seen = link.unpack(batch_of(message.raw))
    np.testing.assert_allclose(seen.dense(), wanted, rtol=1e-7)
    assert message.raw.size == (1 + 125) + (4 + 50)  # T and 100 indices of 10 bits, the norm and 100 fields of 1 + 3 bits
    assert link.paper_bits(seen) == 100 * 10 + (32 + 100 * 4)
    assert (C.delta(1000), C.omega(1000), coordinates_sent(C, 1000)) == (None, None, 100)  # ω₂ = min(100/64, √100/4) > 1
    np.testing.assert_allclose(chain(top, {"name": "dithering", "levels": 4}, shrunk=True).delta(1000), 0.1 / (1 + 100 / 64))
    by_seed = chain({"name": "unisp", "kappa": 0.5, "shared_seed": True}, "natural").compress(v, at())
    assert linked(chain({"name": "unisp", "kappa": 0.5, "shared_seed": True}, "natural"), 1000).encode(by_seed).raw.size < 8 + 3 + 600
    assert linked(chain({"name": "hard-threshold", "threshold": 9.0}, "natural"), 1000).pack(v, at()).raw.tolist() == [0]


def test_a_chain_of_unbiased_parts_is_unbiased_and_a_shrunk_one_is_not():
    first, then = {"name": "random-k", "k": 10}, {"name": "qsgd", "levels": 2}
    assert chain(first, then).omega(40) == pytest.approx(4 * (1 + 10 / 16) - 1)
    assert (chain(first, then).unbiased(40), chain(first, then, shrunk=True).unbiased(40)) == (True, False)
    assert (chain(first, then, shrunk=True).omega(40), chain(first, then, shrunk=True).delta(40)) == (None, None)
    assert chain("perm-k", "natural").among(5).omega(40) == 5 * 9 / 8 - 1


def test_blocks_that_do_not_fit_the_vector_are_refused():
    for table, says in (({"sizes": [2, 2]}, "add up to 4"), ({"slices": 9}, "slices = 9 are more")):
        with pytest.raises(ValueError, match=says):
            compressors.build({"name": "blocks", "of": "natural", **table}, "up").check(5)


@pytest.mark.parametrize(("name", "kind", "known", "data", "says"), [
    ("packed", Powers, {"fraction": 0}, [32, 0, 0, 0, 0], "no width"),
    ("packed", Powers, {"fraction": 0}, [3, 0, 4, 0, 0], "2^1024 is no float"),
    ("packed", Powers, {"fraction": 0}, [3, 255, 3, 254, 255], "the largest number is 1"),
    ("packed", Powers, {"fraction": 0}, [3, 0], "an exponent needs"),
    ("packed", Dithered, {"most": 4}, [0] * 8 + [14, 0], "a field holds 7; the largest number is 4"),
    ("packed", BlockSigns, {"block": 2}, [0] * 8, "an array of signs needs 1 bytes; there are 0"),
    ("packed", BlockSigns, {"block": 1}, [0] * 9, "floats"),
    ("seeded", Permuted, {"parts": 4}, [0, 0, 0, 0, 4], "no count up to 3"),
    ("seeded", Permuted, {"parts": 4}, [0, 0], "a seed needs"),
    ("seeded", Sketch, {"rows": 1, "columns": 2}, [0] * 19, "floats"),
])  # fmt: skip
def test_bytes_that_were_never_written_are_refused(name, kind, known, data, says):
    with pytest.raises(CorruptMessage, match=naming(says)):
        codecs[name]().decode(np.array(data, dtype=np.uint8), 0, 2 if kind is not Sketch else 9, kind, known)


def test_they_serve_other_programs_too():
    v = np.random.default_rng(7).standard_normal(100)
    for table in ("natural", {"name": "perm-k", "n": 1}, {"name": "blocks", "of": {"name": "block-sign"}, "slices": 3}):
        c = coder(table, float=32)
        data = c.encode(v, 1)
        assert c.decode(data, 100).shape == (100,)
        assert c.bits(v, 1) == 8 * len(data)
