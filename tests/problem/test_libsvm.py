"""LIBSVM text against scikit-learn's reader and Python's float: the same bits, and the first wrong line named."""

import io
import lzma
import math
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from mpi_compress.core.errors import UserError
from mpi_compress.problem.datasets import libsvm
from mpi_compress.problem.datasets.lines import parsed_line

FOLDER = Path(os.environ.get("MPI_COMPRESS_DATA", "absent"))
SETS = sorted(file for file in FOLDER.glob("*.xz") if not file.name.startswith("deep"))

DIGITS = st.text("0123456789", min_size=0, max_size=25)
DECIMALS = st.builds("{}{}{}{}{}".format, st.sampled_from(["", "-", "+"]), DIGITS, st.sampled_from(["", "."]), DIGITS, st.sampled_from(
    ["", "e0", "E+5", "e-7", "e22", "e23", "e-22", "e-23", "e-320", "e308", "e400", "e-99999", "e", "e+", "E-", "e99999999999999999999"]
))  # fmt: skip
NUMBERS = st.one_of(st.floats(allow_nan=False, allow_infinity=False).map(repr), st.integers(-(10**20), 10**20).map(str), DECIMALS)
ODD = st.sampled_from(["nan", "inf", "1_0", "0x1p3", "1:2", ":", "qid:3", "1,2", "é", "--1", "1\0", "1e5\v", ".", ""])
BLANKS = st.sampled_from([" ", "  ", "\t", " \r", "\x0b", "\f "])
INDICES = st.one_of(st.integers(-1, 40).map(str), st.sampled_from(["+7", "007", "2147483647", "2147483648", "1" * 30, "1.0"]))


def complaint_about(line, dim):
    try:
        parsed_line(line, dim)
    except ValueError as error:
        return str(error)


def parsed(text: bytes, dim=None):
    return libsvm._parsed(libsvm.Block(0, text), Path("file"), dim)[1:]


def by_scikit_learn(text: bytes):
    return load_svmlight_file(io.BytesIO(text), zero_based=False)


def assert_equal_bits(ours, theirs):
    (a, y), (b, z) = ours, theirs
    assert a.shape == b.shape
    np.testing.assert_array_equal(y.view(np.int64), z.view(np.int64))
    np.testing.assert_array_equal(a.data.view(np.int64), b.data.view(np.int64))
    np.testing.assert_array_equal(a.indices, b.indices)
    np.testing.assert_array_equal(a.indptr, b.indptr)


@given(st.lists(NUMBERS, min_size=1, max_size=20))
@settings(max_examples=300)
def test_a_number_is_the_nearest_float(texts):
    """Python's float is; a number that is none for it, or overflows there, is refused."""
    for text in texts:
        line = f"{text} 3:{text}".encode()
        try:
            want = float(text)
        except ValueError:
            want = math.nan
        if math.isfinite(want):
            samples, labels = parsed(line)
            assert samples.data.tobytes() == labels.tobytes() == np.float64(want).tobytes()
        else:
            with pytest.raises(UserError, match=r"^file:1: "):
                parsed(line)


@pytest.mark.parametrize("text", [
    "9007199254740992", "9007199254740993", "9007199254740993e0", "90071992547409910e-1", "1e22", "1e23", "123456789012345678901234567890",
    "9223372036854775807", "9223372036854775808", "0.1", "0.30000000000000004", "2.2250738585072011e-308", "4.9e-324", "2e-324", "-0", "0e999",
    "8.41e21", "9007199254740992e22", "0.000000000000000000000000000001", "1.7976931348623158e308", "179769313486231570e291", "1.e1", ".5",
])  # fmt: skip
def test_a_number_that_is_hard_to_round_is_the_nearest_float(text):
    samples, labels = parsed(f"{text} 1:{text}".encode())
    assert samples.data.tobytes() == labels.tobytes() == np.float64(float(text)).tobytes()


@given(st.data())
@settings(max_examples=300)
def test_lines_are_read_as_scikit_learn_reads_them_or_the_first_wrong_one_is_named(data):
    def token():
        return data.draw(st.one_of(NUMBERS, NUMBERS, NUMBERS, ODD))

    def line(kind):
        if kind < 2:
            return data.draw(st.sampled_from(["", "  ", "# only a comment", "\r", "1 qid:7 2:1#tail", "1#2:3", "1 2:3 # 1:nan"]))
        sep = partial(data.draw, BLANKS)
        indices = sorted(data.draw(st.sets(st.integers(1, 60), max_size=5))) if kind < 9 else data.draw(st.lists(INDICES, max_size=3))
        return token() + "".join(f"{sep()}{i}:{token()}" for i in indices) + data.draw(st.sampled_from(["", " ", "#x", " # 1:y"]))

    text = "\n".join(line(kind) for kind in data.draw(st.lists(st.integers(0, 9), max_size=6))).encode()
    text += data.draw(st.sampled_from([b"", b"\n"]))
    dim = data.draw(st.sampled_from([None, None, 40]))
    wrong = [(at, complaint) for at, line in enumerate(text.split(b"\n"), 1) if (complaint := complaint_about(line, dim))]
    if wrong:
        with pytest.raises(UserError) as refusal:
            parsed(text, dim)
        assert str(refusal.value) == "file:{}: {}".format(*wrong[0])
    else:
        assert_equal_bits(parsed(text, dim), by_scikit_learn(text))


@pytest.mark.parametrize("threads", [1, 3])
def test_the_first_wrong_line_is_named_whatever_block_it_is_in(tmp_path, monkeypatch, threads):
    file = tmp_path / "long"
    lines = [f"1 {i}:{i}.5" for i in range(1, 200)]
    lines[120], lines[122], lines[180] = "1 7:1e999", "1 3", "x"
    file.write_text("\n".join(lines))
    monkeypatch.setattr(libsvm, "BLOCK_BYTES", 60)
    monkeypatch.setattr(libsvm, "_threads", lambda path, parts: threads)
    with pytest.raises(UserError, match=rf"^{file}:121: value '1e999' of index 7 is not a finite number$"):
        list(libsvm.read_blocks(file))
    file.write_text("\n".join(lines[:120]))
    labels = [labels.size for _, _, labels in libsvm.read_blocks(file)]
    assert sum(labels) == 120
    assert len(labels) > 10


@pytest.mark.slow
@pytest.mark.parametrize("file", SETS, ids=lambda file: file.stem)
def test_real_sets_are_read_bit_for_bit_as_by_scikit_learn(file):
    text = lzma.decompress(file.read_bytes())
    assert_equal_bits(parsed(text), by_scikit_learn(text))
