"""From text to rows on disk: what is read, how it is dealt and scaled, and that neither blocks nor damage change it."""

import errno
import gzip
import lzma
import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import h5py
import numpy as np
import pytest
from helpers.running import BIN, PATIENT
from sklearn.datasets import load_svmlight_file

import mpi_compress as mc
from mpi_compress.core.errors import UserError
from mpi_compress.job.loading import parse_job
from mpi_compress.problem.datasets import libsvm, opening
from mpi_compress.problem.datasets.cache import replace
from mpi_compress.problem.datasets.store import cached_file, open_data, open_test
from mpi_compress.problem.datasets.table import DataTable
from mpi_compress.problem.partitions import Split, partitions

TEXT = "".join(
    f"{'+1' if i % 3 else '-1'} " + " ".join(f"{j}:{(i * j) % 7 - 2.5}" for j in range(1 + i % 4, 30, 3 + i % 5)) + "\n"
    for i in range(200)
)


def opened(path, partition="contiguous", seed=0, labels="sign", **keys):
    split = Split(partitions.build(partition, "workers.partition"), 1, seed)
    return open_data(DataTable(path=str(path), **keys), path.parent, split, labels)


def arrays(data):
    """All rows as one array (N, d), and the labels."""
    rows = data.read(0, data.n_samples)
    if len(rows.matrix) == 1:
        return rows.matrix[0], rows.labels
    indptr, indices, values = rows.matrix
    out = np.zeros((len(rows), data.dim), dtype=values.dtype)
    for i in range(len(rows)):
        span = slice(int(indptr[i]), int(indptr[i + 1]))
        out[i, indices[span]] = values[span]
    return out, rows.labels


@pytest.fixture
def text(tmp_path):
    file = tmp_path / "small"
    file.write_text(TEXT)
    return file


@pytest.mark.parametrize("block", [7, 77, 2**24])
def test_blocks_of_any_size_give_the_same_file(text, monkeypatch, block):
    want = opened(text, "shuffled", 78).file.read_bytes()
    opened(text, "shuffled", 78).file.unlink()
    monkeypatch.setattr(libsvm, "BLOCK_BYTES", block)
    assert opened(text, "shuffled", 78).file.read_bytes() == want


def test_ranks_that_share_the_parsing_give_the_file_of_one_process(text, tmp_path):
    script = tmp_path / "convert.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\nfrom mpi4py import MPI\nfrom mpi_compress.problem.datasets import libsvm, store\n"
        "from mpi_compress.problem.partitions import Split, partitions\n"
        "from mpi_compress.exchange.ranks import ranks_of\nlibsvm.BLOCK_BYTES = 997\n"
        "data = store.open_data(store.DataTable(path=sys.argv[1]), Path('.'), Split(partitions['shuffled'](), 2, 1),\n"
        "    'sign', ranks_of(MPI.COMM_WORLD))\n"
        "assert data.read(0, 200).labels.size == 200\n"
    )
    want = opened(text, "shuffled", 1).file
    content = want.read_bytes()
    want.unlink()
    line = [BIN / "mpiexec", "-n", "3", sys.executable, "-m", "mpi4py", script, text]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENT)
    assert (done.returncode, done.stderr) == (0, "")
    assert want.read_bytes() == content
    assert not list(want.parent.glob(f"{want.name}.*"))  # nothing is left of the way there


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_rows_are_those_that_scikit_learn_reads(tmp_path, suffix):
    file = tmp_path / f"small{suffix}"
    {"": open, ".gz": gzip.open, ".xz": lzma.open}[suffix](file, "wb").write(TEXT.encode())
    (tmp_path / "plain").write_text(TEXT)
    want, labels = load_svmlight_file(str(tmp_path / "plain"), zero_based=False)
    ours, signs = arrays(opened(file))
    np.testing.assert_array_equal(ours, want.toarray())
    np.testing.assert_array_equal(signs, labels)


def test_real_sets_are_read_whole(real_data, tmp_path):
    data = open_data(DataTable(name="a9a"), tmp_path, Split(), "sign")
    assert (data.n_samples, data.dim, data.nonzeros) == (32561, 123, 451592)
    _, labels = arrays(data)
    assert (labels > 0).sum() == 7841


def test_rows_are_dealt_as_the_partition_says(text):
    plain, labels = arrays(opened(text))
    shuffled, shuffled_labels = arrays(opened(text, "shuffled", 4))
    order = np.random.default_rng([4, 200]).permutation(200)
    np.testing.assert_array_equal(shuffled, plain[order])
    np.testing.assert_array_equal(shuffled_labels, labels[order])
    sorted_rows, sorted_labels = arrays(opened(text, "by-label"))
    np.testing.assert_array_equal(sorted_rows, np.concatenate([plain[labels < 0], plain[labels > 0]]))
    assert np.all(np.diff(sorted_labels) >= 0)


@pytest.mark.parametrize("how", ["rows", "columns"])
@pytest.mark.parametrize("partition", ["contiguous", "shuffled"])
def test_normalized_rows_or_columns_have_unit_norm(text, how, partition):
    plain, _ = arrays(opened(text, partition, rows=150, dim=40))
    ours, _ = arrays(opened(text, partition, rows=150, dim=40, normalize=how))
    norms = np.linalg.norm(plain, axis=1 if how == "rows" else 0, keepdims=True)
    np.testing.assert_allclose(ours, plain / np.where(norms > 0, norms, 1), rtol=1e-14)
    assert ours.shape == (150, 40)


def test_normalizing_survives_squares_that_overflow(tmp_path):
    (tmp_path / "large").write_text("1 1:3e200 2:4e200\n-1 1:3e-200\n")
    for how in ("rows", "columns"):
        ours, _ = arrays(opened(tmp_path / "large", normalize=how))
        np.testing.assert_allclose(ours[0], [0.6, 0.8] if how == "rows" else [1.0, 1.0], rtol=1e-14)


def test_float32_values_are_rounded_once(text):
    plain, _ = arrays(opened(text, normalize="rows"))
    short, _ = arrays(opened(text, normalize="rows", dtype="float32"))
    np.testing.assert_array_equal(short, plain.astype(np.float32))


@pytest.mark.parametrize("damage", ["truncated", "one byte", "text", "empty", "another format"])
def test_a_damaged_cache_is_built_again(text, damage):
    data = opened(text)
    want = data.file.read_bytes()
    broken = bytearray(want)
    broken[len(want) * 3 // 4] ^= 1
    half = want[: len(want) // 2]
    data.file.write_bytes({"truncated": half, "one byte": bytes(broken), "text": b"no HDF5"}.get(damage, b""))
    if damage == "another format":
        data.file.unlink()
        with h5py.File(data.file, "w") as h5:
            h5["labels"] = np.ones(3)
    assert opened(text).file.read_bytes() == want


def test_too_little_address_space_is_named_and_no_other_cache_asked_for(text, monkeypatch):
    """As under `ulimit -v`, where mmap fails with ENOMEM."""
    monkeypatch.setattr("mmap.mmap", Mock(side_effect=OSError(errno.ENOMEM, "Cannot allocate memory")))
    with pytest.raises(MemoryError, match=r"^1.6e-06 GB of .* cannot be mapped; `ulimit -v` "):
        opened(text, "shuffled", 77)


@pytest.mark.parametrize("d", [29, 90])
def test_mapped_rows_are_those_that_are_read_and_what_is_written_to_them_stays_here(d, text, monkeypatch):
    data = opened(text, dim=d)
    kept, want = data.file.read_bytes(), arrays(data)
    monkeypatch.setattr(opening, "MAPPED_FROM", 0)
    rows, shards = data.read(0, 200), data.shards_together(range(3), 3)
    assert all(np.shares_memory(rows.matrix[-1], shard.matrix[-1]) for shard in shards), "mapped once"
    assert [a.tobytes() for a in arrays(data)] == [a.tobytes() for a in want]
    rows.matrix[-1][:] = 0.0
    assert data.file.read_bytes() == kept


def test_a_changed_file_is_parsed_again(text):
    before = opened(text)
    text.write_text(TEXT.replace("+1", "2"))
    assert opened(text).file != before.file


def test_nothing_is_left_of_a_conversion_that_fails(tmp_path):
    (tmp_path / "bad").write_text("1 1:1\n" * 100 + "x\n")
    with pytest.raises(UserError, match=r"bad:101: "):
        opened(tmp_path / "bad")
    folder = cached_file(DataTable(path=str(tmp_path / "bad")), tmp_path, Split(), "sign").parent
    assert not list(folder.glob("bad-*"))


class TestTestSets:
    """A test set is treated as the training set was."""

    def pair(self, tmp_path, train, test, **keys):
        (tmp_path / "train").write_text(train)
        (tmp_path / "test").write_text(test)
        table = DataTable(path=str(tmp_path / "train"), test="test", **keys)
        data = open_data(table, tmp_path, Split(), "sign")
        return data, open_test(table, tmp_path, data)

    def test_labels_mean_the_same(self, tmp_path):
        _, test = self.pair(tmp_path, "1 1:1\n2 1:2\n3 2:1\n", "3 1:1\n3 1:1\n1 1:1\n", positive=[3.0])
        assert arrays(test)[1].tolist() == [1, 1, -1]
        _, test = self.pair(tmp_path, "4 1:1\n2 1:2\n", "2 1:1\n2 1:1\n")
        assert arrays(test)[1].tolist() == [-1, -1]  # a test set may have one class only

    def test_dimension_and_column_norms_are_those_of_training(self, tmp_path):
        data, test = self.pair(tmp_path, "1 1:3 5:2\n-1 1:4\n", "1 1:10 2:7\n", normalize="columns")
        assert test.dim == data.dim == 5
        np.testing.assert_allclose(arrays(test)[0], [[2, 7, 0, 0, 0]])  # column 2 was zero: left as it is

    def test_rows_are_scaled_alike(self, tmp_path):
        _, test = self.pair(tmp_path, "1 1:3 2:4\n-1 1:4\n", "1 1:6 2:8\n", normalize="rows")
        np.testing.assert_allclose(arrays(test)[0], [[0.6, 0.8]])

    def test_a_label_or_an_index_that_training_has_not_is_refused(self, tmp_path):
        with pytest.raises(UserError, match=r"label 7, and the training set has -1, 1"):
            self.pair(tmp_path, "1 1:1\n-1 1:1\n", "7 1:1\n")
        with pytest.raises(UserError, match=r"test:2: index 9 is above d = 1"):
            self.pair(tmp_path, "1 1:1\n-1 1:1\n", "1 1:1\n1 9:1\n")


def test_least_squares_fit_the_labels_as_they_are_or_the_two_classes_that_positive_makes(tmp_path):
    (tmp_path / "three").write_text("1 1:1\n2 1:1\n3 1:1\n1 2:1\n")
    losses = []
    for more in ({}, {"positive": [2, 3]}):
        tables = {
            "data": {"path": "three", **more}, "objective": {"loss": "least-squares"}, "algorithm": {"name": "gd"},
            "stop": {"rounds": 1},
        }
        (run,) = mc.run(parse_job(tables, "fit", tmp_path, {}), out=tmp_path)
        losses.append(run.trace["loss"][0])
    assert losses == [(1 + 4 + 9 + 1) / 8, 1 / 2]


def test_two_threads_that_write_one_file_at_once_both_get_through(tmp_path):
    """Jobs that one process reads side by side take note of the same data set's digest."""
    both = threading.Barrier(2, timeout=PATIENT)

    def fill(part):
        part.write_text("whole")
        both.wait()

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(replace, tmp_path / "folder" / "note", fill) for _ in range(2)]:
            done.result()
    assert [file.read_text() for file in tmp_path.rglob("*note*")] == ["whole"]


def test_users_with_one_cache_can_write_to_what_others_made_in_it(tmp_path, monkeypatch):
    """The folder of the cache says who may: what is made in it, and nothing else, has its permissions."""
    cache, own = tmp_path / "cache", tmp_path / "own"
    cache.mkdir()
    cache.chmod(0o2775)
    monkeypatch.setenv("MPI_COMPRESS_CACHE", str(cache))
    before = os.umask(0o077)
    try:
        for file in (cache / "data" / "sets" / "a", own / "a"):
            replace(file, lambda part: part.write_text("rows"))
    finally:
        os.umask(before)
    modes = {file: stat.S_IMODE(file.stat().st_mode) for file in (cache / "data", cache / "data" / "sets", cache / "data" / "sets" / "a")}
    assert [*modes.values()] == [0o2775, 0o2775, 0o664]
    assert [stat.S_IMODE(file.stat().st_mode) for file in (own, own / "a")] == [0o700, 0o600]
