"""Formats of data on tiny files: what rows hold, test sets, and the one line where a file is wrong."""

import gzip
import io
import lzma
import struct
import tarfile
import zipfile
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from helpers.refusals import naming, refused

from mpi_compress.cli.main import main
from mpi_compress.core.errors import UserError
from mpi_compress.job.problems import data_table
from mpi_compress.problem.datasets.convert import Spool
from mpi_compress.problem.datasets.known import PUBLISHED, Published
from mpi_compress.problem.datasets.store import open_data, open_test
from mpi_compress.problem.datasets.table import content_id
from mpi_compress.problem.partitions import Split

RNG = np.random.default_rng(5)
IMAGES = RNG.integers(0, 256, (6, 3, 2)).astype(np.uint8)
IMAGES[:, -1, -1] = 0  # a pixel that is 0 everywhere is a feature nevertheless
LABELS = np.array([0, 1, 2, 0, 1, 2], dtype=np.uint8)
CSV = "userId,movieId,rating,timestamp\n1,50,4.0,30\n1,10,3.0,20\n2,10,1.5,5\n2,20,5.0,4\n1,30,2.0,10\n3,20,4.5,9\n2,40,1.0,3\n"
PROSE = "The cat saw the dog. The dog saw <unk> it: the cat's tail!\nÉmile ran, the dog ran."


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def cifar(labels):
    return b"".join(bytes([y]) + bytes([y]) * 1024 + bytes([100 + y]) * 1024 + bytes([200 + y]) * 1024 for y in labels)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder with a set of every format, whose sub-folder `deep` has some."""
    monkeypatch.setenv("MPI_COMPRESS_DATA", str(tmp_path))
    monkeypatch.setenv("MPI_COMPRESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    deep = tmp_path / "deep"
    (deep / "cifar-10-batches-bin").mkdir(parents=True)
    (deep / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(IMAGES)))
    (deep / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(LABELS)))
    for i, labels in enumerate(([0, 1], [2], [1], [0], [2, 9]), start=1):
        (deep / f"cifar-10-batches-bin/data_batch_{i}.bin").write_bytes(cifar(labels))
    (deep / "cifar-10-batches-bin/test_batch.bin").write_bytes(cifar([2, 0]))
    (deep / "movielens-small-ratings.csv.xz").write_bytes(lzma.compress(CSV.encode()))
    (tmp_path / "austen.txt.xz").write_bytes(lzma.compress(PROSE.encode()))
    return tmp_path


def opened(labels="class", **keys):
    table = data_table(keys)
    data = open_data(table, Path(), Split(), labels)
    test = open_test(table, Path(), data)
    return data, data.read(0, data.n_samples), test, test and test.read(0, test.n_samples)


def test_idx_images_are_numbers_from_0_to_1(folder):
    data, rows, _, _ = opened(name="fashion-mnist")
    np.testing.assert_allclose(rows.dense(), IMAGES.reshape(6, 6) / 255, rtol=1e-15)
    assert np.array_equal(rows.labels, LABELS)
    assert data.sizes == {"height": 3, "width": 2, "channels": 1}
    assert data.dim == 6


@pytest.mark.parametrize("where", [{"name": "fashion-mnist"}, {"path": "deep/train-images-idx3-ubyte.gz"}])
def test_a_changed_file_of_labels_beside_the_images_is_noticed(folder, where):
    before = opened(**where)[0].file
    (folder / "deep/train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(LABELS[::-1])))
    data, rows, _, _ = opened(**where)
    assert data.file != before
    assert np.array_equal(rows.labels, LABELS[::-1])


def test_cifar_images_have_their_colours_together_and_all_batches(folder):
    data, rows, test, test_rows = opened(name="cifar-10", test="cifar-10.t", dtype="float32")
    assert rows.labels.tolist() == [0, 1, 2, 1, 0, 2, 3], "classes are numbered: 9 is the fourth that is there"
    np.testing.assert_allclose(rows.dense()[1, :6] * 255, [1, 101, 201, 1, 101, 201], rtol=1e-6)
    assert data.sizes == test.sizes == {"height": 32, "width": 32, "channels": 3}
    assert test_rows.labels.tolist() == [2, 0]


def test_text_becomes_windows_of_word_numbers(folder):
    """Most frequent: the (5), dog (3), then '.', 'ran' and 'saw' (2 each), in the order of characters; others are word 0."""
    data, rows, _, _ = opened("number", name="austen", vocabulary=5, window=4)
    numbers = {"the": 1, "dog": 2, ".": 3, "ran": 4}
    words = ["the", "cat", "saw", "the", "dog", ".", "the", "dog", "saw", "<unk>", "it", ":", "the", "cat's", "tail", "!", "émile", "ran", ",", "the", "dog", "ran", "."]
    ids = [numbers.get(word, 0) for word in words]
    assert rows.dense().astype(int).tolist() == [ids[i : i + 5] for i in range(0, 20, 4)]
    assert np.array_equal(rows.labels, rows.dense()[:, -1])
    assert data.sizes == {"vocabulary": 5, "window": 4}


def test_held_out_words_are_at_the_end_and_have_the_training_words_numbers(folder):
    _, rows, _, test = opened("number", name="austen", vocabulary=100, window=3, held_out=0.3, test="held-out")
    assert len(rows) == 5  # of 17 words; 6 are held out: ran , the dog ran .
    the, dog = rows.dense()[0, 0], rows.dense()[2, 1]
    assert test.dense().tolist() == [[0, 0, the, dog]]
    (folder / "other.txt").write_text("the dog saw nobody")
    _, rows, _, test = opened("number", name="austen", vocabulary=100, window=3, test="other.txt")
    assert test.dense().astype(int)[0, 0] == 1
    assert test.dense().astype(int)[0, 3] == 0  # a word of the test text alone


def test_ratings_are_followed_by_unrated_items_and_the_latest_is_left_out(folder):
    keys = {"name": "movielens-small", "negatives": 1, "test_negatives": 2, "test": "held-out"}
    data, rows, _, test = opened("number", **keys)
    assert data.sizes == {"users": 3, "items": 5, "candidates": 3}
    pairs, tested = (np.nonzero(r.dense())[1].reshape(-1, 2) - [0, 3] for r in (rows, test))
    assert rows.labels.tolist() == [1.0, 0.0] * 5
    assert pairs[::2].tolist() == [[0, 2], [0, 0], [1, 3], [1, 1], [2, 1]]  # users 1, 2 and 3 by time, without the latest of 1 and 2
    assert test.labels.tolist() == [1.0, 0.0, 0.0] * 2
    assert tested[::3].tolist() == [[0, 4], [1, 0]]
    rated = {(0, 4), (0, 0), (0, 2), (1, 0), (1, 1), (1, 3), (2, 1)}
    assert not rated & {tuple(p) for p in [*pairs[1::2].tolist(), *tested[1::3].tolist(), *tested[2::3].tolist()]}
    again = opened("number", **keys)[1]
    assert np.array_equal(again.dense(), rows.dense())
    assert not np.array_equal(opened("number", **keys, seed=2)[1].dense(), rows.dense())


def test_what_decides_rows_decides_their_id(folder):
    def of(**keys):
        return content_id(data_table(keys), folder)

    assert of(name="austen") != of(name="austen", vocabulary=9)
    assert of(name="austen", held_out=0.2) != of(name="austen", held_out=0.2, test="held-out")
    assert of(name="austen") == of(path="austen.txt.xz", format="text")
    assert of(name="fashion-mnist") != of(name="cifar-10")


@pytest.mark.parametrize(("file", "content", "keys", "message"), [
    ("a.csv", b"user,item\n1,2\n", {"format": "movielens"}, "a.csv:1: the columns should be userId,movieId"),
    ("a.csv", CSV.encode() + b"2,x,1,3\n", {"format": "movielens"}, "a.csv: a line is no rating"),
    ("a.csv", CSV.encode() + b"2,7,nan,3\n", {"format": "movielens"}, "a.csv: a line is no rating"),
    ("a.csv", CSV.encode() + b"\n2,7,1\n", {"format": "movielens"}, "a.csv: a line is no rating"),
    ("a.csv", CSV.encode()[:32], {"format": "movielens"}, "a.csv: holds no ratings"),
    ("a.csv", b"userId,movieId,rating,timestamp\n1,1,1,1\n1,2,1,2\n", {"format": "movielens"}, "has rated all 2 items"),
    ("a.txt", b"fine\n\xff\xfe", {"format": "text"}, "a.txt:2: byte 6 of the file is no UTF-8"),
    ("a.txt", b"too few words", {"format": "text"}, "has 3 words, and a sample takes 31"),
    ("a.txt.xz", b"no xz", {"format": "text"}, "a.txt.xz"),
    ("a.txt", b"a b c", {"format": "text", "window": 1, "test": "held-out"}, "no words are held out"),
    ("test_batch.bin", cifar([1])[:-1], {}, "has 3072 bytes, no whole number of records of 3073"),
    ("test_batch.bin", cifar([3, 11]), {}, "record 2 has the label 11"),
    ("test_batch.bin", cifar([3, 1]), {"test": "held-out"}, "leaves nothing out"),
    ("train-images-idx3-ubyte", idx(IMAGES), {}, "labels of these images should be in train-labels-idx1-ubyte"),
    ("a.csv", CSV.encode(), {"format": "movielens", "test": "a.csv"}, 'write test = "held-out"'),
])  # fmt: skip
def test_a_wrong_file_is_one_line_with_its_place(folder, file, content, keys, message):
    (folder / file).write_bytes(content)
    with pytest.raises(UserError, match=naming(message)):
        opened("number", path=file, **keys)


@pytest.mark.parametrize(("keys", "message"), [
    ({"name": "austen", "window": 0}, "window: 0"),
    ({"name": "austen", "held_out": 1.0}, "held_out: 1.0"),
    ({"name": "austen", "negatives": 3}, "negatives"),
    ({"path": "a", "format": "words"}, "words"),
    ({"path": "a", "window": 3}, "window"),
    ({"name": "movielens-small", "negatives": -1}, "negatives: -1"),
])  # fmt: skip
def test_wrong_keys_are_refused(folder, keys, message):
    with pytest.raises(UserError, match=naming(message)):
        data_table(keys)


def test_a_set_that_is_not_here_is_one_line_that_says_how_to_get_it(folder):
    with pytest.raises(UserError, match=r"no set 'wikitext-2' in .*mpi-compress data get wikitext-2.*wiki\.train\.raw"):
        opened(name="wikitext-2")
    (folder / "austen.txt.xz").unlink()
    with pytest.raises(UserError, match=r"no set 'austen' in .*; put austen\.txt into one of them"):
        opened(name="austen")


def archive_of(files, kind):
    out = io.BytesIO()
    if kind == ".zip":
        with zipfile.ZipFile(out, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    else:
        with tarfile.open(fileobj=out, mode="w:gz") as tar:
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


@pytest.mark.parametrize("kind", [".zip", ".tar.gz"])
def test_data_get_unpacks_all_sets_of_an_archive(folder, monkeypatch, capsys, kind):
    packed = archive_of({"raw/a.txt": b"one two three", "raw/b.txt": b"four five", "raw/c": b""}, kind)
    (folder / f"tiny{kind}").write_bytes(packed)
    source, digest = f"{folder.as_uri()}/tiny{kind}", (f"sha256:{sha256(packed).hexdigest()}",)
    monkeypatch.setitem(PUBLISHED, "tiny", Published("text", ("raw/a.txt",), "3 words", source, digest))
    monkeypatch.setitem(PUBLISHED, "tiny.t", Published("text", ("raw/b.txt",), "2 words", source, digest))
    assert main(["data", "get", "tiny", "tiny.t", "--quiet"]) == 0
    sets = folder / "cache" / "sets"
    assert capsys.readouterr().out.split() == [str(sets / "raw/a.txt"), str(sets / "raw/b.txt")]
    assert (sets / "raw/b.txt").read_bytes() == b"four five"
    assert not (sets / "raw/c").exists()
    (sets / "raw/a.txt").unlink()
    (folder / f"tiny{kind}").write_bytes(packed + b"?")
    assert "is not what was published" in refused(["data", "get", "tiny", "--quiet"], capsys)


def test_data_info_describes_a_published_set(folder, capsys):
    assert main(["data", "info", "movielens-small"]) == 0
    assert "samples    25" in capsys.readouterr().out


def test_rows_that_cannot_be_kept_are_refused_in_one_line(tmp_path):
    (tmp_path / "gone").touch()
    with pytest.raises(UserError, match="gone: cannot be written to"):
        Spool(tmp_path / "gone" / "rows").put(0, np.ones((1, 1)), np.ones(1))
