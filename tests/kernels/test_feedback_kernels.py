"""Kernels of error feedback beside NumPy twins, equal to the last bit: their sums have a written order."""

import numpy as np
import pytest
from helpers.vectors import hard
from hypothesis import given
from hypothesis import strategies as st

from mpi_compress.kernels import feedback as kernels

ANY = hard(most=200, largest_exponent=160)


def squares(v):
    """32 sums of every 32nd square, folded, then the rest one by one."""
    whole = v.size - v.size % 32
    lanes = np.zeros(32)
    for block in v[:whole].reshape(-1, 32):
        lanes += block * block
    while lanes.size > 1:
        lanes = lanes[: lanes.size // 2] + lanes[lanes.size // 2 :]
    total = lanes[0]
    for a in v[whole:]:
        total += a * a
    return total


def with_something_in_it(data, v):
    """v with a NaN or an infinity, once in a while."""
    if data.draw(st.integers(0, 3)) == 0:
        v[data.draw(st.integers(0, v.size - 1))] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    return v


@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value")
@given(ANY, st.data())
def test_squares_and_whether_all_are_below(v, data):
    v = with_something_in_it(data, v)
    total = squares(v)
    np.testing.assert_equal(kernels.squares(v), total)
    largest = np.max(np.abs(v))
    for threshold in (largest, np.nextafter(largest, np.inf), 2 * largest, 0.5 * largest, 1e-300):
        below, sizes = bool(np.all(np.abs(v) < threshold)), np.zeros(4)
        assert kernels.is_silent(v, threshold, 1.0, sizes) == (below and threshold > 0)
        np.testing.assert_equal(sizes, [total, total, 0, total] if below and threshold > 0 else np.zeros(4))


@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value")
@given(ANY, st.booleans(), st.sampled_from([0.0, 1e-3, 1.0, 1e200]), st.integers(1, 4), st.data())
def test_errors_grow_by_gradients_less_their_shifts(g, shifted, threshold, m, data):
    g = np.stack([with_something_in_it(data, g * 0.5**i) for i in range(m)])
    h = 0.3 * g[:, ::-1].copy() if shifted else np.empty((m, 0))
    e = np.stack([np.linspace(-1, 1, g.shape[1])] * m)
    wanted = e + (g - h if shifted else g)
    alone, sizes, own = e.copy(), np.full((m, 4), 0.25), np.full((m, 4), 0.25)
    silent = np.empty(m, dtype=np.bool_)
    kernels.grow_all(e, g, h, threshold, 0.5, sizes, silent)
    for i in range(m):
        below = threshold > 0 and bool(np.all(np.abs(wanted[i]) < threshold))
        assert silent[i] == below
        assert kernels.grow(alone[i], g[i], h[i], threshold, 0.5, own[i]) == below
        size = squares(wanted[i])
        np.testing.assert_equal(sizes[i], [0.25 * size, 0.25 + 0.25 * size, 0.0, size] if below else 0.25)
    np.testing.assert_equal(own, sizes)
    np.testing.assert_equal(e, wanted)
    np.testing.assert_equal(alone, wanted)


@given(st.lists(hard(most=200, largest_exponent=20), min_size=1, max_size=4), st.data())
def test_what_was_sent_is_taken_out_of_rows_as_out_of_each(vectors, data):
    dim = min(v.size for v in vectors)
    vs = np.stack([v[:dim] for v in vectors])
    rows = np.array(data.draw(st.lists(st.integers(0, len(vs) - 1), unique=True)), dtype=np.int64)
    sets = [np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=dim, max_size=dim))).astype(np.uint32) for _ in rows]
    indices = np.concatenate([np.empty(0, dtype=np.uint32), *sets])
    values = np.concatenate([np.empty(0), *(np.float32(vs[r][s]) for r, s in zip(rows, sets, strict=True))])
    ends = np.cumsum([s.size for s in sets], dtype=np.int64)
    wanted, alone, start = vs.copy(), vs.copy(), 0
    sizes, own = np.zeros((len(vs), 4)), np.zeros((len(vs), 4))
    kernels.take_out_of_rows(indices, values, ends, rows, vs, 0.5, sizes)
    for r, row in enumerate(rows):
        chosen = values[start : ends[r]]
        start = ends[r]
        before = squares(wanted[row])
        wanted[row, sets[r]] -= chosen
        kernels.take_out_and_note(sets[r], chosen, alone[row], 0.5, own[row])
        error, total, density, corrected = sizes[row]
        assert error == total == 0.25 * squares(wanted[row])
        assert density == sets[r].size / dim
        np.testing.assert_allclose(corrected, before, rtol=1e-9, atol=1e-300)
    assert np.array_equal(vs, wanted)
    assert np.array_equal(alone, wanted)
    assert np.array_equal(sizes, own)
