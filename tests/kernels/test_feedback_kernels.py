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
def test_squares_of_a_vector_and_of_rows(v, data):
    v = with_something_in_it(data, v)
    np.testing.assert_equal(kernels.squares(v), squares(v))
    np.testing.assert_equal(kernels.squares_of_rows(np.stack([v, 0.5 * v])), [squares(v), squares(0.5 * v)])


@given(st.lists(hard(most=200, largest_exponent=20), min_size=1, max_size=4), st.data())
def test_what_was_sent_is_taken_out_of_rows_as_out_of_each(vectors, data):
    dim = min(v.size for v in vectors)
    vs = np.stack([v[:dim] for v in vectors])
    sets = [np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=dim, max_size=dim))).astype(np.uint32) for _ in vs]
    chosen = [np.float32(v[some]).astype(np.float64) for v, some in zip(vs, sets, strict=True)]
    ends = np.cumsum([some.size for some in sets], dtype=np.int64)
    before, wanted, (left, corrected) = vs.copy(), vs.copy(), np.empty((2, len(vs)))
    kernels.take_out_of_rows(np.concatenate(sets), np.concatenate(chosen), ends, vs, left, corrected)
    for r, (some, values) in enumerate(zip(sets, chosen, strict=True)):
        wanted[r, some] -= values
        assert left[r] == squares(wanted[r])
        np.testing.assert_allclose(corrected[r], squares(before[r]), rtol=1e-9, atol=1e-300)
        alone = before[r].copy()
        of_some = kernels.take_out(some, values, alone)
        assert alone.tobytes() == wanted[r].tobytes()
        np.testing.assert_allclose(of_some, [np.sum(before[r, some] ** 2), np.sum(wanted[r, some] ** 2)], rtol=1e-12)
    assert vs.tobytes() == wanted.tobytes()
    sizes, step, sent = np.full((len(vs), 4), 0.25), np.arange(1.0, len(vs) + 1), np.linspace(0, 1, len(vs))
    kernels.note(sizes, step, corrected, left, sent)
    np.testing.assert_array_equal(sizes, np.stack([step**2 * left, 0.25 + step**2 * left, sent, corrected], axis=1))
