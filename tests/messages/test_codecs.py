import sys
from dataclasses import fields
from math import ceil, log2
from pathlib import Path

import numpy as np
import pytest
from helpers.halves import bfloat16
from helpers.kinds import KINDS, cut, index_set, known_of, lattice, messages, same
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))
from bits_table import entropy, of_sets

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import kernel, sets
from mpi_compress.kernels.sets import put_set
from mpi_compress.messages import kinds
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.fields import Reader, counts
from mpi_compress.messages.kinds import Dense, Drawn, Hybrid, Lattice, Levels, SignSparse, Sparse, Ternary, stacked

INDEX_CODECS = ("fixed", "bitmap", "rice", "elias-delta", "elias-omega", "entropy")
HALVES = (16, "bf16")
FLOATS = (*HALVES, 32, 64)
NAMES = {*INDEX_CODECS, "ternary", "gspar-hybrid", "lattice", "dense", "auto", "packed", "seeded", "blocks", "chain", "eigenpairs"}


def decoded(codec, c, data=None, at=0):
    return codec.decode(codec.encode(c) if data is None else data, at, c.dim, type(c), known_of(c))


def set_bits(codec, indices, dim):
    """The wire's bits for an index set, the number of indices included and the values not."""
    return 8 * (codec.encode(Sparse(dim, indices, np.zeros(indices.size))).size - 8 * indices.size)


def test_the_names_are_those_that_jobs_use():
    assert set(codecs) == NAMES


def test_every_kind_has_a_codec_and_every_codec_a_kind():
    for kind in KINDS:
        assert any(codecs[name]().writes(kind) for name in NAMES - {"auto"})
        assert codecs["auto"]().writes(kind)
    for name in NAMES:
        assert any(codecs[name]().writes(kind) for kind in KINDS)


@pytest.mark.parametrize("name", sorted(NAMES))
@pytest.mark.parametrize("dim", [1, 2, 13, 1000])
@pytest.mark.parametrize("bits", FLOATS)
def test_what_is_decoded_is_what_was_encoded_and_two_in_a_row_too(name, dim, bits):
    codec = codecs[name](float=bits)
    for c in messages(dim, np.random.default_rng(dim), digits=8 if bits in HALVES else 24):
        if not codec.writes(type(c)):
            continue
        one = codec.encode(c)
        assert one.dtype == np.uint8
        assert one.size > 0
        two = np.concatenate([one, one])
        first, end = decoded(codec, c, two)
        second, last = decoded(codec, c, two, end)
        assert (end, last) == (one.size, two.size)
        assert same(first, second)
        if name == "auto" and isinstance(first, Dense):
            assert np.array_equal(first.dense(), c.dense())
        else:
            assert same(first, c)


numbers = st.floats(allow_nan=True, allow_infinity=True, width=32)


@given(st.data(), st.sampled_from(INDEX_CODECS), st.sampled_from(FLOATS), st.integers(1, 300))
def test_any_sparse_vector_comes_back(data, name, bits, dim):
    indices = np.array(sorted(data.draw(st.sets(st.integers(0, dim - 1)))), dtype=np.uint32)
    width = 16 if bits == 16 else 32
    values = np.array([data.draw(st.floats(width=width)) for _ in indices])
    if bits == "bf16":
        values = bfloat16(cut(values, 8))
    c = Sparse(dim, indices, values)
    got, _ = decoded(codecs[name](float=bits), c)
    assert same(got, c)


@given(
    st.lists(st.integers(-(2**31) + 1, 2**31 - 1), min_size=1, max_size=60),
    numbers,
    st.sampled_from(["elias-delta", "elias-omega", "entropy"]),
)
def test_any_levels_come_back(levels, scale, name):
    c = Levels(np.array(levels, dtype=np.int32), np.full(-(-len(levels) // 7), scale), 7)
    assert same(decoded(codecs[name](float=32), c)[0], c)


@given(st.lists(st.integers(-1, 1), min_size=1, max_size=60), numbers, st.sampled_from(["ternary", "entropy"]))
def test_any_signs_come_back(signs, magnitude, name):
    c = Ternary(np.array(signs, dtype=np.int8), magnitude)
    assert same(decoded(codecs[name](float=32), c)[0], c)


@given(
    st.lists(st.one_of(st.integers(-(2**61), 2**61), st.integers(-3, 3)), min_size=1, max_size=40),
    st.floats(1e-14, 2),
    st.booleans(),
    st.booleans(),
)
def test_any_lattice_points_come_back_even_where_the_radius_was_exceeded(integers, share, sent, stochastic):
    c = Lattice(np.array(integers, dtype=np.int64), share * 3.0, 3.0, sent, stochastic)
    assert same(decoded(codecs["lattice"](), c)[0], c)


def test_values_are_rounded_to_the_codecs_floats_and_rounding_again_changes_nothing():
    c = Sparse(9, np.array([3, 5], dtype=np.uint32), np.array([0.1, 1e-310]))
    for name in INDEX_CODECS:
        got, _ = decoded(codecs[name](float=32), c)
        assert np.array_equal(got.values, c.values.astype(np.float32))
        assert same(decoded(codecs[name](float=32), got)[0], got)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_finite_value_that_overflows_is_refused(name):
    T = np.arange(2, dtype=np.uint32)
    one = np.ones(2, dtype=bool)
    huge = 1e39
    for c in (
        Dense(np.array([1.0, huge])),
        Sparse(2, T, np.array([1.0, -huge])),
        SignSparse(2, T, one, huge),
        Hybrid(2, T[:1], np.array([huge]), T[1:], one[1:], 1.0),
        Hybrid(2, T[:1], np.array([1.0]), T[1:], one[1:], huge),
        Levels(np.ones(2, dtype=np.int32), np.array([huge]), 2),
        Ternary(np.ones(2, dtype=np.int8), huge),
        Lattice(np.ones(2, dtype=np.int64), huge / 9, huge, radius_sent=True),
    ):
        if codecs[name]().writes(type(c)):
            with pytest.raises(OverflowError, match="32 bits"):
                codecs[name](float=32).encode(c)
            assert same(decoded(codecs[name](float=64), c)[0], c) or name == "auto"


def rounded(values, bits):
    """Values as floats of a codec, by NumPy."""
    with np.errstate(all="ignore"):
        if bits != "bf16":
            return np.asarray(values).astype(f"f{bits // 8}").astype(float)
    return bfloat16(values)


def of_any_values(dim, rng):
    """Messages of every kind that has floats, with values that no format of fewer than 64 bits has."""
    values = rng.normal(size=dim) * 10.0 ** rng.integers(-9, 4, dim)
    indices, negative = np.arange(dim, dtype=np.uint32), rng.random(dim) < 0.5
    half = dim // 2
    yield Dense(values), {"values"}
    yield Sparse(dim, indices, values), {"values"}
    yield SignSparse(dim, indices, negative, values[0]), {"magnitude"}
    yield Hybrid(dim, indices[:half], values[:half], indices[half:], negative[half:], values[-1]), {"values", "magnitude"}
    yield Drawn(dim, 3, 1.0, values), {"values"}
    yield Levels(rng.integers(-3, 4, dim).astype(np.int32), values[: -(-dim // 3)], 3), {"scales"}
    yield Ternary(negative.astype(np.int8), values[1]), {"magnitude"}


def stated(c):
    """What the fields of a kind hold."""
    return {field.name: getattr(c, field.name) for field in fields(c)}


@pytest.mark.parametrize("name", sorted(NAMES - {"lattice"}))
@pytest.mark.parametrize("bits", FLOATS)
def test_every_float_of_a_message_is_rounded_once_and_the_rest_of_it_is_not(name, bits):
    codec = codecs[name](float=bits)
    for c, floats in of_any_values(60, np.random.default_rng(8)):
        if codec.writes(type(c)):
            got, _ = decoded(codec, c)
            expected = {field: rounded(value, bits) if field in floats else value for field, value in stated(c).items()}
            assert np.array_equal(got.dense(), type(c)(**expected).dense())
            assert codec.encode(got).tobytes() == codec.encode(c).tobytes() or name == "auto"
            if isinstance(c, Levels | SignSparse | Ternary):
                assert same(got, type(c)(**expected))


@pytest.mark.parametrize("bits", HALVES)
@pytest.mark.parametrize("share", [1e-3, 0.3])
@pytest.mark.parametrize("radius", [1e-9, 3e-8, 0.1, 6.1e-5, 1.0001, 65503.9])
def test_a_radius_is_rounded_up_so_that_it_still_bounds_the_vector(bits, share, radius):
    c = lattice(np.full(9, radius / 3), share * radius, radius, sent=True)
    got, _ = decoded(codecs["lattice"](float=bits), c)
    form = codecs["lattice"](float=bits).float_format
    assert radius <= got.radius <= max(radius * (1 + 2 * form.u), radius + form.u * 2 * form.least)
    assert got.radius == rounded(got.radius, bits)
    assert np.array_equal(got.integers, c.integers)


def test_a_radius_that_no_float_bounds_is_refused():
    for bits, largest, text in (
        (16, 65504.0, 'use float = "bf16", 32 or 64'),
        (32, float(np.finfo(np.float32).max), "use float = 64"),
    ):
        c = Lattice(np.ones(2, dtype=np.int64), largest / 9, np.nextafter(largest, np.inf), radius_sent=True)
        with pytest.raises(OverflowError, match=f"overflows a float of {bits} bits; {text}"):
            codecs["lattice"](float=bits).encode(c)


@pytest.mark.parametrize(("bits", "value", "text"), [
    (16, 65520.0, 'a value of magnitude 65520 overflows a float of 16 bits; use float = "bf16", 32 or 64'),
    (16, -1e39, "a value of magnitude 1e\\+39 overflows a float of 16 bits; use float = 64"),
    ("bf16", 3.4e38, "a value of magnitude 3.4e\\+38 overflows a bfloat16; use float = 32 or 64"),
    (32, 1e39, "a value of magnitude 1e\\+39 overflows a float of 32 bits; use float = 64"),
])  # fmt: skip
def test_what_is_refused_says_which_floats_would_do(bits, value, text):
    for name in sorted(NAMES - {"lattice"}):
        codec = codecs[name](float=bits)
        T = np.arange(2, dtype=np.uint32)
        for c in (Dense(np.array([1.0, value])), Sparse(2, T, np.array([value, 1])), Ternary(np.ones(2, dtype=np.int8), value)):
            if codec.writes(type(c)):
                with pytest.raises(OverflowError, match=f"^{text}$"):
                    codec.encode(c)
        rows = [c for c in (Sparse(2, T[:1], np.array([each])) for each in (1.0, value, 1e300)) if codec.writes(Sparse)]
        if rows:
            with pytest.raises(OverflowError, match=f"^{text}$"):
                codec.write(stacked(rows))


def rows_of(codec, dim, rng):
    """Rows that a codec writes by one call, with what both ends know, and each alone."""
    alike = {}
    for c in messages(dim, rng, digits=8):
        if codec.writes(type(c)):
            alike.setdefault((type(c), repr(known_of(c))), []).append(c)
    for each in alike.values():
        rows = stacked(each)
        yield rows, each
        yield stacked(each[::-1]), each[::-1]
        yield stacked(each[:1]), each[:1]


@pytest.mark.parametrize("name", sorted(NAMES))
@pytest.mark.parametrize("dim", [1, 13, 300])
@pytest.mark.parametrize("bits", FLOATS)
def test_the_messages_of_rows_are_the_messages_one_by_one(name, dim, bits):
    codec = codecs[name](float=bits)
    for rows, each in rows_of(codec, dim, np.random.default_rng(dim)):
        data, ends = codec.write(rows)
        assert data.size >= ends[-1] + 8
        assert data[: ends[-1]].tobytes() == b"".join(codec.encode(c).tobytes() for c in each)
        assert np.diff(ends, prepend=0).tolist() == [codec.encode(c).size for c in each]
        r = Reader(data, ends - np.diff(ends, prepend=0), codec.float_format, ends)
        read = codec.read(r, dim, type(each[0]), known_of(each[0]))
        assert np.array_equal(r.at, ends)
        assert len(read) == len(each)
        for i, c in enumerate(each):
            assert same(read[i], decoded(codec, c)[0])
        assert codec.paper_bits(read).tolist() == [codec.paper_bits(decoded(codec, c)[0]) for c in each]


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_row_that_nobody_wrote_is_refused_whatever_stands_beside_it(name):
    """Rows whose last bytes are cut off, so that the next row begins too early: never are other rows' bytes taken for them."""
    codec, rng = codecs[name](), np.random.default_rng(3)
    for rows, each in rows_of(codec, 40, rng):
        data, ends = codec.write(rows)
        starts, refused = ends - np.diff(ends, prepend=0), 0
        for i in range(len(each)):
            short = ends.copy()
            short[i] -= 1
            with pytest.raises(CorruptMessage):
                codec.read(Reader(data, starts.copy(), codec.float_format, short), 40, type(each[0]), known_of(each[0]))
            refused += 1
        assert refused == len(each)


@pytest.mark.parametrize("name", INDEX_CODECS)
def test_no_rows_have_no_bytes(name):
    codec, none = codecs[name](), np.empty(0, dtype=np.int64)
    data, ends = codec.write(Sparse(9, np.empty(0, dtype=np.uint32), np.empty(0), none))
    assert (data.size >= 8, ends.size) == (True, 0)
    assert len(codec.read(Reader(data, none, codec.float_format), 9, Sparse, {})) == 0


@pytest.mark.parametrize("T", [10, 100, 1000, 10_000])
def test_the_entropy_coder_writes_random_sets_near_their_entropy(T):
    rng = np.random.default_rng(T)
    d = 47_236
    mean = np.mean([set_bits(codecs["entropy"](), index_set(rng, d, T), d) for _ in range(100)])
    assert mean <= 1.02 * of_sets(d, T) + 16


def test_the_entropy_coder_goes_far_below_the_random_sets_entropy_where_sets_are_clustered():
    d, rng = 47_236, np.random.default_rng(0)
    starts = index_set(rng, d // 50, 20) * np.uint32(50)
    indices = (starts[:, None] + np.arange(40, dtype=np.uint32)).ravel()
    assert set_bits(codecs["entropy"](), indices, d) < 0.25 * of_sets(d, indices.size)
    popular = np.unique(np.minimum(rng.zipf(1.3, 2000), d) - 1).astype(np.uint32)
    assert set_bits(codecs["entropy"](), popular, d) < 0.8 * of_sets(d, popular.size)


@kernel
def bytes_of(way, indices, dim, digits, out):
    return put_set(way, indices, dim, digits, out)


@pytest.mark.parametrize("name", INDEX_CODECS)
def test_a_codec_knows_the_length_of_a_set(name):
    for dim, T in ((1, 0), (1, 1), (100, 30), (5000, 10), (5000, 4990)):
        c, codec = Sparse(dim, index_set(np.random.default_rng(T), dim, T), np.zeros(T)), codecs[name]()
        digits, out = np.empty(20 * T + 64, dtype=np.uint16), np.empty(20 * T + dim + 64, dtype=np.uint8)
        length = bytes_of(codec.way, c.indices, dim, digits, out)
        assert not isinstance(codec.way, int) or sets.set_bytes(codec.way, c.indices, dim, digits, out) == length
        assert length == codec.encode(c).size - 8 * T - counts(np.array([T]))[1][0]
        assert codec.planned_bytes(Sparse, T, dim) in (None, codec.encode(c).size)


@pytest.mark.parametrize("skew", [(1, 1, 1), (1, 4, 1), (1, 50, 1), (5, 1, 1), (0, 1, 1)])
def test_signs_take_at_most_log2_3_and_a_hundredth_and_by_entropy_within_2_percent_of_it(skew):
    d = 10_000
    signs = np.random.default_rng(1).choice([-1, 0, 1], d, p=np.array(skew) / sum(skew)).astype(np.int8)
    c = Ternary(signs, 1.0)
    assert 8 * (codecs["ternary"](float=32).encode(c).size - 4) <= (log2(3) + 0.01) * d
    assert 8 * codecs["entropy"](float=32).encode(c).size <= 1.02 * entropy(signs) + 48


@pytest.mark.parametrize(
    ("d", "s"), [(10_000, 4), (10_000, 16), (10_000, 100), (10_000, 1000), (200_000, 16), (200_000, 1000), (200_000, 100_000)]
)
def test_qsgds_integers_are_within_2_percent_of_their_entropy(d, s):
    rng = np.random.default_rng(s)
    v = rng.normal(size=d)
    levels = np.floor(np.abs(v) / np.linalg.norm(v) * s + rng.random(d)).astype(np.int32) * np.sign(v).astype(np.int32)
    c = Levels(levels, np.array([1.0]), d)
    assert 8 * codecs["entropy"](float=32).encode(c).size <= 1.02 * entropy(levels) + 48


@pytest.mark.parametrize("s", [1, 30])
def test_qsgds_elias_message_is_no_longer_than_its_paper_counts(s):
    levels = np.rint(np.random.default_rng(2).normal(size=3000) * s).astype(np.int32)
    c = Levels(levels, np.ones(3), 1000)
    assert 8 * codecs["elias-omega"](float=32).encode(c).size <= c.paper_bits(32) + 8 + 16 + 7


def worst_vectors(d: int, rng):
    """Unit vectors that are hard to write: flat, one spike, half flat, random, heavy tails."""
    yield np.full(d, 1 / np.sqrt(d))
    yield np.where(np.arange(d) % 2, 1, -1) / np.sqrt(d)
    yield np.eye(1, d)[0]
    half = np.arange(d) < max(1, d // 2)
    yield half / np.sqrt(half.sum())
    for v in (rng.normal(size=d), rng.standard_cauchy(d)):
        yield v / np.linalg.norm(v)


LEMMA = [(d, share) for d in (1, 2, 3, 10, 100, 1000, 10_000) for share in 10.0 ** np.arange(-10, 0.1, 0.5)]
LARGE = [(10**6, share) for share in (1e-10, 1e-7, 1e-4, 3e-4, 1e-3, 2.0e-3, 0.01, 0.1, 0.5, 0.99, 1)]


@pytest.mark.parametrize(("d", "share"), [*LEMMA, *(pytest.param(*p, marks=pytest.mark.slow) for p in LARGE)])
@pytest.mark.parametrize("sent", [False, True])
@pytest.mark.parametrize("stochastic", [False, True])
def test_every_lattice_message_keeps_to_lemma_2_1(d, share, sent, stochastic):
    rng = np.random.default_rng(3)
    radius = 7.3
    sigma = share * radius
    bound = kinds.lattice_bits(d, sigma, radius, stochastic) + 64 + 32 + 64 * sent
    codec = codecs["lattice"]()
    for v in worst_vectors(d, rng):
        c = lattice(v * radius * (1 - 1e-15), sigma, radius, sent, stochastic)
        if stochastic and sigma < radius:
            step = 2 * sigma / np.sqrt(d)
            c = Lattice(np.floor(v * radius / step + rng.random(d)).astype(np.int64), sigma, radius, sent, stochastic)
        message = codec.encode(c)
        assert 8 * (4 + message.size) <= bound
        assert d >= 10**6 or same(decoded(codec, c, message)[0], c)


def test_an_uneven_vector_takes_fewer_bits_than_the_lemma_allows():
    d = 10_000
    v = np.random.default_rng(4).normal(size=d) * np.where(np.arange(d) < d / 10, 1, 0.01)
    c = lattice(v, 1e-3 * np.linalg.norm(v), float(np.linalg.norm(v)))
    assert 8 * codecs["lattice"]().encode(c).size < 0.65 * c.paper_bits(64)


def test_a_message_of_a_vector_within_sigma_is_one_byte():
    assert codecs["lattice"]().encode(Lattice(np.zeros(10**5, dtype=np.int64), 2.0, 1.5)).size == 1


def test_a_vector_that_is_not_finite_reaches_the_receiver_or_is_refused():
    c = Lattice(np.zeros(5, dtype=np.int64), 1.0, float("inf"), radius_sent=True)
    got, _ = decoded(codecs["lattice"](float=32), c)
    assert not got.is_finite()
    with pytest.raises(OverflowError, match="no lattice"):
        codecs["lattice"]().encode(Lattice(np.ones(5, dtype=np.int64), 0.0, 1.0))


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
def test_gspars_message_keeps_to_its_papers_length_and_the_signs(share):
    d, rng = 2048, np.random.default_rng(5)
    indices = index_set(rng, d, int(share * d))
    s = np.sort(rng.permutation(indices.size)[: indices.size // 4])
    r = np.setdiff1d(np.arange(indices.size), s)
    c = Hybrid(d, indices[s], rng.normal(size=s.size), indices[r], rng.random(r.size) < 0.5, 1.0)
    spare = 8 + 7 * 4 + 32  # the form, padding of two sets, signs and string, two counts
    assert 8 * codecs["gspar-hybrid"](float=32).encode(c).size <= c.paper_bits(32) + r.size * (c.paper_bits(32) < 2 * d) + spare
    if share == 0.9:
        assert codecs["gspar-hybrid"](float=32).encode(c).size < codecs["fixed"](float=32).encode(c).size


def test_auto_is_never_more_than_a_byte_longer_than_any_other_codec():
    for dim in (1, 30, 3000):
        for c in messages(dim, np.random.default_rng(6)):
            best = min(codecs[name]().encode(c).size for name in NAMES - {"auto"} if codecs[name]().writes(type(c)))
            assert codecs["auto"]().encode(c).size <= best + 1


def test_quick_auto_is_the_shortest_of_the_plain_ones():
    d, rng = 5000, np.random.default_rng(7)
    for T in (0, 10, 1000, 4000, 5000):
        c = Sparse(d, index_set(rng, d, T), rng.normal(size=T))
        plain = [codecs[name]().encode(c).size for name in ("fixed", "bitmap", "rice")]
        message = codecs["auto"](search="quick").encode(c)
        assert message.size <= 1 + min(*plain, 8 * d)
        assert np.array_equal(decoded(codecs["auto"](), c, message)[0].dense(), c.dense())


def test_paper_bits_follow_the_codecs_settings():
    c = Sparse(1000, np.arange(5, dtype=np.uint32), np.ones(5))
    assert codecs["fixed"](float=32).paper_bits(c) == 5 * (32 + kinds.index_bits(1000))
    for half in HALVES:
        assert codecs["fixed"](float=half).paper_bits(c) == 5 * (16 + kinds.index_bits(1000))
        assert codecs["ternary"](float=half).paper_bits(Ternary(np.ones(9, dtype=np.int8), 1.0)) == 16 + 9 * log2(3)
        assert codecs["dense"](float=half).encode(Dense(np.ones(7))).size == 14
        for name in ("fixed", "bitmap"):
            assert codecs[name](float=half).planned_bytes(Sparse, 5, 1000) == codecs[name](float=half).encode(c).size
    assert codecs["rice"](indices="free").paper_bits(c) == 5 * 64
    assert codecs["entropy"](element_bits=5).paper_bits(c) == 5000


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(0, 2**32))
def test_fixed_takes_what_its_paper_counts_a_count_and_padding(dim, seed):
    rng = np.random.default_rng(seed)
    T = int(rng.integers(0, dim + 1))
    c = Sparse(dim, index_set(rng, dim, T), rng.normal(size=T))
    assert codecs["fixed"]().encode(c).size == 1 + ceil(c.paper_bits(64) / 8)
