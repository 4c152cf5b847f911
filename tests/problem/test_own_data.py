"""Data of one's own: arrays and CSV files become LIBSVM text that jobs read back to the last bit."""

import lzma

import numpy as np
import pytest
import scipy.sparse
from helpers.refusals import naming, refused
from sklearn.datasets import load_svmlight_file

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.problem.datasets.data import read_csv

CSV = "size,colour,kind\n1.5,red,good\n0,blue,bad\n-2e-3,red,bad\n"


@pytest.mark.parametrize("name", ["a.libsvm", "a.libsvm.xz"])
def test_arrays_come_back_to_the_last_bit(tmp_path, name):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 4)), rng.choice([-1.0, 1.0], 30)
    for samples in (X, scipy.sparse.csc_matrix(X)):
        (file,) = mc.data.save(samples, y, tmp_path / name)
        run = mc.load_job({"data": {"path": str(file)}, "objective": {"mu": 0.1}, "algorithm": {"name": "gd"}, "stop": {"rounds": 0}})
        (found,) = mc.run(run, out=tmp_path / "results", fresh=True)
        assert (found.attrs["n_samples"], found.attrs["dim"]) == (30, 4)
    if name.endswith("libsvm"):
        back, labels = load_svmlight_file(str(file), n_features=4)
        np.testing.assert_array_equal(back.toarray(), X)
        np.testing.assert_array_equal(labels, y)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_one_number_that_is_not_finite_is_refused(wrong, tmp_path):
    X, y = np.eye(3), np.ones(3)
    for bad in ((np.where(X == 1, [1, wrong, 1], 0), y), (X, [1, wrong, 1])):
        with pytest.raises(mc.UserError, match="a sample or a label is not finite"):
            mc.data.save(*bad, tmp_path / "a.libsvm")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(("X", "y", "said"), [
    (np.eye(2), ["a", "b"], "labels numbers 'a'"), (np.eye(2), [1, 0, 1], "2 samples (3,)"), ([["a"], ["b"]], [1, 0], "samples 'a'"),
])  # fmt: skip
def test_arrays_of_words_or_of_other_shapes_are_refused_in_one_line(tmp_path, X, y, said):
    with pytest.raises(mc.UserError, match=naming(f"a.libsvm: {said}")):
        mc.data.save(X, y, tmp_path / "a.libsvm")


def test_rows_held_out_are_those_that_are_not_trained_on(tmp_path):
    y = np.arange(20.0)
    files = mc.data.save(y[:, None] + 1, y, tmp_path / "a.libsvm", test=0.25, seed=3)
    assert [file.name for file in files] == ["a.libsvm", "a.t.libsvm"]
    train, test = (load_svmlight_file(str(file))[1] for file in files)
    assert test.size == 5
    assert sorted([*train, *test]) == y.tolist()
    again = mc.data.save(y[:, None] + 1, y, tmp_path / "b.libsvm", test=0.25, seed=3)
    assert [file.read_bytes() for file in again] == [file.read_bytes() for file in files]


def test_a_feature_that_only_held_out_rows_have_is_a_feature(tmp_path):
    X = np.eye(4)
    train, test = mc.data.save(X, np.array([1, -1, 1, -1]), tmp_path / "a.libsvm", test=0.5)
    job = {"data": {"path": str(train), "test": str(test)}, "objective": {"mu": 0.1}, "algorithm": {"name": "gd"}, "stop": {"rounds": 1}}
    (run,) = mc.run(job | {"name": "a"}, out=tmp_path / "results", fresh=True)
    assert run.attrs["dim"] == 4
    assert "test_loss" in run.trace


def test_words_of_a_csv_file_become_features_of_0_and_1(tmp_path):
    (path := tmp_path / "a.csv").write_text(CSV)
    table = read_csv(path)
    assert table.features == ["size", "colour=blue", "colour=red"]
    np.testing.assert_array_equal(table.X.toarray(), [[1.5, 0, 1], [0, 1, 0], [-2e-3, 0, 1]])
    assert (table.y.tolist(), table.classes) == ([1, 0, 0], {"bad": 0, "good": 1})
    np.testing.assert_array_equal(read_csv(path, "size").y, [1.5, 0, -2e-3])


def test_a_file_without_names_has_its_columns_by_their_places(tmp_path):
    (path := tmp_path / "a.csv").write_text("1,2,-1\n3,4,1\n")
    table = read_csv(path, 0)
    assert (table.features, table.y.tolist()) == (["1", "2"], [1, 3])


@pytest.mark.parametrize(("text", "keys", "said"), [
    (CSV, ["label=kinds"], "no column called 'kinds'; there are: size, colour, kind"),
    (CSV + "1,red\n", [], ":5: 2 cells, where the first line has 3"),
    (CSV + ",red,bad\n", [], ":5: column 'size' has no value"),
    (CSV + "NA,red,bad\n", [], ":5: 'size' ('NA')"), ("a,b\n1,1\n2,?\n", [], ":3: 'b' ('?')"),
    ("a,b\n", [], "there are no rows below the names"),
    ("a\n1\n", [], "there is one column"), ("a;b\n1,5;0\n", [], "there is one column commas ';'"),
    ("a,b\n\n1,1\nnan,2\n", [], ":4: 'a' ('nan')"),
    (CSV, ["test=2"], "test = 2 must be at least 0 and below 1"),
    (CSV, ["tset=0.1"], "did you mean 'test'?"),
])  # fmt: skip
def test_a_wrong_file_is_refused_in_one_line(tmp_path, capsys, text, keys, said):
    (path := tmp_path / "a.csv").write_text(text)
    refused(["data", "make", path, *keys], capsys, said)
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize(("name", "said"), [
    ("all.libsvm", "generator or a CSV file required [data] path = FILE test mc.data.save"),
    ("arr.npz", "mc.data.save(X, y, \"NEW.libsvm\", test=0.2) from arrays"),
])  # fmt: skip
def test_a_file_that_no_csv_is_is_told_what_takes_it(tmp_path, capsys, monkeypatch, name, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("1 1:1\n-1 2:1\n")
    refused(["data", "make", name, "test=0.2"], capsys, said)


def test_a_column_of_numbers_with_a_word_in_it_and_the_labels_that_nobody_named_are_said(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("a,b,kind\n1,x,1\n2,NA,0\n3+,y,1\n")
    assert main(["data", "make", "a.csv"]) == 0
    printed = capsys.readouterr().out
    assert "d = 6: a=1, a=2, a=3+, b=NA, b=x, b=y" in printed
    assert "  a is taken as words, 2 of which are numbers: line 4 has '3+'" in printed
    assert "  labels are those of the last column, kind; label=NAME takes another" in printed
    assert main(["data", "make", "a.csv", "label=kind"]) == 0
    assert "last column" not in capsys.readouterr().out


def test_data_make_writes_what_a_job_reads_and_says_which_line_names_it(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(CSV)
    assert main(["data", "make", "a.csv", "label=kind", "-o", "a.libsvm.xz"]) == 0
    printed = capsys.readouterr().out
    assert "3 samples, d = 3: size, colour=blue, colour=red" in printed
    assert "label good is 1" in printed
    assert '[data] path = "a.libsvm.xz"' in printed
    assert "`mpi-compress data make FILE.csv` converts CSV" in refused(["data", "info", "a.csv"], capsys)
    assert main(["data", "info", "a.libsvm.xz"]) == 0
    assert "labels     0: 2; 1: 1\n" in capsys.readouterr().out
    (tmp_path / "three").write_text("0 1:1\n1 1:2\n2 1:1\n1 2:1\n")
    assert main(["data", "info", "three"]) == 0
    assert "labels     0: 1; 1: 2; 2: 1; jobs of two classes need positive = […]\n" in capsys.readouterr().out


def test_columns_of_unlike_sizes_are_told_and_no_csv_is_written(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("small,large,y\n" + "".join(f"{j % 3},{1000 * j},{j % 2}\n" for j in range(9)))
    (tmp_path / "b.csv").write_text("one,two,y\n" + "".join(f"{j % 3},{3 * j},{j % 2}\n" for j in range(9)))
    assert main(["data", "make", "a.csv"]) == 0
    assert 'columns differ 4e+03-fold in size, which slows all methods; [data] normalize = "columns"' in capsys.readouterr().out
    assert main(["data", "make", "b.csv"]) == 0
    assert "columns differ" not in capsys.readouterr().out
    refused(["data", "make", "b.csv", "-o", "c.csv"], capsys, "-o c.csv: what is written is LIBSVM text; name it FILE.libsvm")


def test_a_summary_of_a_file_is_what_numpy_finds(tmp_path):
    from mpi_compress.problem.datasets.table import contents_of

    (tmp_path / "a.svm").write_text("+1 1:3 4:-4\n-1\n+1 2:0.5\n")
    found = contents_of(tmp_path / "a.svm")
    assert (found.lengths.tolist(), found.norms.tolist()) == ([2, 0, 1], [5.0, 0.0, 0.5])
    assert (found.labels, found.features, found.range, found.published) == ({1.0: 2, -1.0: 1}, 4, (-4.0, 3.0), "")
    (tmp_path / "a9a.xz").write_bytes(lzma.compress(b"+1 1:1 124:1\n"))
    assert contents_of(tmp_path / "a9a.xz").published == "other data in a file called a9a.xz: N = 1, and N = 32561 is published"
