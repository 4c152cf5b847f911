"""What SLURM's words and the notes of submissions mean for a run: with stub commands in place of SLURM's."""

from pathlib import Path

import pytest
from helpers.running import SMALL_JOB, nothing_left
from helpers.slurm_stub import in_front, planned

from mpi_compress.cli.main import main

BEGUN = "mpi-compress task begins: run 0, 2026-11-22 10:00:00\n"
ENDED = {
    "BOOT_FAIL": "a node failed: ", "CANCELLED": "", "COMPLETED": "", "DEADLINE": "", "FAILED": "", "NODE_FAIL": "a node failed: ",
    "OUT_OF_MEMORY": "out of memory: ", "PREEMPTED": "", "REVOKED": "", "TIMEOUT": "time limit: ",
}  # fmt: skip


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    stub = in_front(tmp_path, monkeypatch)
    Path("small.toml").write_text(SMALL_JOB)
    assert main(["submit", "small.toml", "--only", "GD"]) == 0
    return stub


@pytest.mark.parametrize("state", ENDED)
def test_a_task_that_slurm_says_has_ended_is_no_longer_queued(state, slurm, capsys):
    log = Path("results/small/slurm-1001_0.out")
    log.write_text(f"{BEGUN}a last word\n")
    slurm.queue(f"1001_0|{state}|None|")
    assert planned(capsys).startswith(f"failed: {ENDED[state]}a last word (")
    assert str(log) in planned(capsys)
    assert main(["submit", "small.toml", "--only", "GD", "--dry-run"]) == 0
    assert "#SBATCH --array=0\n" in capsys.readouterr().out


@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "REQUEUED", "SUSPENDED", "COMPLETING", "CONFIGURING"])
def test_a_task_that_slurm_still_has_is_not_submitted_again(state, slurm, capsys):
    slurm.queue(f"1001_0|{state}|None|")
    assert "SLURM 1001_0" in planned(capsys)
    assert main(["submit", "small.toml", "--only", "GD"]) == 0
    assert nothing_left(capsys.readouterr().out)


def test_of_several_submissions_the_youngest_one_counts(slurm, capsys):
    for number in (1002, 1003):
        slurm.queue(*(f"{before}_0|FAILED|None|" for before in range(1001, number)))
        assert main(["submit", "small.toml", "--only", "GD"]) == 0
        slurm.queue(*(f"{before}_0|FAILED|None|" for before in range(1001, number)), f"{number}_0|PENDING|Priority|")
        assert planned(capsys) == f"queued (Priority), SLURM {number}_0"
    slurm.queue()
    for number, word in ((1001, "the first"), (1002, "the second"), (1003, "the third")):
        Path(f"results/small/slurm-{number}_0.out").write_text(f"{BEGUN}{word}\n")
    assert planned(capsys).startswith("failed: the third (")
