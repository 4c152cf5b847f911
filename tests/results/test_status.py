"""A run's status: what its files tell, and how a plan prints it."""

from pathlib import Path

import h5py
import pytest
from helpers.running import run_of

from mpi_compress.results import checksums
from mpi_compress.results.files import part_of
from mpi_compress.results.status import LastRow, State, Status, status_of
from mpi_compress.results.writer import Recorder, Row

LAST = LastRow(4, 0.25, 0.1, 8e3, 9e3, 1.5)


@pytest.mark.parametrize(("status", "printed"), [
    (Status(State.COMPLETE, "", LAST), "done"),
    (Status(State.DIVERGED, "loss is infinite", LAST), "diverged: loss is infinite"),
    (Status(State.QUEUED, "Priority", LAST, "17_3"), "queued (Priority), SLURM 17_3 (round 4, loss 0.25)"),
    (Status(State.RUNNING, "", LAST, silence=300.0), "running (round 4, loss 0.25), no record for 5 min"),
    (Status(State.RUNNING, task="17_3", said="starting"), "starting, SLURM 17_3"),
    (Status(State.STOPPED, "by hand", LAST, silence=300.0), "stopped: by hand (round 4, loss 0.25)"),
    (Status(State.FAILED, "no memory", log=Path("x.out")), "failed: no memory (all of it: x.out)"),
    (Status(State.TO_DO), "to do"),
])  # fmt: skip
def test_a_plan_prints_state_reason_task_row_and_silence_in_this_order(status, printed):
    assert str(status) == printed


def test_every_state_has_a_look_of_the_page_and_a_word_of_its_own():
    assert {state.look for state in State} == {"holds", "fails", "open"}
    assert len({state.word for state in State}) == len(State)


def test_the_files_of_a_result_tell_its_status(tmp_path):
    file = tmp_path / "a-1.h5"
    assert status_of(file) == Status(State.TO_DO)
    recorder = Recorder(file, {"label": "a", "status": "running", "reason": ""})
    recorder.append(Row({"round": 7, "loss": 0.5}, {}, {"seconds": 2.0}))
    recorder.flush()
    running = status_of(file)
    assert (running.state, running.last.round, running.last.loss, running.last.seconds) == (State.RUNNING, 7, 0.5, 2.0)
    recorder.abandon("stopped", "by hand")
    stopped = status_of(file)
    assert (stopped.state, stopped.reason, stopped.last.round) == (State.STOPPED, "by hand", 7)
    with h5py.File(part_of(file), "r+") as h5:
        h5.attrs.update({"status": "running", "reason": ""})
    assert status_of(file).state is State.BROKEN_OFF
    part_of(file).write_bytes(b"")
    assert status_of(file).state is State.BROKEN_OFF, "begun, and nothing of it can be read"
    file.write_bytes(b"no result")
    assert status_of(file).state is State.UNREADABLE
    assert str(file) in status_of(file).reason


def test_a_word_that_is_no_state_cannot_be_read(tmp_path):
    run = run_of(tmp_path, {"name": "gd"}, rounds=1)
    with h5py.File(run.file, "r+") as h5:
        h5.attrs["status"] = "dreaming"
        del h5.attrs[checksums.ATTRIBUTE]
    assert status_of(run.file).state is State.UNREADABLE
