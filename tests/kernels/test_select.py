"""Selection by magnitude is exact, whatever the vector: the NumPy twin sorts all of it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.kernels import hits, select
from mpi_compress.kernels.threshold import reaching, reaching_of_rows
from mpi_compress.messages.compressors.largest import HardThreshold, TopK

T0 = Round(0, Streams(0), Role.WORKER)
ANY = st.floats(width=64)
FEW = st.sampled_from([0.0, -0.0, 1.0, -1.0, 5e-324, np.inf, -np.inf, np.nan])


def twin(v, k):
    """The k largest |v_j|: NaN before infinity before numbers, ties to the lowest index."""
    order = np.lexsort((np.arange(v.size), -np.where(np.isnan(v), np.inf, np.abs(v)), ~np.isnan(v)))
    return np.sort(order[:k])


@given(st.data(), st.sampled_from([ANY, FEW]), st.integers(1, 60))
@settings(max_examples=150, deadline=None)
def test_the_largest_are_those_that_a_sort_finds(data, values, d):
    v = data.draw(arrays(np.float64, d, elements=values))
    v[np.isnan(v)] = np.nan  # one kind of NaN: others are ordered by their payload
    k = data.draw(st.integers(0, d + 1))
    indices, taken, ends = select.largest(v[None], k)
    assert ends.tolist() == [indices.size]
    np.testing.assert_array_equal(indices, twin(v, k))
    np.testing.assert_array_equal(taken, v[indices])


def largest(v, k):
    """The indices of the k largest magnitudes of one vector."""
    return select.largest(v[None], k)[0]


@given(st.data(), st.sampled_from([ANY, FEW]), st.integers(1, 40), st.integers(1, 6))
@settings(max_examples=100, deadline=None)
def test_each_row_has_the_largest_of_its_own_in_a_number_of_its_own(data, values, d, m):
    vs = data.draw(arrays(np.float64, (m, d), elements=values))
    vs[np.isnan(vs)] = np.nan
    counts = np.array(data.draw(st.lists(st.integers(0, d + 1), min_size=m, max_size=m)))
    indices, taken, ends = select.largest(vs, counts)
    each = [twin(v, k) for v, k in zip(vs, counts, strict=True)]
    np.testing.assert_array_equal(indices, np.concatenate(each))
    np.testing.assert_array_equal(taken, np.concatenate([v[at] for v, at in zip(vs, each, strict=True)]))
    assert ends.tolist() == np.cumsum([at.size for at in each]).tolist()


def vectors(d):
    rng = np.random.default_rng(d)
    return {
        "normal": rng.standard_normal(d),
        "heavy": rng.standard_cauchy(d) ** 3,
        "negative": -rng.random(d),
        "few values": rng.integers(-2, 3, d) * 1.0,
        "constant": np.full(d, -3.0),
        "zero": np.zeros(d),
        "spike": np.r_[np.zeros(d - 1), 1.0],
        "rising": np.sort(rng.random(d)),
        "falling": -np.sort(-rng.random(d)),
        "denormal": 5e-324 * rng.integers(0, 1000, d),
        "periodic": np.arange(d) % 64 * 1.0,
        "NaN": np.where(rng.random(d) < 0.01, np.nan, rng.standard_normal(d)),
        "infinite": np.where(rng.random(d) < 0.9, -np.inf, 1.0),
        "all NaN": np.full(d, np.nan),
        "two clusters": np.where(rng.random(d) < 0.5, 1 + 1e-15 * rng.integers(0, 9, d), 2 + 1e-15 * rng.integers(0, 9, d)),
    }


@pytest.mark.parametrize("d", [1, 2, 33, 511, 2047, 2048, 5000, 40_000])
def test_samples_and_blocks_do_not_change_what_is_selected(d):
    for name, v in vectors(d).items():
        for k in {1, 2, 16, 17, d // 100, d // 10, d // 2, d - 1, d}:
            if 0 < k <= d:
                np.testing.assert_array_equal(largest(v, k), twin(v, k), err_msg=f"{name}, k = {k}")


def test_a_sample_that_misleads_costs_time_and_changes_nothing():
    """All large values sit where the sample looks, or where it does not."""
    d, k = 50_000, 500
    seen = select._sample(np.arange(d, dtype=np.float64).view(np.int64), d >> 6).view(np.float64).astype(int)
    for where in (seen, np.setdiff1d(np.arange(d), seen)):
        v = np.random.default_rng(0).random(d)
        v[where] += 1
        for count in (20, k, 10 * k):
            np.testing.assert_array_equal(largest(v, count), twin(v, count))


@pytest.mark.parametrize("k", [1, 100, 257, 2000, 4999, 5000])
def test_the_radix_selection_is_that_of_a_sort(k):
    for name, v in vectors(5000).items():
        keys = np.abs(v).view(np.int64)
        assert select.kth_largest(keys.copy(), k) == np.sort(keys)[-k], name


@pytest.mark.parametrize("k", [5, 400])
def test_a_strided_vector_is_read_as_it_is(k):
    v = np.random.default_rng(0).standard_normal((4000, 3))[:, 1]
    level = np.sort(np.abs(v))[-k]
    np.testing.assert_array_equal(TopK(k).compress(v, T0).indices, twin(v, k))
    np.testing.assert_array_equal(HardThreshold(level).compress(v, T0).indices, np.flatnonzero(np.abs(v) >= level))


def test_take_is_indexing():
    v, at = np.arange(5.0), np.array([1, 4], dtype=np.uint32)
    out = np.empty(2)
    hits.take(v, at, out)
    np.testing.assert_array_equal(out, v[at])


@given(arrays(np.float64, st.integers(0, 200), elements=st.one_of(ANY, FEW)), st.floats(0.0, 10.0))
def test_what_reaches_a_threshold_is_that_of_numpy(v, threshold):
    indices, values = np.empty(v.size, dtype=np.uint32), np.empty(v.size)
    n = reaching(v, threshold, indices, values)
    wanted = np.flatnonzero(~(np.abs(v) < threshold))
    np.testing.assert_array_equal(indices[:n], wanted)
    np.testing.assert_array_equal(values[:n], v[wanted])


@pytest.mark.parametrize("d", [1, 31, 32, 2047, 2048, 2081, 10_007])
@pytest.mark.parametrize("kept", [0.0, 0.001, 0.1, 1.0])
def test_a_long_vector_gives_hard_threshold_what_numpy_finds(d, kept):
    v = np.random.default_rng(d).standard_normal(d)
    threshold = max(float(np.quantile(np.abs(v), 1 - kept)), 1e-300)
    found = HardThreshold(threshold).compress(v, T0)
    wanted = np.flatnonzero(np.abs(v) >= threshold)
    np.testing.assert_array_equal(found.indices, wanted)
    np.testing.assert_array_equal(found.values, v[wanted])


@pytest.mark.parametrize("d", [1, 63, 64, 200, 5000])
def test_what_reaches_a_threshold_is_found_row_after_row(d):
    vs = np.random.default_rng(d).standard_normal((5, d))
    vs[2, d // 2] = np.nan
    for threshold in (0.0, 1.0, 2.5, 99.0):
        each = [np.flatnonzero(~(np.abs(v) < threshold)) for v in vs]
        indices, values, ends = reaching_of_rows(vs, threshold)
        np.testing.assert_array_equal(indices, np.concatenate(each))
        np.testing.assert_array_equal(values, np.concatenate([v[found] for v, found in zip(vs, each, strict=True)]))
        assert ends.tolist() == np.cumsum([found.size for found in each]).tolist()


@pytest.mark.parametrize("few", [[], [3], [2, 1], [5, 4, 3, 2, 1], [4, 0, 4, 1, 0]], ids=str)
def test_few_numbers_are_sorted_and_nothing_before_them_is_read(few):
    numbers = np.array(few, dtype=np.int64)
    with np.errstate(all="ignore"):
        select._sort.__wrapped__(numbers)  # as Python, in which an index before the first is an error
    assert numbers.tolist() == sorted(few)
