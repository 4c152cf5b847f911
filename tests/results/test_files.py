"""Where results lie: by a job's name, which its place says, or where an earlier version put them."""

import shutil
from pathlib import Path

import pytest
from helpers.running import command, gone_on

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.results.files import checkpoint_of, folders_of, job_name, new_file, part_of, result_file

ROUNDS = 30
JOB = f"""
title = "descent"
data = {{ generator = "gspar", samples = 60, dim = 30 }}
objective = {{ mu = "1e-2 L" }}
algorithm = {{ name = "gd" }}
stop = {{ rounds = {ROUNDS} }}
[[claim]]
id = "A"
says = "it ends"
value = "round('descent')"
holds = "in [{ROUNDS}, {ROUNDS}]"
"""


@pytest.mark.parametrize(("file", "name"), [
    ("jobs/cat/fig1.toml", "cat/fig1"), ("/home/me/jobs/demo.toml", "demo"), ("elsewhere/cat/fig1.toml", "fig1"),
    ("/jobs/old/jobs/ht/fig1.toml", "ht/fig1"), ("jobs/cat/../ht/fig1.toml", "ht/fig1"), ("jobs/a.b.toml", "a.b"), ("jobs.toml", "jobs"),
])  # fmt: skip
def test_a_jobs_name_is_its_path_below_jobs_or_its_stem(file, name):
    assert job_name(file) == name


def test_a_jobs_name_does_not_depend_on_where_it_is_read_from(tmp_path, monkeypatch):
    folder = tmp_path / "jobs" / "cat"
    folder.mkdir(parents=True)
    (folder / "fig1.toml").write_text(JOB)
    monkeypatch.chdir(folder)
    assert mc.load_job("fig1.toml").name == mc.load_job(folder / "fig1.toml").name == "cat/fig1"


@pytest.mark.parametrize(
    ("label", "name"), [("...", "run-0123"), ("😀", "run-0123"), ("a = 1", "a=1-0123"), ("b" * 99, "b" * 60 + "-0123")]
)
def test_a_label_in_any_letters_names_a_file(label, name):
    assert new_file("job", label, "0123", Path("out")) == Path("out") / "job" / f"{name}.h5"


def test_a_result_is_where_it_is_whole_then_where_it_was_begun_then_where_it_goes(tmp_path):
    def found():
        return result_file("cat/fig1", "GD", "0123", tmp_path).relative_to(tmp_path).parent.as_posix()

    new, old = (folder / "GD-0123.h5" for folder in folders_of("cat/fig1", tmp_path))
    for file in (new, old):
        file.parent.mkdir(parents=True)
    assert found() == "cat/fig1"
    checkpoint_of(old).touch()
    assert found() == "fig1"
    part_of(new).touch()
    assert found() == "cat/fig1"
    old.touch()
    assert found() == "fig1"
    new.touch()
    assert found() == "cat/fig1"


def test_trials_of_earlier_versions_are_found(tmp_path):
    old = tmp_path / "fig1" / "tuning" / "GD-0123.h5"
    old.parent.mkdir(parents=True)
    old.touch()
    assert result_file("ht/fig1/tuning", "GD", "0123", tmp_path) == old


@pytest.fixture
def two_jobs(tmp_path, monkeypatch):
    """Two jobs of one stem, the current folder above them."""
    monkeypatch.chdir(tmp_path)
    jobs = [Path("jobs") / paper / "fig1.toml" for paper in ("cat", "ht")]
    for job in jobs:
        job.parent.mkdir(parents=True)
        job.write_text(JOB)
    return jobs


def test_jobs_of_one_stem_share_no_folder(two_jobs):
    files = [run.file for job in two_jobs for run in mc.run(mc.load_job(job))]
    assert [file.parent.as_posix() for file in files] == ["results/cat/fig1", "results/ht/fig1"]


def test_results_of_before_are_found_by_every_command(two_jobs, capfd):
    (run,) = mc.run(mc.load_job(two_jobs[0]))
    old = Path("results/fig1") / run.file.name
    old.parent.mkdir()
    run.file.rename(old)
    for line, says in (
        ("run {job}", "done already, results/fig1/"), ("plan {job}", "  done"), ("check {job}", "A: it ends"), ("plot {job}", "cat-fig1.png"),
        ("submit {job} --dry-run", "nothing"), ("report {job}", "cat/fig1  done; claims: 1 of 1 holds"),
    ):  # fmt: skip
        assert main(line.format(job=two_jobs[0]).split()) == 0
        told = capfd.readouterr()
        assert says in told.out + told.err, line
    assert Path("results/cat/fig1/cat-fig1.png").exists(), "what is made now goes to the new place"
    assert main(["run", str(two_jobs[0]), "--fresh", "--quiet"]) == 0
    assert run.file.exists()
    assert mc.read(run.file).x.tobytes() == mc.read(old).x.tobytes()


@pytest.mark.parametrize("saved", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_run_that_was_begun_before_goes_on_where_it_is(saved, two_jobs):
    """With its checkpoint; without, or with one that is not whole, it begins again, and says so."""
    job, every = two_jobs[0], ["--set", "stop.rounds=200000", "--set", "checkpoint.every=10"]
    assert command("run", job, *every, "--time-limit", "1", "--quiet").returncode == 75
    shutil.move("results/cat/fig1", "results/fig1")
    if not saved:
        (checkpoint,) = Path("results/fig1").glob("*.ckpt")
        checkpoint.write_bytes(b"of another version")
    done = command("run", job, *every, "--time-limit", "1")
    assert done.returncode == 75, done.stderr
    assert gone_on(done.stderr) if saved else "begins again, for results/fig1/" in done.stderr
    assert not list(Path("results").glob("cat/fig1/*.part"))
    assert "stopped" in command("plan", job, *every).stdout
