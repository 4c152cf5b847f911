"""Rows are compressed as each of them alone, whatever the others are, and as plain loops over coordinates say."""

import dataclasses

import numpy as np
import pytest
from helpers.examples import COMPRESSORS
from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_compress.core.streams import Role, Round, Rounds, Streams
from mpi_compress.kernels import probabilities, quantize
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.compressors.levels import Natural

STREAMS = Streams(7)


def rows(d, seed=0):
    """Rows (m, d) of all sorts that one process could host."""
    rng = np.random.default_rng([seed, d])
    return np.array([
        rng.standard_normal(d), rng.standard_cauchy(d) ** 3, np.zeros(d), rng.integers(-2, 3, d) * 1.0, np.full(d, -3.0),
        np.r_[np.zeros(d - 1), 1.0], rng.standard_normal(d) * (rng.random(d) < 0.1), 5e-324 * rng.integers(-9, 9, d),
        np.where(rng.random(d) < 0.2, np.nan, rng.standard_normal(d)), np.where(rng.random(d) < 0.5, -np.inf, 1.0),
        rng.standard_normal(d) * 1e-200, rng.standard_normal(d) * 1e200, 0.5 ** np.arange(1.0 * d),
    ])  # fmt: skip


def held(c):
    """What a vector holds, field by field; vectors in it, too."""
    if not hasattr(c, "add_to"):
        return [held(each) for each in c] if isinstance(c, tuple | list) else c
    return {f.name: held(getattr(c, f.name)) for f in dataclasses.fields(c)}


def compressed(C, V, t):
    """C of the rows twice: the second time, draws go on where the first ones ended."""
    return C.compress_rows(V.copy(), t), C.compress_rows(V / 2, t)


@pytest.mark.parametrize("d", [1, 12, 33, 700])
@pytest.mark.parametrize("spec", COMPRESSORS, ids=str)
def test_rows_are_compressed_as_each_alone_and_draws_go_on(spec, d):
    C = compressors.build(spec, "up.compressor")
    try:
        C.check(d)
    except ValueError:
        return
    V, alone = rows(d), []
    for i, v in enumerate(V):
        t = Round(5, STREAMS, Role.WORKER, i % 3)  # the examples have n = 3 workers or more
        try:
            alone.append((i, C.compress(v, t), C.compress(v / 2, t)))
        except OverflowError:
            with pytest.raises(OverflowError):
                compressed(C, V[i : i + 1], Rounds(5, STREAMS, Role.WORKER, np.array([i % 3])))
    some = np.array([i for i, _, _ in alone])
    first, second = compressed(C, V[some], Rounds(5, STREAMS, Role.WORKER, some % 3))
    assert len(first) == len(second) == some.size
    for row, (_, one, two) in enumerate(alone):
        assert type(first[row]) is type(one)
        np.testing.assert_equal(held(first[row]), held(one))
        np.testing.assert_equal(held(second[row]), held(two))


@pytest.mark.parametrize("spec", [{"name": "qsgd", "levels": 4}, {"name": "natural"}, {"name": "stochastic", "k": 3}], ids=str)
def test_rows_are_compressed_alike_in_parts(spec):
    C, V = compressors.build(spec, "up.compressor"), rows(40)
    whole = C.compress_rows(V, Rounds(1, STREAMS, Role.WORKER, np.arange(len(V))))
    t = Rounds(1, STREAMS, Role.WORKER, np.arange(len(V)))
    for part in (slice(4, 7), slice(0, 4), slice(7, None)):
        some = C.compress_rows(V[part], t[part])
        for row, i in enumerate(range(len(V))[part]):
            np.testing.assert_equal(held(some[row]), held(whole[i]))


def bytes_and_more(rng, d):
    """The bytes for d coordinates, which are drawn first."""
    return rng.integers(0, 2**64 - 1, (d + 7) // 8, dtype=np.uint64, endpoint=True).view(np.uint8)[:d]


def rounded(v, scale, top, rng):
    """Plain loop of random rounding."""
    if not 0 < scale < np.inf:
        bytes_and_more(rng, v.size)
        return [int(scale != 0)] * v.size
    u, out, tied = bytes_and_more(rng, v.size), [], []
    for j in range(v.size):
        y = min(int(min(abs(v[j]) * (256 / scale), 1e18)), 256 * top)
        size = y // 256 + (y % 256 > u[j])
        tied += [j] if y % 256 == u[j] else []
        out.append(-size if v[j] < 0 else size)
    for j, spare in zip(tied, rng.random(len(tied)), strict=True):
        x = min(abs(v[j]) * (256 / scale), 256 * top)
        size = int(x) // 256 + (spare < x - np.floor(x))
        out[j] = -size if v[j] < 0 else size
    return out


def drawn(v, m, rng):
    """Plain loop of draws with chances min(1, |v_j|/m): the coordinates, and which are certain."""
    if not np.isfinite(v).all() or not m > 0:
        wanted = (v != 0) if np.isfinite(v).all() else ~np.isfinite(v)
        return [(j, True) for j in np.flatnonzero(wanted)]
    u, x = bytes_and_more(rng, v.size), np.minimum(np.abs(v) * (256 / m), 256.0)
    spare = iter(rng.random(int(np.sum((np.floor(x) == u) & (v != 0)))))

    def comes(j):
        return u[j] < np.floor(x[j]) or (u[j] == np.floor(x[j]) and next(spare) < x[j] - np.floor(x[j]))

    return [(j, x[j] == 256) for j in np.flatnonzero(v) if comes(j)]


@given(
    seed=st.integers(0, 1000), d=st.sampled_from([1, 7, 20, 511, 1300]), top=st.sampled_from([1, 4, 1000]), share=st.floats(0.01, 1)
)
@settings(max_examples=40, deadline=None)
def test_random_rounding_and_draws_of_rows_are_those_of_plain_loops(seed, d, top, share):
    V = rows(d, seed)[[0, 2, 3, 4, 5, 6, 8, 9]]
    who, peaks = np.arange(len(V)), probabilities.sizes_of(V).peak
    out = np.empty(V.shape, dtype=np.int64)
    quantize.round_at_random(V, (peaks / top)[:, None], d, top, out, Rounds(2, STREAMS, Role.WORKER, who))
    levels = np.where(peaks < np.inf, share * peaks, 1.0)
    found = probabilities.draw(V, probabilities.sizes_of(V), levels, Rounds(3, STREAMS, Role.WORKER, who))
    starts = np.append(0, found.ends)
    for i, v in enumerate(V):
        assert out[i].tolist() == rounded(v, peaks[i] / top, top, STREAMS.at(Role.WORKER, i, 2))
        mine = slice(starts[i], starts[i + 1])
        wanted = drawn(v, levels[i], STREAMS.at(Role.WORKER, i, 3))
        assert list(zip(found.indices[mine].tolist(), found.certain[mine].tolist(), strict=True)) == wanted


@given(seed=st.integers(0, 1000), d=st.sampled_from([1, 20, 300]), fraction=st.integers(0, 16))
@settings(max_examples=40, deadline=None)
def test_powers_of_rows_are_those_of_numpy(seed, d, fraction):
    V = rows(d, seed)
    c = Natural(fraction).compress_rows(V, Rounds(2, STREAMS, Role.WORKER, np.arange(len(V))))
    for i, v in enumerate(V):
        if not np.isfinite(v).all():
            assert not c.finite[i]
            continue
        half, exponent = np.frexp(np.abs(v))
        digits = np.ldexp(2 * half - 1, fraction)
        up = STREAMS.at(Role.WORKER, i, 2).random(d) < digits - np.floor(digits)
        sizes = np.ldexp(2.0**fraction + np.floor(digits) + up, exponent - 1 - fraction)
        np.testing.assert_array_equal(c[i].dense(), np.sign(v) * np.where(v == 0, 0, sizes))
