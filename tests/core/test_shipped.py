"""What comes with the package besides its code is found by its name."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from helpers.refusals import refused

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.core import shipped

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["cat/fig1", "cat/fig1.toml", "jobs/cat/fig1.toml", "jobs/cat/fig1"])
def test_a_job_of_the_package_is_found_wherever_one_is(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Path(shipped.named(name)).samefile(ROOT / "jobs" / "cat" / "fig1.toml")
    assert mc.load_job(name).name == "cat/fig1"


def test_a_file_of_that_name_here_wins(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "demo.toml").touch()
    assert shipped.named("demo") == shipped.named("demo.toml") == "jobs/demo.toml"
    (tmp_path / "demo.toml").touch()
    assert shipped.named("demo") == shipped.named("demo.toml") == "demo.toml"
    for odd in ("", "../demo", "/nowhere/demo", "x" * 5000, "a\0b"):
        assert shipped.named(odd) == odd


def test_an_installed_package_has_them_inside(tmp_path, monkeypatch):
    (tmp_path / "jobs" / "x").mkdir(parents=True)
    (tmp_path / "jobs" / "x" / "one.toml").write_text("title = 'one'")
    monkeypatch.setattr(shipped, "_PACKAGE", tmp_path)
    assert list(shipped.shipped_jobs()) == ["x/one"]
    assert shipped.named("x") == str(tmp_path / "jobs" / "x")
    assert shipped.shipped("docs") == tmp_path.parent / "docs"


def test_list_names_each_job_with_its_title_and_help_ends_with_what_to_type(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["list", "jobs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(list((ROOT / "jobs").rglob("*.toml")))
    assert {line[at - 2 : at] for line in lines if (at := lines[0].index("data"))} == {"  "}  # however long a name is
    assert re.search(rf"\n  demo +generated +{re.escape(mc.load_job('demo').title)}", "\n".join(lines))
    with pytest.raises(SystemExit):
        main(["--help"])
    end = capsys.readouterr().out.partition("To begin:")[2]
    assert "mpi-compress new first" in end
    assert Path(re.findall(r"Documentation: (\S+),", end)[0]).exists()


@pytest.mark.parametrize(
    ("name", "hint"),
    [("cat/fg1", "did you mean cat/fig1?"), ("jbo.toml", "did you mean job.toml?"), ("zzzz", "`mpi-compress list jobs` names")],
)
def test_a_job_that_is_not_there_names_one_like_it(name, hint, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.toml").write_text("")
    assert f"{name}: there is no such job file; {hint}" in refused(["plan", name], capsys)


def test_the_long_description_leads_to_no_file():
    pytest.importorskip("setuptools", reason="setup.py is read where setuptools is")
    spec = spec_from_file_location("setup", ROOT / "setup.py")
    setup = module_from_spec(spec)
    spec.loader.exec_module(setup)
    text = setup.long_description()
    assert not re.findall(r"\]\((?!https?:|#)", text)
    assert "- The tutorial, from nothing to a compressor of your own" in text
    assert "`mpi-compress list` names the paper of each part" in text


def test_jobs_of_which_some_runs_need_no_download_are_partly_here(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MPI_COMPRESS_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main(["list", "jobs"]) == 0
    head, *jobs = capsys.readouterr().out.splitlines()
    found = {line.split()[0]: line for line in jobs}
    assert "  partly here  " in found["cat/fig1"]
    assert "  to get  " in found["literature/ef21-mushrooms"]
    assert "  generated  " in found["literature/quadratics"]
    assert head.endswith(" title (to get: `mpi-compress data get NAME` fetches a set; partly here: some runs go without that)")
