"""`mpi-compress results`: listing, removing and moving."""

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers.refusals import refused
from helpers.running import command

from mpi_compress.cli.main import main
from mpi_compress.job.loading import load_job
from mpi_compress.results.files import checkpoint_of, part_of, result_file, set_aside
from mpi_compress.results.writer import Recorder, Row

JOB = """
data = {{ generator = "gspar", samples = 20, dim = 5 }}
stop = {{ rounds = 1 }}
[[run]]
label = "a"
algorithm = {{ name = "gd", step = {step} }}
[[run]]
label = "b"
algorithm = {{ name = "sgd", batch = 1 }}
"""


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A job, with results of its two runs, of a third that it no longer names, and of a file that is no result."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "jobs" / "mine.toml"
    file.parent.mkdir()
    for step in (0.25, 0.5):
        file.write_text(JOB.format(step=step))
        for spec in load_job(file).runs:
            recorder = Recorder(
                result_file("mine", spec.label, spec.run_id, tmp_path / "results"), {"label": spec.label, "job": spec.toml()}
            )
            recorder.append(Row({"round": 0, "loss": step}, {}, {"seconds": 0.0}))
            recorder.finish("complete", "", np.zeros(1), {})
    (tmp_path / "results" / "mine" / "old-0123.h5").write_text("of another version")
    return file


def test_ls_lists_what_varies(job, capsys):
    assert main(["results", "ls"]) == 0
    heads, *rows, total = capsys.readouterr().out.splitlines()
    assert heads.split() == ["job", "label", "differs", "in", "status", "loss", "size", "age"]
    assert [row.split()[:2] for row in rows] == [["mine", "a"], ["mine", "a"], ["mine", "b"], ["mine", "old-0123"]]
    assert sorted("algorithm.step = 0.25" in row for row in rows) == [False, False, False, True]
    assert "cannot be read" in rows[-1]
    assert total.startswith("4 results, ")


def test_the_last_states_of_complete_runs_are_removed_alone(job, capsys):
    runs = load_job(job).runs
    done = [result_file("mine", spec.label, spec.run_id, Path("results")) for spec in runs]
    begun = part_of(done[1])
    done[1].rename(begun)
    states = [checkpoint_of(file) for file in done]
    for state in states:
        state.write_text("a state")
    refused(["results", "rm"], capsys, "name jobs or results --states")
    refused(["results", "rm", "--states"], capsys, "remove 1 last state, 7 B? nobody can be asked here")
    assert main(["results", "rm", "mine", "--states", "--yes"]) == 0
    assert capsys.readouterr().out == "removed 1 last state; the results stay\n"
    assert [file.exists() for file in (done[0], begun, *states)] == [True, True, False, True]


def test_ls_sorts_labels_by_their_numbers_then_seeds_and_shows_what_set_changed(tmp_path, capsys):
    runs = [("k = 10", 0, ""), ("k = 9", 0, '{"stop.rounds": 5}'), ("k = 9", 10, ""), ("k = 9", 9, "")]
    for number, (label, seed, changed) in enumerate(runs):
        attrs = {"label": label, "job": f"seed = {seed}\nstop.rounds = 5", "overridden": changed}
        (recorder := Recorder(tmp_path / "mine" / f"{number}.h5", attrs)).append(Row({"round": 0, "loss": 1.0}, {}, {"seconds": 0.0}))
        recorder.finish("complete", "", np.zeros(1), {})
    assert main(["results", "ls", "--out", str(tmp_path)]) == 0
    heads, *rows, _ = (re.split("  +", line) for line in capsys.readouterr().out.splitlines())
    assert heads[2:5] == ["differs in", "--set", "status"]
    assert [row[1:3] for row in rows] == [["k = 9", "seed = 9"], ["k = 9", "seed = 10"], ["k = 9", "seed = 0"], ["k = 10", "seed = 0"]]
    assert [row[3] for row in rows] == ["complete", "complete", "stop.rounds = 5", "complete"]
    assert "sorted by job, label" in command("results", "ls", "--help").stdout


def test_ls_hides_trials_unless_they_are_asked_for_and_fits_a_terminal(job, monkeypatch, capsys):
    shutil.copytree("results/mine", "results/mine/tuning")
    for more, shown, told in ([], 4, "4 trials of [tune], "), (["--trials"], 8, "8 results, "), (["mine/tuning"], 4, "4 results, "):
        assert main(["results", "ls", *more]) == 0
        *rows, total = capsys.readouterr().out.splitlines()[1:]
        assert (len(rows), told in total) == (shown, True)
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["results", "ls"]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 60
    assert said.count("algorithm.step = 0.25") == 1


def test_gc_removes_what_no_job_names_and_rm_what_is_named(job, capsys):
    assert main(["results", "gc"]) == 2, "nobody can be asked"
    assert "--yes" in capsys.readouterr().err
    assert (main(["results", "gc", "--yes"]), capsys.readouterr().out) == (0, "removed 2 results\n")
    left = sorted(os.listdir("results/mine"))
    assert [name[:2] for name in left] == ["a-", "b-"]
    shutil.copytree("results/mine", "results/other")
    refused(["results", "gc", "jobs/mine.toml", "--yes"], capsys, "removes what no named job has: 2 of other; --all-others")
    assert main(["results", "gc", "jobs/mine.toml", "--yes", "--all-others"]) == 0
    assert main(["results", "rm", f"results/mine/{left[0]}", "--yes"]) == 0
    assert os.listdir("results/mine") == left[1:]
    os.rename(unfinished := f"results/mine/{left[1]}", f"{unfinished}.part")
    assert main(["results", "rm", unfinished, "--yes"]) == 0, "the name as `ls` has it"
    assert os.listdir("results") == []
    assert main(["results", "rm", "mine", "--yes"]) == 2


def test_results_that_were_set_aside_are_listed_and_removed(job, capsys):
    """`submit` keeps them as .h5.old, which no job names: gc removes them, and leaves what was played in their place."""
    (named,) = Path("results/mine").glob("b-*.h5")
    old = set_aside(named)
    shutil.copyfile(old, named)
    assert main(["results", "ls"]) == 0
    said = capsys.readouterr().out
    assert ("b (set aside)" in said, "5 results, " in said) == (True, True)
    assert main(["results", "gc", "--yes"]) == 0
    assert sorted(name[:2] for name in os.listdir("results/mine")) == ["a-", "b-"]
    assert set_aside(named) == old
    capsys.readouterr()
    assert main(["results", "rm", str(old)]) == 2
    assert capsys.readouterr().out.startswith(f"{old}  b (set aside), ")
    assert main(["results", "rm", "mine", "--yes"]) == 0
    assert os.listdir("results") == []


@pytest.mark.parametrize("text", ["[data]\nname = 3\n", "[data\n"], ids=["no job", "no TOML"])
def test_gc_removes_nothing_where_a_job_cannot_be_read(text, job, capsys):
    job.with_name("other.toml").write_text(text)
    assert "nothing is removed" in refused(["results", "gc", "--yes"], capsys)
    assert len(os.listdir("results/mine")) == 4





def test_an_answer_is_asked_for_on_a_terminal(job, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", type("Terminal", (), {"isatty": lambda self: True})())
    monkeypatch.setattr("builtins.input", lambda question: "n")
    assert main(["results", "rm", "mine"]) == 0
    assert capsys.readouterr().out.endswith("nothing is removed\n")
    assert len(os.listdir("results/mine")) == 4


def test_what_is_being_written_is_left(job, capsys):
    recorder = Recorder(job.parent.parent / "results" / "mine" / "c-1.h5", {"label": "c"})
    assert main(["results", "rm", "mine", "--yes"]) == 0
    assert os.listdir("results/mine") == ["c-1.h5.part"]
    assert "is being written, and is left" in capsys.readouterr().err
    assert main(["results", "mv", "mine", "theirs"]) == 2
    recorder.abandon("stopped", "")


def test_mv_moves_a_jobs_results(job, capsys):
    assert main(["results", "mv", "mine", "../theirs"]) == 2
    assert main(["results", "mv", "mine", "by/us"]) == 0
    assert "moved 4 results" in capsys.readouterr().out
    assert os.listdir("results") == ["by"]
    assert len(os.listdir("results/by/us")) == 4
    assert main(["results", "mv", "mine", "by/us"]) == 2


def test_mv_moves_those_of_jobs_below_too_and_of_no_other_name(job):
    for name in ("sweep/steps", "sweeps"):
        Path("results", name).mkdir(parents=True)
        shutil.copy(next(Path("results/mine").glob("*.h5")), f"results/{name}/a.h5")
    shutil.copytree("results/mine", "results/sweep", dirs_exist_ok=True)
    assert main(["results", "mv", "sweep", "runs"]) == 0
    moved = sorted(file.relative_to("results/runs").as_posix() for file in Path("results/runs").rglob("*.h5"))
    assert moved == sorted([*(file.name for file in Path("results/mine").glob("*.h5")), "steps/a.h5"])
    assert Path("results/sweeps/a.h5").exists()


def test_gc_asks_for_all_others_only_where_jobs_are_named_and_results_are_of_none_of_them(job, capsys):
    shutil.copytree("results/mine", "results/gone")
    assert (main(["results", "gc", "--yes"]), capsys.readouterr().out) == (0, "removed 6 results\n")  # no job is named: all count
    assert os.listdir("results") == ["mine"]


def test_gc_of_a_named_job_removes_what_it_does_not_name(job, capsys):
    assert (main(["results", "gc", "jobs/mine.toml", "--yes"]), capsys.readouterr().out) == (0, "removed 2 results\n")
    assert sorted(name[:2] for name in os.listdir("results/mine")) == ["a-", "b-"]
