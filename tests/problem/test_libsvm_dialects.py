"""A hundred LIBSVM files as people have them: read as the plain file is, or refused with the file, the line and what would do."""

import bz2
import gzip
import io
import lzma
import re
from contextlib import suppress

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from mpi_compress.cli.main import main
from mpi_compress.problem.datasets import libsvm

READ = {
    "plain": lambda t: t,
    "a blank after the colon": lambda t: t.replace(b":", b": "),
    "blanks and tabs after some colons": lambda t: t.replace(b"3:", b"3:\t  "),
    "a byte order mark": lambda t: b"\xef\xbb\xbf" + t,
    "line ends of Windows": lambda t: t.replace(b"\n", b"\r\n"),
    "a mark and line ends of Windows": lambda t: b"\xef\xbb\xbf" + t.replace(b"\n", b"\r\n"),
    "line ends of both kinds": lambda t: t.replace(b"\n", b"\r\n", 3),
    "line ends converted twice": lambda t: t.replace(b"\n", b"\r\r\n"),
    "no last line end": lambda t: t[:-1],
    "stored zeros": lambda t: t.replace(b" 3:", b" 2:0 3:").replace(b"\n", b" 9:-0.0\n"),
    "a stored zero sets d": lambda t: t.replace(b"\n", b" 40:0e5\n", 1),
    "comments": lambda t: b"# 1:x, y\n" + t.replace(b"\n", b" # 1,2:nan\n"),
    "queries": lambda t: re.sub(rb"(?m)^(\S+) ", rb"\1 qid:4 ", t),
    "blanks here and there": lambda t: t.replace(b" ", b"\t  ").replace(b"\n", b"  \n\n"),
    "signs and zeros before numbers": lambda t: re.sub(rb" (\d+):(\d)", rb" +0\1:+00\2", t),
}
REFUSED = {
    "line ends of old Macs": (lambda t: t.replace(b"\n", b"\r"), "file:1: a carriage return alone"),
    "line ends of all kinds": (lambda t: t.replace(b"\n", b"\r", 1), "file:1: a carriage return alone"),
    "old Macs and comments": (lambda t: t.replace(b"\n", b" #\r"), "file:1: a carriage return alone"),
    "several labels": (lambda t: re.sub(rb"(?m)^(\S+)", rb"\1,7", t, count=2), "file:1: '1,7' was given for a label; .* several labels"),
    "a row without a label": (lambda t: t + b" 1:2 3:4\n", "file:9: '1:2' was given for a label; each row has a label"),
    "a weight": (lambda t: re.sub(rb"(?m)^(\S+)", rb"\1:0.5", t), "file:1: '1:0.5' was given for a label; .* no weight"),
    "decimal commas": (lambda t: t.replace(b".", b","), r"file:1: '3:0,\d+' is no index:value; numbers have a decimal point"),
    "decimal commas everywhere": (lambda t: re.sub(rb"(?m)^(\S+)", rb"\1,0", t.replace(b".", b",")), "'1,0' .* a decimal point"),
    "commas between": (lambda t: b"1 1:1.5,3:2\n" + t, "file:1: '1:1.5,3:2' is no index:value"),
    "CSV": (lambda t: re.sub(rb" \d+:", b",", t), "file:1: '1,.*' was given for a label; .* converts CSV"),
    "UTF-16": (lambda t: t.decode().encode("utf-16"), "file: is UTF-16; `iconv"),
    "UTF-16, high bytes first": (lambda t: b"\xfe\xff" + t.decode().encode("utf-16-be"), "file: is UTF-16; `iconv"),
    "gzip": (gzip.compress, r"file: is compressed; .* \.gz"),
    "bzip2": (bz2.compress, r"file: is compressed; .* \.bz2"),
    "xz": (lzma.compress, r"file: is compressed; .* \.xz"),
    "indices from 0": (lambda t: t + b"1 0:1\n", "file:9: index 0; indices start at 1; docs/own-data.md converts"),
    "a blank before the colon": (lambda t: t + b"1 2 :1\n", "file:9: '2' is no index:value"),
    "nothing after the colon": (lambda t: t + b"1 2: \n", "file:9: '2:' is no index:value"),
    "a number in hexadecimal": (lambda t: t + b"1 2:0x1p3\n", "file:9: '2:0x1p3' is no index:value"),
}  # fmt: skip


def plain(seed):
    """Eight rows with features 1 and 3, and some others."""
    rng = np.random.default_rng(seed)
    rows = [f"{1 if i == 0 else rng.integers(-1, 2)} 1:{1 if i == 0 else rng.normal():.4g} 3:{rng.random():.17g}" for i in range(8)]
    return "".join(f"{row} {4 + rng.integers(5)}:{rng.integers(1, 9)}\n" for row in rows).replace("e-0", "e-").encode()


def arrays(file):
    ((_, samples, labels),) = libsvm.read_blocks(file)
    samples.eliminate_zeros()
    return samples, labels


@pytest.mark.parametrize("kind", [*READ, *REFUSED])
def test_files_of_a_kind_are_read_as_they_are_meant_or_refused_by_name(kind, tmp_path, capfd):
    for seed in range(4):
        text, file, as_meant = plain(seed), tmp_path / "file", tmp_path / "plain"
        as_meant.write_bytes(text)
        written = READ[kind](text) if kind in READ else REFUSED[kind][0](text)
        file.write_bytes(written)
        status, (out, err) = main(["data", "info", str(file)]), capfd.readouterr()
        if kind in REFUSED:
            assert (status, out, err.count("\n")) == (2, "", 1)
            assert re.search(REFUSED[kind][1], err), err
            continue
        want, y = arrays(as_meant)
        assert (status, f"  nonzeros   {want.nnz}: " in out) == (0, True)
        assert f"  features   {40 if 'sets d' in kind else 9 if 'stored' in kind else want.shape[1]}, " in out
        read = [arrays(file)]
        with suppress(ValueError):  # scikit-learn reads no blank after a colon, and no mark
            read.append(load_svmlight_file(io.BytesIO(written), zero_based=False))
        for samples, labels in read:
            np.testing.assert_array_equal(labels, y)
            np.testing.assert_array_equal(samples.toarray()[:, : want.shape[1]], want.toarray())
