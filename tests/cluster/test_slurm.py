"""Scripts for SLURM, as far as they can be judged without one; tests/cluster runs them."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from helpers.refusals import refused
from helpers.running import BIN, nothing_left

from mpi_compress.cli.main import main
from mpi_compress.cluster.slurm import Task
from mpi_compress.job.loading import load_job


def printed(capsys, *line) -> str:
    assert main(["submit", *map(str, line), "--dry-run"]) == 0
    return capsys.readouterr().out


def test_full_size_is_what_the_tasks_run(small_job, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small_job.write_text(small_job.read_text() + "\n[full]\nstop.rounds = 60\n")
    assert f" run {small_job} --full --out results --index" in printed(capsys, small_job, "--full")
    assert "--full" not in printed(capsys, small_job)


def test_the_script_says_what_was_asked_for(small_job, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = ["--ntasks", 3, "--nodes", 2, "--time", "90", "--partition", "short", "--account", "me", "--max-running", 2]
    text = printed(
        capsys, small_job, *asked, "--launcher", "mpiexec", "--module", "gcc/12", "--sbatch=--mem=8G", "--set", "stop.rounds=7"
    )
    assert subprocess.run(["bash", "-n"], input=text, text=True).returncode == 0
    lines = text.splitlines()
    for option in (
        "job-name=mpi-compress-small", "array=0-4%2", "ntasks=3", "nodes=2", "time=01:30:00", "partition=short", "account=me",
        "signal=B:USR1@120", "open-mode=append", "requeue", "mem=8G", f"output={tmp_path}/results/small/slurm-%A_%a.out",
    ):  # fmt: skip
        assert f"#SBATCH --{option}" in lines
    assert "module load gcc/12" in lines
    assert f"source {BIN / 'activate'}" in lines
    assert f"cd {tmp_path}" in lines
    assert f'mpiexec -n 3 mpi-compress run {small_job} --out results --set stop.rounds=7 --index "$index" &' in lines
    assert not list(tmp_path.rglob("submit*"))


def test_a_rank_for_each_worker_and_the_master_unless_asked_otherwise_and_only_what_is_asked(small_job, tmp_path, capsys):
    text = printed(capsys, small_job, "--only", "CAT", "--launcher", "srun", "--mpi", "pmix", "--out", tmp_path)
    assert "#SBATCH --ntasks=8\n" in text
    assert "#SBATCH --array=4\n" in text
    assert "srun --mpi=pmix --kill-on-bad-exit=1 mpi-compress run" in text


def test_a_run_asks_for_what_its_own_table_says_and_its_id_stays(small_job, tmp_path, capsys):
    ids = {spec.index: spec.run_id for spec in load_job(small_job).runs}
    text = small_job.read_text().replace('label = "top-3"', 'label = "top-3"\nslurm = { partition = "long", time = "2 h" }')
    small_job.write_text(text.replace("workers.count", 'slurm = { partition = "short", ntasks = 3 }\nworkers.count', 1))
    assert {spec.index: spec.run_id for spec in load_job(small_job).runs} == ids
    short, long = printed(capsys, small_job, "--out", tmp_path, "--account", "me").split("#!/bin/bash")[1:]
    for line in ("array=0-1,3-4", "partition=short", "ntasks=3", "account=me"):
        assert f"#SBATCH --{line}\n" in short
    for line in ("array=2", "partition=long", "ntasks=8", "time=02:00:00", "account=me"):
        assert f"#SBATCH --{line}\n" in long
    assert "partition=other" in printed(capsys, small_job, "--partition", "other").split("array=2")[1]
    small_job.write_text(text.replace("partition", "partitoin"))
    refused(["submit", small_job, "--dry-run"], capsys, "top-3 slurm partitoin partition")
    small_job.write_text(text.replace('{ partition = "long", time = "2 h" }', "3"))
    refused(["plan", small_job], capsys, "top-3 slurm 3 [slurm]")


def test_what_is_done_is_not_submitted(small_job, tmp_path, capsys):
    out = ("--out", str(tmp_path))
    for only in ("GD", "top-3"):
        assert main(["run", str(small_job), "--only", only, *out, "--quiet"]) == 0
    assert "#SBATCH --array=1,3-4\n" in printed(capsys, small_job, *out)
    assert main(["submit", str(small_job), "--only", "GD", *out]) == 0
    assert nothing_left(capsys.readouterr().out)


@pytest.mark.parametrize(("options", "complaint"), [
    (["--time", "soon"], "--time: 'soon' is no time"),
    (["--warn", "x min"], "--warn: 'x min' is no time"),
    (["--time", "00:03:00"], "--time 00:03:00: is too short for a warning 2 min ahead"),
    (["--nodes", "-1"], "--nodes -1"),
    (["--nodes", "9", "--ntasks", "2"], "--nodes 9: is more than the 2 ranks of --ntasks"),
    ([], "there is no sbatch here; --dry-run prints the script"),
])  # fmt: skip
def test_what_cannot_be_submitted_is_refused(options, complaint, small_job, tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    refused(["submit", small_job, "--out", tmp_path, *options], capfd, complaint)
    assert not list(tmp_path.rglob("submit*"))


@pytest.mark.parametrize(("log", "words"), [
    (
        "GD: goes on from round 3\nmpi-compress: a9a: no such set\nsrun: error: node1: task 0: Exited with exit code 2\n",
        "a9a: no such set",
    ),
    (
        "mpi-compress: rank 2: Traceback (most recent call last):\n  File x\n    y\nValueError: wrong\n\nmore\n",
        "ValueError: wrong",
    ),
    ("YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\nPlease see the FAQ\n", "Killed (signal 9)"),
    ("slurmstepd: error: *** JOB 1 CANCELLED DUE TO TIME LIMIT ***\n", "*** JOB 1 CANCELLED DUE TO TIME LIMIT ***"),
    ("bash: line 9: module: command not found\n", "bash: line 9: module: command not found"),
    ("earlier: not this one\nmpi-compress: the run failed:\n  File x, line 1\nValueError: no more\nafterwards\n", "ValueError: no more"),
    ("earlier\nmpi-compress: it is full\nafterwards\n", "it is full"),
    ("", ""),
])  # fmt: skip
def test_the_last_words_of_a_task_say_why_it_ended(log, words, tmp_path):
    file = tmp_path / "slurm-1_0.out"
    file.write_text(log)
    assert Task("1_0", "", "", file).last_words() == words
    assert Task("1_0", "", "", Path("nowhere")).last_words() == ""


def test_a_queue_that_does_not_answer_is_not_an_empty_one(small_job, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    job = load_job(small_job)
    notes = tmp_path / "results" / job.name / "submitted.json"
    notes.parent.mkdir(parents=True)
    notes.write_text(json.dumps([{"job": "17", "tasks": {job.runs[0].run_id: 0}}]))
    squeue = tmp_path / "squeue"
    squeue.write_text("#!/bin/sh\necho 'slurm_load_jobs error: Unable to contact slurm controller' >&2\nexit 1\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert main(["plan", str(small_job)]) == 0
    assert "not known (slurm_load_jobs error: Unable to contact slurm controller), SLURM 17_0" in capsys.readouterr().out
    refused(["submit", small_job], capsys, "not known: slurm_load_jobs error: Unable to contact")
    assert "#SBATCH --array=0" in printed(capsys, small_job)
    assert main(["run", str(small_job), "--index", "0", "--quiet"]) == 0
    assert main(["submit", str(small_job), "--only", job.runs[0].label]) == 0
    assert nothing_left(capsys.readouterr().out)


@pytest.mark.parametrize("script", ["one-node", "several-nodes"])
def test_ready_scripts_are_bash(script):
    file = Path(__file__).parents[2] / "jobs" / "slurm" / f"{script}.slurm"
    assert subprocess.run(["bash", "-n", file]).returncode == 0
