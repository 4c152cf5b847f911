"""Which tasks queue themselves again: the script as `submit` writes it, with stub commands in place of SLURM's."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.running import PATIENT, SMALL_JOB, wait_for
from helpers.slurm_stub import in_front

from mpi_compress.cli.main import main

CANCELLED = ("COMPLETING None", "CANCELLED None", "COMPLETING Dependency", "PENDING BeginTime", "")

RANKS = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: os._exit(75))
pathlib.Path(os.environ["STUB"], "listens").touch()
time.sleep(60)
"""  # a shell cannot listen to what was ignored when it started


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A job that was submitted as 1001, whose ranks end with status $CODE, at once or when they are asked to."""
    stub = in_front(tmp_path, monkeypatch)
    Path("small.toml").write_text(SMALL_JOB)
    (tmp_path / "stub" / "ranks.py").write_text(RANKS)
    stub.command("srun", f'if [ "$CODE" ]; then exit $CODE; fi\nexec {sys.executable} "$STUB/ranks.py"\n')
    stub.command("sleep", "exec /bin/sleep 0.02\n")
    assert main(["submit", "small.toml", "--launcher", "srun", "--venv", str(tmp_path / "venv")]) == 0
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "activate").write_text("")
    return stub


@pytest.mark.parametrize("state", ["RUNNING None", "COMPLETING TimeLimit", "TIMEOUT TimeLimit"])
def test_what_was_saved_without_being_cancelled_is_queued_again(state, slurm):
    """A task that preempts it, a signal to its ranks, the time limit: with or without a warning before."""
    assert slurm.task("1001", 2, CODE="75", STATE=state).returncode == 75
    assert slurm.requeued == ["requeue 10019"]


@pytest.mark.parametrize("state", CANCELLED)
def test_a_cancelled_task_does_not_queue_itself_again(state, slurm):
    """Nor one that SLURM has queued again by itself; an unknown state is one without an answer here."""
    if not state:
        (slurm.folder / "silent").touch()
    assert slurm.task("1001", 2, CODE="75", STATE=state).returncode == 75
    assert slurm.requeued == []


@pytest.mark.parametrize("code", ["0", "2", "3", "137"])
def test_what_is_done_or_failed_is_not_queued_again(code, slurm):
    assert slurm.task("1001", 0, CODE=code, STATE="RUNNING None").returncode == int(code)
    assert slurm.requeued == []


def test_a_task_is_not_queued_again_for_ever(slurm):
    for restarts in ("199", "200"):
        slurm.task("1001", 0, CODE="75", STATE="RUNNING None", SLURM_RESTART_COUNT=restarts)
    assert slurm.requeued == ["requeue 10019"]


WARNED = [("RUNNING None", True), ("COMPLETING TimeLimit", True), ("", True), ("COMPLETING None", False)]
SLOW = "() { builtin kill \"$@\"; local own=$?; /bin/sleep 0.3; return $own; }"  # the shell goes on when what it signalled has long ended


@pytest.mark.parametrize("kill", [None, SLOW], ids=["", "ranks end before the shell goes on"])
@pytest.mark.parametrize("warnings", [1, 3])
@pytest.mark.parametrize(("state", "again"), WARNED)
def test_a_warning_saves_the_run_and_queues_it_again_unless_it_is_cancelled_meanwhile(state, again, warnings, kill, slurm):
    """Without an answer from SLURM a warned task takes it that its time limit was meant."""
    if not state:
        (slurm.folder / "silent").touch()
    script, first = next(iter(slurm.submitted.values()))[-2:]
    variables = {**os.environ, "SLURM_ARRAY_TASK_ID": "0", "SLURM_JOB_ID": "10019", "STATE": state, "CODE": ""}
    if kill:
        variables["BASH_FUNC_kill%%"] = kill
    task = subprocess.Popen(["bash", script, first], env=variables, stdout=subprocess.PIPE, text=True)
    wait_for((slurm.folder / "listens").exists)
    task.send_signal(signal.SIGTERM)  # SLURM sends it to the script too; the ranks alone act on it
    for _ in range(warnings):
        task.send_signal(signal.SIGUSR1)
        time.sleep(0.01)
    said = task.communicate(timeout=PATIENT)[0]
    assert task.returncode == 75
    assert slurm.requeued == (["requeue 10019"] if again else [])
    assert [line.partition(":")[0] for line in said.splitlines()] == [
        "mpi-compress task begins",
        "mpi-compress task ends with status 75",
    ]
