"""Commands say the data first: which set, where it is from, its size, and where that is not what is published of its name."""

import bz2
import lzma

import numpy as np
import pytest
from helpers.refusals import refused

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.core.errors import UserError
from mpi_compress.core.shipped import shipped_jobs
from mpi_compress.evidence import verdicts
from mpi_compress.evidence.outcomes import Outcome
from mpi_compress.problem.datasets.known import KNOWN
from mpi_compress.problem.datasets.table import find_set
from mpi_compress.report.render import page

TEXT = b"".join(b"%d 1:0.5 %d:%d # 9:9\n" % (1 - 2 * (i % 2), 2 + i, 1 + i) for i in range(20)).rstrip(b"\n")
DIFFERS = "20 × 5000, differs from the published 6000 × 5000"
JOB = """
data.name = "gisette"
workers.count = 2
algorithm.name = "gd"
stop.rounds = 2
[[claim]]
id = "A"
basis = "paper"
says = "it falls"
value = "loss('job')"
holds = "< 1"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MPI_COMPRESS_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("MPI_COMPRESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path / "data"


def test_a_set_of_another_size_than_its_name_s_is_said_first_and_no_claim_is_in_the_paper_s_setting(folder, capfd):
    file = folder / "gisette_scale.xz"
    file.write_bytes(lzma.compress(TEXT))
    line = f"data: gisette, other data, {file}, {DIFFERS}"
    for command in ("plan", "run", "plan", "run"):  # not parsed, parsed by run, known, done
        assert main([command, "job.toml"]) == 0
        told = capfd.readouterr()
        assert (told.err if command == "run" else told.out).splitlines()[0] == line
    (run,) = mc.run("job.toml")
    for command, argument in (("show", str(run.file)), ("check", "job.toml")):
        assert main([command, argument]) == 0
        assert (said := capfd.readouterr().out).splitlines()[0] == line
    assert f"A: it falls [on other data: gisette, {DIFFERS}]\n    ours " in said
    for style, told in (("screen", ""), ("paper", "mpi-compress: the figure, which has no title, does not say that it is {}\n")):
        assert main(["plot", "job.toml", "--style", style, "-o", f"{style}.svg"]) == 0
        assert capfd.readouterr().err == told.format("on gisette, 20 × 5000, not the published 6000 × 5000")
        assert ("on gisette, 20 × 5000, not" in (folder.parent / f"{style}.svg").read_text()) == (style == "screen")
    assert main(["report", "job.toml", "-o", "r.html", "--table", "t.md"]) == 0
    assert [(folder.parent / name).read_text().count(f"gisette, {DIFFERS[11:]}") for name in ("r.html", "t.md")] == [2, 1]
    assert main(["data", "list"]) == 0
    assert f"{file}, 20 × 21, {DIFFERS[11:]}\n" in capfd.readouterr().out
    (verdict,) = verdicts.check(job := mc.load_job("job.toml"), [run])
    assert Outcome(run.file, "job", "", job, runs=[run]).group(verdict) == "elsewhere"


def test_other_data_than_the_paper_s_are_said_and_so_is_what_was_looked_for(folder, tmp_path, capfd):
    assert main(["plan", "job.toml"]) == 0
    assert capfd.readouterr().out.startswith("data: gisette, not here, looked for gisette and gisette_scale\n")
    with pytest.raises(UserError, match=", looked for gisette and gisette_scale; "):
        find_set("gisette", "data.name")
    made = 'data = { generator = "gspar", samples = 20, dim = 4 }'
    full = 'full.data = { name = "gisette" }\n'
    for paper, told in ((full, "other data"), ('paper = "A"\n' + full, "other data"), ('paper = "A"\n', "the paper's data, as the job says")):
        (tmp_path / "job.toml").write_text(paper + JOB.replace('data.name = "gisette"', made))
        for command in ("plan", "run", "check", "run"):
            assert main([command, "job.toml", "--fresh"] if command == "run" else [command, "job.toml"]) == 0
            assert "".join(capfd.readouterr()).splitlines()[0] == f"data: gspar, {told}, 20 × 4"
        (file,) = tmp_path.glob("results/job/*.h5")
        assert main(["show", str(file)]) == 0
        assert capfd.readouterr().out.splitlines()[0] == f"data: gspar, {told}, 20 × 4"
        (verdict,) = verdicts.check(mc.load_job("job.toml"), [mc.read(file)])
        assert verdict.elsewhere == ("gspar in place of gisette" if full in paper else "")
    (tmp_path / "job.toml").write_text('paper = "A"\n' + full + JOB.replace('data.name = "gisette"', made))
    assert main(["plan", "job.toml", "--full"]) == 0
    assert capfd.readouterr().out.startswith("data: gisette, not here, looked for gisette and gisette_scale\n")
    changed = mc.load_job("job.toml", {"data": {"generator": "least-squares"}}).runs[0]
    assert (changed.data_kind, changed.data_shown) == ("other data", "least-squares in place of gisette")


def test_a_copy_of_a_job_of_the_package_says_itself_that_its_data_are_the_paper_s(tmp_path):
    shipped = shipped_jobs()["literature/ef21-mushrooms"]
    assert {run.data_kind for run in mc.load_job(shipped).runs} == {"the paper's data"}
    (tmp_path / "copy.toml").write_text(shipped.read_text())
    copied = mc.load_job(tmp_path / "copy.toml")
    assert {run.data_kind for run in copied.runs} == {"the paper's data, as the job says"}
    assert "the paper&#39;s data, as the job says</span> mushrooms" in page([Outcome(tmp_path / "copy.toml", "copy", "", copied)])


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".bz2", bz2.compress), (".xz", lzma.compress)])
def test_the_files_of_a_set_in_the_collection_are_found_and_joined(folder, suffix, pack):
    for part, lines in (("train", TEXT.split(b"\n")[:10]), ("test", TEXT.split(b"\n")[10:])):
        (folder / f"rcv1_{part}.binary{suffix}").write_bytes(pack(b"\n".join(lines)))
        if part == "train":
            assert find_set("rcv1", "data.name").name == f"rcv1_train.binary{suffix}"  # which has not all of its rows
    (folder / "url_combined").write_bytes(TEXT)
    rows = [mc.datasets.libsvm.counts(find_set(name, "data.name")) for name in ("rcv1", "url")]
    assert rows == [(20, 21, 40), (20, 21, 40)]
    (blocks,) = mc.datasets.libsvm.read_blocks(find_set("rcv1", "data.name"))
    assert np.array_equal(blocks[2], 1.0 - 2 * (np.arange(20) % 2))
    (folder / f"rcv1{suffix}").write_bytes(pack(TEXT))
    assert find_set("rcv1", "data.name") == folder / f"rcv1{suffix}"


def test_labels_and_columns_differ_as_rows_do():
    assert KNOWN["mushrooms"].differs(8124, 112, 2) == KNOWN["mushrooms"].differs(8124, 112) == ""
    assert KNOWN["a9a.t"].differs(16281, 122) == "", "a test set may lack the last features"
    assert KNOWN["mushrooms"].differs(8124, 113) == "differs from the published 8124 × 112"
    assert KNOWN["news20"].differs(15935, 62061, 2) == "differs from the published 15935 × 62061 of 20 labels"
    assert KNOWN["url_Day45"].differs(7, 3231961, 2) == ""
    assert KNOWN["mushrooms"].differs(8124, 112, 2, 170_604) == ""
    assert KNOWN["mushrooms"].differs(8124, 112, 2, 170_603).endswith("the published 8124 × 112 with 170604 nonzeros, here 170603")


def test_nonzeros_are_compared_with_what_is_published_before_and_after_a_run(folder, capfd):
    """A stored 0 is none; the count of a small file is kept, and that of a result stands in it."""
    rows = [b"1 %d:1" % (1 + i) + b" 22:2" * (i != 21) + b" 23:0" * (i == 0) for i in range(22)]
    (folder / "ijcnn1.val").write_bytes(
        b"\n".join(rows[i % 22] for i in range(14990)).replace(b"1 2", b"-1 2").replace(b" 23:0", b"")
    )
    differs = "14990 × 22, differs from the published 14990 × 22 with 194870 nonzeros, here 29299"
    for command in (["plan"], ["plan"], ["run", "--quiet"], ["plan"]):
        assert main([*command, "job.toml", "--set", 'data.name="ijcnn1.val"']) == 0
        assert command == ["run", "--quiet"] or capfd.readouterr().out.splitlines()[0].endswith(differs)
    (file,) = folder.parent.glob("results/job/*.h5")
    assert mc.read(file).attrs["nonzeros"] == 29299
    assert main(["show", str(file)]) == 0
    assert capfd.readouterr().out.splitlines()[0].endswith(differs)


def test_a_wrong_line_of_a_small_file_is_refused_by_plan_as_by_run(folder, tmp_path, capfd):
    (folder / "own").write_bytes(b"1 1:1\n0,5 1:0,5\n")
    for command in ("plan", "run"):
        refused([command, "job.toml", "--set", 'data={path="data/own"}'], capfd, "own:2: '0,5' was given for a label; ")


def test_a_set_in_a_file_of_another_name_is_other_data_with_its_own_largest_index(folder, tmp_path, capfd):
    """a9a's rows in a file called rcv1_train.binary have 47,236 features by their name, and 123 of their own."""
    file = folder / "rcv1_train.binary"
    file.write_bytes(b"".join(b"%d 1:1 %d:1\n" % (1 - 2 * (i % 2), 2 + i % 122) for i in range(2000)))
    for data, published in (('name = "rcv1"', "697641 × 47236"), ('path = "data/rcv1_train.binary"', "20242 × 47236")):
        (tmp_path / "job.toml").write_text('paper = "A"\n' + JOB.replace('data.name = "gisette"', f"data = {{ {data} }}"))
        for command in ("plan", "run"):
            assert main([command, "job.toml"]) == 0
            first, second = "".join(capfd.readouterr()).splitlines()[:2]
            assert ", other data, " in first
            assert first.endswith(f"differs from the published {published}")
            assert second == "data: other data in a file called rcv1_train.binary, whose largest index is 123"
    for name, said in (("rcv1", "N = 697641 is published"), ("rcv1_train.binary", "N = 20242 is published")):
        assert main(["data", "info", name]) == 0
        out = capfd.readouterr().out
        assert "features   123, the largest index (other data in a file called rcv1_train.binary: N = 2000, and " in out
        assert said in out


def test_size_features_and_nonzeros_are_those_published():
    known = KNOWN["rcv1_train.binary"]
    assert known.mismatch(20_242, 47_236, 1_498_952) is None
    assert known.mismatch(20_242, 47_236, 1_498_951)
    assert known.mismatch(20_242, 47_237, 1_498_952)
    assert KNOWN["a1a"].mismatch(1605, 119, 22_249) is None, "its last features are in no sample"


def test_sets_of_many_classes_are_fetched_from_their_own_folder():
    assert (KNOWN["news20"].folder, KNOWN["sector.scale"].folder) == ("multiclass", "multiclass/sector")
    assert KNOWN["news20"].files == ("news20.bz2",)


def test_quadratics_are_said_to_be_such_and_not_to_have_features(folder, capfd):
    job = 'data = { generator = "tridiagonal", samples = SAMPLES }\nobjective.model = { name = "quadratic", dim = 9 }\nworkers.count = 1\n'
    for samples, shape in ((1, "1 quadratic"), (3, "3 quadratics")):
        (folder.parent / "job.toml").write_text(job.replace("SAMPLES", str(samples)) + 'algorithm.name = "gd"\nstop.rounds = 2\n')
        for command in ("plan", "run"):
            assert main([command, "job.toml"]) == 0
            told = capfd.readouterr()
            assert (told.err if command == "run" else told.out).splitlines()[0] == f"data: tridiagonal, other data, {shape}"
        assert main(["show", *map(str, folder.parent.rglob("results/**/*.h5"))]) == 0
        assert capfd.readouterr().out.splitlines()[0].endswith(f"data: tridiagonal, other data, {shape}")
        for result in folder.parent.rglob("results/**/*.h5"):
            result.unlink()
