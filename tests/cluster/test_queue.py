"""What `plan` tells of tasks, and how many and how named ones `submit` hands over: with stub commands in place of SLURM's."""

import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from helpers.refusals import naming, refused
from helpers.running import SMALL_JOB, After, below_data, nothing_left
from helpers.slurm_stub import in_front, option, planned

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.cluster.batch import Array, arrays
from mpi_compress.core.signals import Stopped
from mpi_compress.job.loading import load_job
from mpi_compress.results.writer import Recorder

NAMES = [
    "two words", "it's", 'say "so"', "a,b", "50%u", "%A_%a", "line\nline", "tür", "$(touch made)", "`touch made`", "x" * 200, "back\\slash",
    "-n", "#", "{braces}", "a;b&c|d", "*",
]  # fmt: skip
GRID = SMALL_JOB.partition("[[run]]")[0] + '[grid]\nseed = SEEDS\n[[run]]\nlabel = "GD"\nalgorithm = { name = "gd" }\n'


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    return in_front(tmp_path / "work", monkeypatch)


@pytest.mark.parametrize("name", NAMES)
def test_any_name_of_a_job_is_queued_found_and_logged(name, slurm, tmp_path, capsys):
    job = Path("jobs", f"{name}.toml")
    job.parent.mkdir()
    job.write_text(SMALL_JOB)
    assert main(["submit", str(job), "--launcher", "srun"]) == 0
    (arguments,) = slurm.submitted.values()
    folder = tmp_path / "work" / "results" / name
    script = (folder / "submitted" / "1" / "submit.sh").read_text()
    assert subprocess.run(["bash", "-n"], input=script, text=True).returncode == 0
    apart = "\\" in name or "\n" in name
    assert option(arguments, "output") == ("slurm-%A_%a.out" if apart else "")
    (head,) = [line for line in script.splitlines() if line.startswith("#SBATCH --output=")] or [""]
    assert apart or (f"{folder}/".replace("%", "%%") + "slurm-%A_%a.out") in head.replace("'\"'\"'", "'")
    slurm.queue(*(f"1001_{i}|PENDING|Priority|" for i in range(5)), f"9_0|RUNNING|None|{name}")
    capsys.readouterr()
    assert main(["plan", str(job)]) == 0
    assert capsys.readouterr().out.count("queued (Priority), SLURM 1001_") == 5
    assert main(["submit", str(job)]) == 0
    assert nothing_left(capsys.readouterr().out)
    if name in ("it's", "50%u", "line\nline", "$(touch made)"):
        assert slurm.task("1001", 0).returncode == 0
        assert len(list(folder.glob("*.h5"))) == 1
    assert not Path("made").exists()


def test_tasks_are_written_as_the_ranges_that_sbatch_takes():
    assert Array(0, [0, 1, 2, 4, 7, 8]).text() == "0-2,4,7-8"
    assert Array(0, [3]).text(2) == "3%2"
    assert arrays([0, 1, 5, 12], 5) == [Array(0, [0, 1]), Array(5, [0]), Array(10, [2])]
    assert [sum(len(a.tasks) for a in arrays(range(10_000), most)) for most in (1, 1001, 10_000)] == [10_000] * 3


@pytest.mark.slow
def test_more_runs_than_the_site_has_in_an_array_are_submitted_in_parts_one_after_the_other(slurm, capsys):
    (slurm.folder / "most").write_text("400")
    Path("many.toml").write_text(GRID.replace("SEEDS", str([*range(1000)])))
    assert main(["submit", "many.toml", "--max-running", "4", "--launcher", "srun"]) == 0
    assert "submitted 1000 runs as jobs 1001, 1002, 1003;" in capsys.readouterr().out
    parts = [(option(a, "array"), option(a, "dependency"), a[-1]) for a in slurm.submitted.values()]
    assert parts == [("0-399%4", "", "0"), ("0-399%4", "afterany:1001", "400"), ("0-199%4", "afterany:1002", "800")]
    assert slurm.task("1003", 7).returncode == 0
    (played,) = map(mc.read, Path("results/many").glob("*.h5"))
    assert played.attrs["run_id"] == load_job("many.toml", index=807).runs[0].run_id
    slurm.queue(*(f"{job}_{i}|PENDING|Priority|" for job, n in ((1001, 400), (1002, 400), (1003, 200)) for i in range(n)))
    begun = time.process_time()
    assert main(["plan", "many.toml"]) == 0
    assert time.process_time() - begun < 6  # a quarter of it where nothing else runs; it was 500 s, most of them asleep
    assert capsys.readouterr().out.count("queued (Priority), SLURM 100") == 999


def test_parts_that_slurm_refuses_are_submitted_by_the_same_command_later(slurm, capsys):
    (slurm.folder / "most").write_text("2")
    (slurm.folder / "refuse").write_text("1003")
    Path("small.toml").write_text(SMALL_JOB)
    said = "4 of 5 runs are submitted, and the same command submits the others: sbatch refuses"
    assert said in refused(["submit", "small.toml"], capsys)
    slurm.queue(*(f"{job}_{i}|PENDING|Priority|" for job in (1001, 1002) for i in (0, 1)))
    (slurm.folder / "refuse").unlink()
    assert main(["submit", "small.toml"]) == 0
    assert "submitted 1 run as job 1003" in capsys.readouterr().out
    assert slurm.submitted["1003"][-1] == "4"


def test_a_dry_run_says_how_each_part_is_submitted(slurm, capsys):
    (slurm.folder / "most").write_text("3")
    Path("small.toml").write_text(SMALL_JOB)
    assert main(["submit", "small.toml", "--dry-run", "--max-running", "2"]) == 0
    said = capsys.readouterr().out
    assert (
        "# sbatch --array=0-2%2 submit.sh 0\n# sbatch --array=0-1%2 '--dependency=afterany:<the job before>' submit.sh 3\n" in said
    )
    assert "#SBATCH --array" not in said


@pytest.fixture
def stopped(slurm, monkeypatch):
    """A run that was submitted as task 1001_0 and has been stopped and saved; and its `.part`."""
    Path("small.toml").write_text(SMALL_JOB)
    assert main(["submit", "small.toml", "--only", "GD"]) == 0
    slurm.queue()
    with pytest.raises(Stopped):
        mc.run(load_job("small.toml", only="GD"), interrupts=After(1))
    return next(Path("results/small").glob("*.part"))


FIRST = "mpi-compress task begins: run 0, 2026-11-22 10:00:00\nmpi-compress: GD: stopped by SIGUSR1, and saved\nmpi-compress task ends with status 75\n"
AGAIN = "mpi-compress task begins: run 0, 2026-11-22 11:00:00\n"


def test_a_plan_tells_how_the_last_try_ended(stopped, slurm, capsys):
    log = Path("results/small/slurm-1001_0.out")
    reached = planned(capsys).removeprefix("stopped: stopped by the test")
    assert reached.startswith(" (round ")
    log.write_text(FIRST)
    assert planned(capsys) == f"stopped: stopped by the test{reached}"
    log.write_text(FIRST + AGAIN + "Fatal error in internal_Init: Other MPI error\nmpi-compress task ends with status 15\n")
    assert re.search(naming(f"failed: Fatal error in internal_Init: Other MPI error{reached} {log}"), planned(capsys))
    killed = "*** JOB 1001 ON node1 CANCELLED AT 2026-11-22T12:00:00 DUE TO TIME LIMIT ***"
    log.write_text(FIRST + AGAIN + f"slurmstepd-node1: error: {killed}\n")
    assert re.search(naming(f"failed: limit: {killed}{reached} {log}"), planned(capsys))
    log.write_text(FIRST + AGAIN)
    slurm.queue("1001_0|OUT_OF_MEMORY|OutOfMemory|")
    assert re.search(naming(f"failed: memory: without a word{reached} {log}"), planned(capsys))
    slurm.queue("1001_0|PENDING|BeginTime|")
    assert planned(capsys) == f"queued (BeginTime), SLURM 1001_0{reached}"


def test_what_was_played_by_hand_after_a_task_is_newer(stopped, slurm, capsys):
    log = Path("results/small/slurm-1001_0.out")
    log.write_text(AGAIN + "mpi-compress: out of memory: none\nmpi-compress task ends with status 3\n")
    assert re.search(naming("failed: none (round "), planned(capsys))
    os.utime(log, (time.time() - 100, time.time() - 100))
    assert planned(capsys).startswith("stopped: stopped by the test (round ")


def test_a_plan_tells_since_when_a_running_task_has_written_no_row(stopped, slurm, capsys):
    slurm.queue("1001_0|RUNNING|None|")
    assert "no row" not in planned(capsys)
    os.utime(stopped, (time.time() - 250, time.time() - 250))
    assert planned(capsys).endswith(" 4 min")
    slurm.queue("1001_0|PENDING|Priority|")
    assert "no row" not in planned(capsys)
    recorder = Recorder(Path(str(stopped).removesuffix(".part")), {"label": "GD", "reason": ""})
    os.utime(stopped, (time.time() - 7000, time.time() - 7000))
    assert re.search(naming("running SLURM 1001_0 117 min"), planned(capsys))
    recorder.abandon("stopped", "by the test")


def test_notes_of_earlier_versions_are_read(slurm, capsys):
    Path("small.toml").write_text(SMALL_JOB)
    notes = Path("results/small/submitted.json")
    notes.parent.mkdir(parents=True)
    runs = load_job("small.toml").runs
    notes.write_text(
        json.dumps([{"job": "7", "tasks": {run.run_id: run.index for run in runs}}, {"job": "8", "tasks": {runs[0].run_id: 0}}])
    )
    slurm.queue("8_0|PENDING|Priority|", *(f"7_{i}|PENDING|Priority|" for i in range(1, 5)))
    assert main(["plan", "small.toml"]) == 0
    assert [line.rpartition(" ")[2] for line in below_data(capsys.readouterr().out)] == ["8_0", "7_1", "7_2", "7_3", "7_4"]
