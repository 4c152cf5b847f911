"""Coding kernels against plain Python."""

import numpy as np
import pytest
from helpers.halves import bfloat16
from helpers.kinds import index_set, omega
from hypothesis import given
from hypothesis import strategies as st

from mpi_compress.kernels import adaptive, bits, elias, floats, gaussian, kernel, range_coder, rice, ternary
from mpi_compress.messages.formats import FORMATS

u = np.uint64


def bit_string(data) -> str:
    """The bits of a stream, the first one first."""
    return "".join(map(str, np.unpackbits(data, bitorder="little")))


@pytest.mark.parametrize("width", [*range(33)])
def test_fields_are_packed_lowest_bit_first_and_come_back(width):
    rng = np.random.default_rng(width)
    for count in (0, 1, 7, 100):
        fields = rng.integers(0, 2**width, count, dtype=np.uint64).astype(np.uint32)
        out = np.empty((count * width + 7) // 8, dtype=np.uint8)
        assert bits.write_fields(fields, width, out) == out.size
        wanted = "".join(f"{f:0{width}b}"[::-1] for f in fields) if width else ""
        assert bit_string(out)[: count * width] == wanted
        back = np.empty(count, dtype=np.uint32)
        bits.read_fields(np.concatenate([np.zeros(1, dtype=np.uint8), out, np.zeros(8, dtype=np.uint8)]), 8, width, 2**width, back)
        assert np.array_equal(back, fields)


def test_a_window_holds_57_bits_or_more_and_zeros_beyond_the_end():
    data = np.random.default_rng(0).integers(0, 256, 11, dtype=np.uint8)
    number = int.from_bytes(data.tobytes(), "little")
    for bit in range(120):
        assert int(bits.window(data, u(bit))) & (2**57 - 1) == (number >> bit) & (2**57 - 1)
    assert bits.window(data, u(2**40)) == 0


def delta(n: int) -> int:
    """The length of Elias' delta code."""
    length = n.bit_length()
    return 2 * (length.bit_length() - 1) + length


@given(st.integers(1, 2**32 - 1), st.integers(0, 2**20))
def test_elias_words_have_elias_lengths_and_are_read_back_whatever_follows(n, rest):
    for code, read, length in (
        (elias.delta_code, elias.read_delta, delta(n)),
        (elias.omega_code, elias.read_omega, len(omega(n))),
    ):
        word, nbits = code(u(n))
        assert nbits == length
        assert read(u(int(word) | rest << length)) == (n, length)


@given(st.integers(0, 2**64 - 1))
def test_elias_readers_take_any_word(word):
    for read in (elias.read_delta, elias.read_omega):
        n, length = read(u(word))
        assert n < 2**32
        assert length <= 57


@pytest.mark.parametrize(("dim", "count"), [(1, 1), (100, 10), (100, 97), (2**31, 40), (50_000, 3000)])
def test_the_rice_parameter_is_the_best_and_the_length_that_of_the_code(dim, count):
    indices = index_set(np.random.default_rng(3), dim, count) if dim < 10**6 else np.arange(count, dtype=np.uint32) ** 5
    gaps = np.diff(indices.astype(np.int64), prepend=-1) - 1
    lengths = [int(np.sum(gaps >> k)) + count * (k + 1) for k in range(32)]
    k, nbits = rice.best_parameter(indices)
    assert nbits == lengths[k] == min(lengths)
    out = np.empty((nbits + 7) // 8, dtype=np.uint8)
    rice.write_set(indices, u(k), out)
    code = "".join("0" * (g >> k) + "1" + (f"{g & (2**k - 1):0{k}b}"[::-1] if k else "") for g in map(int, gaps))
    assert bit_string(out)[:nbits] == code


@pytest.mark.parametrize("k", [0, 3, 31])
def test_rice_codes_of_any_parameter_are_read_back(k):
    indices = np.array([0, 1, 2, 70, 3000], dtype=np.uint32)
    out = np.zeros(600, dtype=np.uint8)
    rice.write_set(indices, u(k), out)
    back = np.empty_like(indices)
    end = rice.read_set(out, 0, u(k), 3001, back)
    assert np.array_equal(back, indices)
    assert end == sum(int(g) >> k for g in np.diff(indices.astype(np.int64), prepend=-1) - 1) + 5 * (k + 1)
    assert rice.read_set(out, 0, u(k), 3000, back) == rice.CORRUPT


def test_ternary_blocks_are_base_3_numbers():
    signs = np.random.default_rng(4).integers(-1, 2, (2, 40)).astype(np.int8)
    out, stops = np.empty(2 * 8 + 8, dtype=np.uint8), np.empty(2, dtype=np.int64)
    ternary.put_digits(signs, 10, out, stops)
    assert stops.tolist() == [8, 16]
    for row, data in zip(signs, (out[:8], out[8:16]), strict=True):
        number = int.from_bytes(data.tobytes(), "little")
        for start, width in ((0, 27), (17, 27), (34, 10)):
            block = sum(int(s + 1) * 3**i for i, s in enumerate(row[start : start + 17]))
            assert number & (2**width - 1) == block
            number >>= width
    back = np.empty_like(signs)
    assert ternary.take_digits(out, np.array([0, 8]), 10, back)
    assert np.array_equal(back, signs)
    assert not ternary.take_digits(np.full(24, 255, dtype=np.uint8), np.array([0, 8]), 10, back)


def test_two_sets_share_an_index_where_numpy_finds_a_common_one():
    rng = np.random.default_rng(5)
    for _ in range(100):
        a, b = ([index_set(rng, 30, rng.integers(0, 8)) for _ in range(3)] for _ in range(2))
        common = [np.intersect1d(one, other).size > 0 for one, other in zip(a, b, strict=True)]
        ends = [np.cumsum([each.size for each in held]) for held in (a, b)]
        found = bits.shared_index(np.concatenate(a), ends[0], np.concatenate(b), ends[1])
        assert found == (common.index(True) if any(common) else -1)


def test_flags_are_packed_as_numpy_packs_them():
    rng = np.random.default_rng(6)
    for count in (0, 1, 7, 8, 9, 100):
        flags = rng.random(count) < 0.5
        out = np.empty((count + 7) // 8, dtype=np.uint8)
        assert bits.write_flags(flags, out) == out.size
        assert out.tobytes() == np.packbits(flags, bitorder="little").tobytes()
        back = np.empty(count, dtype=np.bool_)
        assert bits.read_flags(np.concatenate([[np.uint8(9)], out]), 1, back) == 1 + out.size
        assert np.array_equal(back, flags)


def test_floats_are_numpys_and_overflow_is_refused():
    values = np.array([0.0, -0.0, 1.1, -1e-300, 5e-324, np.inf, np.nan, 3e38])
    for nbits, precision in ((32, 24), (64, 53)):
        out = np.empty(8 * nbits // 8, dtype=np.uint8)
        assert floats.put_floats(values, precision, out)
        with np.errstate(under="ignore"):
            assert out.tobytes() == values.astype(f"<f{nbits // 8}").tobytes()
        back = np.empty(8)
        floats.take_floats(out, 0, precision, back)
        assert np.array_equal(back, np.frombuffer(out, f"<f{nbits // 8}"), equal_nan=True)
    for value in (3.5e38, -1e300):
        assert not floats.put_floats(np.array([1.0, value]), 24, np.empty(8, dtype=np.uint8))


@kernel
def coded_number(value, nbits, data, state):
    return range_coder.code_number(value, nbits, data, state)


@given(st.lists(st.tuples(st.integers(0, 2**20 - 1), st.integers(20, 32)), max_size=40), st.binary(max_size=12))
def test_the_range_coder_ends_within_two_bytes_of_what_it_holds_whatever_follows(numbers, rest):
    digits, out = np.empty(400, dtype=np.uint16), np.empty(400, dtype=np.uint8)
    state = range_coder.BEGUN
    for value, nbits in numbers:
        state = tuple(map(u, coded_number(u(value), u(nbits), digits, state)[1]))
    length = range_coder.settle(digits, state, out)
    assert 8 * length <= sum(nbits for _, nbits in numbers) + 16
    data = np.concatenate([out[:length], np.frombuffer(rest, dtype=np.uint8), np.zeros(8, dtype=np.uint8)])
    state = tuple(map(u, range_coder.begun(data, 0)))
    for value, nbits in numbers:
        got, state = coded_number(u(0), u(nbits), data, state)
        state = tuple(map(u, state))
        assert got == value
    assert range_coder.end_of(data, state) == length


def test_carries_run_through_any_number_of_digits():
    digits, out = np.full(20, 0xFF, dtype=np.uint16), np.empty(20, dtype=np.uint8)
    digits[1:3] = 0x12, 0x100  # 0x12 and, with the carry that waits, a full digit
    assert range_coder.settle(digits, (u(0), u(2**56), u(6)), out) == 6
    assert out[:6].tolist() == [0x13, 0x00, 0xFF, 0xFF, 0xFF, 0x00]


def test_the_gaussians_table_is_the_normal_distribution_with_a_share_for_all():
    from scipy.stats import norm

    for scale in (1.0, 3.7, 800.0):
        below = gaussian.cumulative(scale).astype(np.float64)
        reach = (below.size - 3) // 2
        share = np.diff(below[:-1]) / range_coder.ONE
        assert share.min() >= 1 / range_coder.ONE
        z = np.arange(-reach, reach + 1)
        exact = norm.cdf((z + 0.5) / scale) - norm.cdf((z - 0.5) / scale)
        assert np.allclose(share, exact, atol=3e-8, rtol=2e-3)
        guesses = gaussian.first_guesses(gaussian.cumulative(scale))
        for chance in np.random.default_rng(6).integers(0, int(below[-2]), 200):
            assert gaussian.find(u(chance), gaussian.cumulative(scale), guesses) == np.searchsorted(below, chance, "right") - 1


def test_sets_begin_with_the_chances_of_geometric_gaps():
    chance, seen, depth, usual = adaptive.expected_gaps(100, 10_000)
    assert usual == 7  # the bit length of d / T = 100
    assert set(seen.tolist()) == {adaptive.PRIOR}
    gaps = np.random.default_rng(7).geometric(0.01, 200_000)
    lengths = np.floor(np.log2(gaps)).astype(int)
    upper = 1 << (depth - 1)
    assert chance[1] / range_coder.ONE == pytest.approx(np.mean(lengths < upper), abs=5e-3)
    top = gaps[(gaps >= 64) & (gaps < 128)] >= 96
    assert chance[3 * adaptive.TREE + 8 * 7 + 1] / range_coder.ONE == pytest.approx(1 - top.mean(), abs=1e-2)


HALVES = pytest.mark.parametrize("precision", [11, 8], ids=["binary16", "bfloat16"])


def halves(values, precision):
    """Values written as floats of 16 bits: their bits, and whether none overflowed."""
    out = np.empty(2 * values.size, dtype=np.uint8)
    right = floats.put_floats(values, precision, out)
    return out.view("<u2"), right


def of_halves(codes, precision):
    """The floats that 16 bits mean."""
    values = np.empty(codes.size)
    floats.take_floats(codes.astype("<u2").view(np.uint8), 0, precision, values)
    return values


def by_numpy(values, precision):
    """The same floats by NumPy, as float64."""
    with np.errstate(all="ignore"):
        return values.astype(np.float16).astype(float) if precision == 11 else bfloat16(values)


def same_floats(a, b):
    """Whether two arrays are equal, the signs of zeros and infinities included, and NaN where the other is."""
    numbers = ~np.isnan(a)
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(np.signbit(a)[numbers], np.signbit(b)[numbers])


@HALVES
def test_all_floats_of_16_bits_are_read_as_numpy_reads_them_and_written_back(precision):
    codes = np.arange(2**16, dtype=np.uint32)
    with np.errstate(invalid="ignore"):
        if precision == 11:
            known = codes.astype(np.uint16).view(np.float16).astype(float)
        else:
            known = (codes << np.uint32(16)).view(np.float32).astype(float)
    values = of_halves(codes, precision)
    assert same_floats(values, known)
    back, right = halves(values, precision)
    assert right
    numbers = ~np.isnan(values)
    assert np.array_equal(back[numbers], codes[numbers])
    infinity = int(codes[np.isinf(values)][0])
    assert set(back[~numbers] & 0x7FFF) == {infinity | 1 << (precision - 2)}


@HALVES
def test_values_at_between_and_beside_floats_of_16_bits_are_rounded_to_the_nearest_and_ties_to_even(precision):
    codes = np.arange(0x7C00 if precision == 11 else 0x7F80)
    exact = of_halves(codes, precision)
    ties = (exact[1:] + exact[:-1]) / 2
    last = 2 * exact[-1] - ties[-1]  # the least value that overflows
    values = np.concatenate([exact, ties, *(np.nextafter(ties, end) for end in (0, np.inf)), [np.nextafter(last, 0)]])
    for signed in (values, -values):
        written, right = halves(signed, precision)
        assert right
        assert same_floats(of_halves(written, precision), by_numpy(signed, precision))
    assert np.array_equal(halves(ties, precision)[0], codes[:-1] + codes[:-1] % 2)
    for value in (last, -last, np.nextafter(last, np.inf), 1e39, -1e300, np.finfo(float).max):
        assert not halves(np.array([1.0, value]), precision)[1]
    odd = np.array([np.inf, -np.inf, np.nan, -np.nan, 0.0, -0.0, 5e-324, -1e-310])
    written, right = halves(odd, precision)
    assert right
    assert same_floats(of_halves(written, precision), by_numpy(odd, precision))
    assert np.array_equal(written & 0x7FFF, halves(-odd, precision)[0] & 0x7FFF)


@HALVES
@given(st.lists(st.floats(allow_subnormal=True), min_size=1, max_size=20))
def test_any_value_becomes_the_float_of_16_bits_that_numpy_takes(precision, values):
    values = np.array(values)
    written, right = halves(values, precision)
    known = by_numpy(values, precision)
    assert right == np.array_equal(np.isinf(known), np.isinf(values))
    assert same_floats(of_halves(written, precision), known)


@HALVES
@given(st.floats(1.0, 2.0, exclude_max=True), st.integers(-150, 127), st.booleans())
def test_the_relative_error_is_at_most_u_in_the_normal_range_and_u_of_its_least_below(precision, digits, exponent, negative):
    form = next(f for f in FORMATS.values() if f.precision == precision)
    value = digits * 2.0**exponent * (-1 if negative else 1)
    if abs(value) <= form.largest:
        written, right = halves(np.array([value]), precision)
        assert right
        assert abs(of_halves(written, precision)[0] - value) <= form.u * max(abs(value), form.least)


def test_the_formats_are_those_of_the_standards():
    for setting, known in ((16, np.finfo(np.float16)), (32, np.finfo(np.float32)), (64, np.finfo(np.float64))):
        form = FORMATS[setting]
        assert (form.bits, form.largest, form.least, form.u) == (known.bits, known.max, known.tiny, known.eps / 2)
    form = FORMATS["bf16"]
    assert (form.bits, form.u, form.least, form.largest) == (16, 2.0**-8, FORMATS[32].least, of_halves(np.array([0x7F7F]), 8)[0])
    assert FORMATS[16].u == 2.0**-11
