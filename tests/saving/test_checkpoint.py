"""A run that was stopped goes on to the very same bytes, on whatever ranks; and what is damaged is never gone on from."""

import pickle
import random
import re
import signal
import struct
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from helpers.disk import order_of_syncs
from helpers.layouts import assert_equal
from helpers.refusals import refused
from helpers.running import BIN, PATIENT, After, command, gone_on, rows_in, wait_for

import mpi_compress as mc
from mpi_compress.algorithms.estimators import cat
from mpi_compress.cli.main import main
from mpi_compress.core import seals
from mpi_compress.core.errors import UserError
from mpi_compress.core.signals import Stopped
from mpi_compress.engine import counting, executing, observer
from mpi_compress.results.files import checkpoint_of, part_of
from mpi_compress.saving import checkpoint, frames

LONG = ("--set", "stop.rounds=1500", "--only", "random 10%")


@pytest.mark.parametrize(("ranks", "number"), [
    (3, signal.SIGTERM),
    pytest.param(None, signal.SIGINT, marks=pytest.mark.slow),
    pytest.param(None, signal.SIGTERM, marks=pytest.mark.slow),
    pytest.param(None, signal.SIGUSR1, marks=pytest.mark.slow),
    pytest.param(3, signal.SIGINT, marks=pytest.mark.slow),
    pytest.param(3, signal.SIGUSR1, marks=pytest.mark.slow),
])  # fmt: skip
def test_a_signal_saves_and_ends_with_status_75(ranks, number, small_job, tmp_path, capfd):
    launcher = [BIN / "mpiexec", "-n", str(ranks)] if ranks else []
    line = [*launcher, BIN / "mpi-compress", "run", small_job, "--out", tmp_path / "a", "--quiet", *LONG]
    program = subprocess.Popen([str(a) for a in line], stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: rows_in(tmp_path))
        program.send_signal(number)
        _, said = program.communicate(timeout=PATIENT)
    finally:
        program.kill()
    (told,) = [text for text in said.splitlines() if "mpi-compress" in text]
    assert told.startswith(f"mpi-compress: random 10%: stopped by {number.name}, and saved")
    assert program.returncode == 75
    assert main(["run", str(small_job), "--out", str(tmp_path / "a"), *LONG]) == 0
    assert gone_on(capfd.readouterr().err)
    whole = mc.load_job(small_job, {"stop.rounds": 1500}, "random 10%")
    mc.run(whole, out=tmp_path / "b")
    (file,) = (tmp_path / "a").rglob("*.h5")
    assert_equal(tmp_path / "b" / "small" / file.name, file)


def test_a_time_limit_saves_and_ends_with_status_75(small_job, tmp_path, capfd):
    line = ["run", str(small_job), "--out", str(tmp_path), "--only", "GD", "--time-limit"]
    assert main([*line, "00:00:01"]) == 75  # this program is older
    reason = mc.read(next(tmp_path.rglob("*.part"))).attrs["reason"]
    assert reason.endswith(" limit of 1 s")
    said = capfd.readouterr().err.splitlines()[-1]
    assert said == f"mpi-compress: GD: {reason}, and saved; run the same command again to go on"
    assert main(["plan", *line[1:-1]]) == 0
    assert reason.replace("stopped", "stopped:") in capfd.readouterr().out
    refused([*line, "soon"], capfd, "--time-limit: 'soon'")
    assert main([*line, "1 d"]) == 0
    assert not list(tmp_path.rglob("*.part"))


def stopped_run(small_job, out):
    """A run that was stopped in the middle: the job, its .part and its .ckpt."""
    job = mc.load_job(small_job, {"checkpoint.every": 5}, "CAT")
    with pytest.raises(Stopped):
        mc.run(job, out=out, interrupts=After(4))
    return job, next(out.rglob("*.part")), next(out.rglob("*.ckpt"))


def test_checkpoints_do_not_change_the_run(small_job, tmp_path):
    with_and_without = []
    for every in (5, "1 h"):
        (run,) = mc.run(mc.load_job(small_job, {"checkpoint.every": every}, "CAT"), out=tmp_path / str(every))
        with_and_without.append(run.file)
    assert_equal(*with_and_without)
    assert len({mc.load_job(small_job, {"checkpoint.every": e}, "CAT").runs[0].run_id for e in (5, "1 min", "01:00:00")}) == 1
    for wrong in (0, "0 s", "often"):
        with pytest.raises(UserError, match="checkpoint"):
            mc.load_job(small_job, {"checkpoint.every": wrong})


@pytest.mark.parametrize(
    "damage", ["a flipped byte", "a length", "cut", "another run's", "rows are gone", "rows are changed", "no rows", "no HDF5"]
)
def test_what_is_damaged_is_begun_again(damage, small_job, tmp_path, capfd):
    job, part, saved = stopped_run(small_job, tmp_path)
    content = bytearray(saved.read_bytes())
    match damage:
        case "a flipped byte":
            content[len(content) // 2] ^= 1
        case "a length":
            content[7] = 4  # 2^58 bytes
        case "cut":
            del content[-5:]
        case "another run's":
            content[:] = content.replace(job.runs[0].run_id.encode(), b"x" * 12)
        case "no rows":
            part.unlink()
        case "no HDF5":
            part.write_bytes(b"nothing")
        case "rows are gone" | "rows are changed":
            import h5py

            with h5py.File(part, "r+") as h5:
                if damage == "rows are gone":
                    h5["trace/loss"].resize(1, axis=0)
                else:
                    h5["trace/loss"][1] += 1e-15
    saved.write_bytes(content)
    (run,) = mc.run(job, out=tmp_path)
    told = capfd.readouterr().err
    assert "goes on" not in told
    assert "CAT: begins again, for" in told
    (again,) = mc.run(job, out=tmp_path / "again")
    assert_equal(again.file, run.file)


KILLED = """
import os, signal, sys
import mpi_compress as mc
from mpi_compress.results.writer import Recorder
_, job, out, last, ranks = sys.argv
append = Recorder.append

def append_and_die(self, row):
    append(self, row)
    self.flush()
    if row.trace["round"] == int(last):
        os.kill(os.getpid(), signal.SIGKILL)

Recorder.append = append_and_die
comm = None
if int(ranks):
    from mpi4py import MPI
    comm = MPI.COMM_WORLD
mc.run(mc.load_job(job, {"checkpoint.every": 4}, "top-3"), comm=comm, out=out)
"""


def killed_run(job, out, last, ranks):
    """A run whose rank 0 is killed when it has flushed the row of a round: its .part, and the header of its checkpoint."""
    program = out.parent / "killed.py"
    program.write_text(KILLED)
    launcher = [BIN / "mpiexec", "-n", str(ranks)] if ranks else []
    line = [*launcher, sys.executable, program, job, out, last, ranks or 0]
    done = subprocess.run([str(a) for a in line], capture_output=True, text=True, timeout=PATIENT)
    assert done.returncode != 0, done.stderr
    (part,) = out.rglob("*.part")
    header = checkpoint.read_header(part.with_suffix(".ckpt"))
    assert header is not None
    return part, header


@pytest.mark.parametrize(
    ("ranks", "later"), [(None, None), *(pytest.param(3, later, marks=pytest.mark.slow) for later in (3, None))]
)
@pytest.mark.parametrize("last", [11, *(pytest.param(last, marks=pytest.mark.slow) for last in (5, 6, 8, 12))])
def test_rows_written_after_the_last_checkpoint_are_cut_when_a_killed_run_goes_on(last, ranks, later, small_job, tmp_path):
    part, header = killed_run(small_job, tmp_path / "killed", last, ranks)
    assert (header.k, header.mark.rows) == (4 * ((last - 1) // 4), 4 * ((last - 1) // 4) + 1)
    rows = mc.read(part).trace["round"]
    assert rows.tolist() == list(range(last + 1)), "the rows behind the checkpoint are there"
    done = command("run", small_job, "--out", tmp_path / "killed", "--only", "top-3", "--set", "checkpoint.every=4", ranks=later)
    assert done.returncode == 0, done.stderr
    assert gone_on(done.stderr) == [header.k]
    (file,) = (tmp_path / "killed").rglob("*.h5")
    (whole,) = mc.run(mc.load_job(small_job, only="top-3"), out=tmp_path / "whole")
    assert_equal(whole.file, file)
    assert {file.suffix for file in (tmp_path / "killed").rglob("*.h5.*")} == {".ckpt"}
    run = mc.read(file)
    bits = run.workers["wire_bits_up"][:, 2:].sum(axis=1)  # rank 0 hosts workers 0 and 1
    from_other_ranks = {(None, None): 0, (3, 3): bits[-1], (3, None): bits[header.k]}[ranks, later]
    assert 8 * run.attrs["mpi_bytes_received_up"] == from_other_ranks


def damaged(content: bytes, kind: str, draw: random.Random) -> bytes:
    """A file cut anywhere, or with one bit flipped, every second time among the first bytes, where HDF5 keeps its groups."""
    if kind == "cut":
        return content[: draw.randrange(len(content))]
    at, bit = draw.randrange(len(content) if draw.random() < 0.5 else 8192), 1 << draw.randrange(8)
    return content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :]


@pytest.mark.parametrize("kind", ["cut", "flipped"])
@pytest.mark.parametrize("times", [8, pytest.param(300, marks=pytest.mark.slow)])
def test_rows_cut_or_changed_anywhere_beside_a_good_checkpoint_are_one_line_and_the_same_bytes(
    kind, times, small_job, tmp_path, capfd
):
    job, part, saved = stopped_run(small_job, tmp_path / "a")
    rows, checkpointed, draw = part.read_bytes(), saved.read_bytes(), random.Random(times)
    (whole,) = mc.run(job, out=tmp_path / "b")
    capfd.readouterr()
    for _ in range(times):
        part.write_bytes(left := damaged(rows, kind, draw))
        saved.write_bytes(checkpointed)
        (run,) = mc.run(job, out=tmp_path / "a")
        told = capfd.readouterr().err.splitlines()
        surely = len(left) < len(rows) - 4096  # the last page of a file may hold nothing
        assert len(told) == 1 if surely else len(told) <= 1
        assert all("CAT: begins again, for" in line and "does not go with its checkpoint" in line for line in told)
        assert_equal(whole.file, run.file)
        run.file.unlink()
        checkpoint_of(run.file).unlink()
        assert not list((tmp_path / "a").rglob("*.h5*"))


@dataclass
class LargerWorker(cat.Worker):
    more: np.ndarray


@dataclass
class LargerCounters(counting.Counters):
    more: float = 0.0


@pytest.mark.parametrize("larger", ["a state", "what is counted", "the columns"])
def test_a_checkpoint_of_code_with_other_fields_is_begun_again(larger, small_job, tmp_path, capfd, monkeypatch):
    job, *_ = stopped_run(small_job, tmp_path)
    match larger:
        case "a state":
            monkeypatch.setattr(cat.CAT, "start_workers", lambda self, node, fs: LargerWorker(*np.zeros((2, len(fs)))))
        case "what is counted":
            for module in (observer, executing):
                monkeypatch.setattr(module, "Counters", LargerCounters)
        case "the columns":
            monkeypatch.setattr(executing, "schema", lambda: "more")
    begins_again_in_one_line(job, tmp_path, capfd)


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_checkpoint_of_before_is_begun_again(protocol, small_job, tmp_path, capfd):
    """They were pickles, which are not read any more."""
    job, _, saved = stopped_run(small_job, tmp_path)
    before = [checkpoint.read_header(saved), {"node": np.zeros(40)}, None, *[np.zeros(40)] * 7]
    with saved.open("wb") as out:
        for each in before:
            frames.write_frame(np.frombuffer(pickle.dumps(each, protocol), dtype="u1"), out)
    seals.seal(saved, job.runs[0].run_id)
    begins_again_in_one_line(job, tmp_path, capfd)


def frames_of(saved):
    with saved.open("rb") as stored:
        return [frame.tobytes() for frame in frames.frames_in(stored)]


def lengthened(frame):
    """A frame whose text was changed, with the length that the text has now."""
    end = frame.rfind(b"}]") + 2
    return struct.pack("<Q", end - 8) + frame[8:] if frame[8:9] == b"[" and end > 2 else frame


FRAMES = {
    "a worker is gone": lambda each: each[:-1],
    "a worker too many": lambda each: [*each, each[-1]],
    "the master is a worker": lambda each: [*each[:2], each[-1], *each[3:]],
    "the master alone": lambda each: each[2:3],
    "nothing": lambda each: [],
    "an empty frame": lambda each: [*each[:3], b"", *each[4:]],
    "a shorter vector": lambda each: [each[0], each[1].replace(b"[40]", b"[39]")[:-8], *each[2:]],
    "floats of 32 bits": lambda each: [each[0], each[1].replace(b"<f8", b"<f4"), *each[2:]],
    "another class": lambda each: [*each[:3], *(one.replace(b"cat.Worker", b"ef21.Worker") for one in each[3:])],
    "a pickle": lambda each: [*each[:3], pickle.dumps(np.zeros(3)), *each[4:]],
    "rounds below zero": lambda each: [re.sub(rb'"k":(\d+)', rb'"k":-\1', each[0]), *each[1:]],
    "rounds beyond the last": lambda each: [re.sub(rb'"k":(\d+)', rb'"k":10\1', each[0]), *each[1:]],
    "rows that are text": lambda each: [re.sub(rb'"rows":(\d+)', rb'"rows":"\1"', each[0]), *each[1:]],
    "a sum that is none": lambda each: [each[0].replace(b'"trace/loss",', b'"trace/loss",-'), *each[1:]],
    "a name that is none": lambda each: [each[0].replace(b'"trace/loss",', b'"traceloss",'), *each[1:]],
}


@pytest.mark.parametrize("change", FRAMES)
def test_a_checkpoint_of_right_checksums_that_says_what_cannot_be_is_begun_again(change, small_job, tmp_path, capfd):
    job, _, saved = stopped_run(small_job, tmp_path)
    good = frames_of(saved)
    changed = FRAMES[change](good)
    assert len(changed) != len(good) or any(len(a) != len(b) or a != b for a, b in zip(changed, good, strict=True))
    with saved.open("wb") as out:
        for each in changed:
            frames.write_frame(np.frombuffer(lengthened(each), dtype="u1"), out)
    seals.seal(saved, job.runs[0].run_id)
    begins_again_in_one_line(job, tmp_path, capfd)


def begins_again_in_one_line(job, out, capfd) -> None:
    """And then to the bytes of a run that was never stopped."""
    capfd.readouterr()
    (run,) = mc.run(job, out=out)
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("CAT: begins again, for ")
    assert line.endswith(".ckpt is damaged, or of another version")
    (again,) = mc.run(job, out=out / "again")
    assert_equal(again.file, run.file)


def test_what_a_kill_left_of_a_checkpoint_goes_with_the_run(small_job, tmp_path):
    (run,) = mc.run(mc.load_job(small_job).only("CAT"), out=tmp_path)
    left = checkpoint_of(run.file).with_suffix(".ckpt.new")
    left.write_bytes(b"half a checkpoint")
    mc.run(mc.load_job(small_job).only("CAT"), out=tmp_path, fresh=True)
    assert not left.exists()


def test_a_kill_between_the_result_and_the_end_of_its_checkpoint_leaves_nothing(small_job, tmp_path):
    """Seen once in a hundred kills."""
    job = mc.load_job(small_job, {"checkpoint.keep": False}, only="GD")
    (run,) = mc.run(job, out=tmp_path)
    left = checkpoint_of(run.file)
    left.write_bytes(b"saved")
    mc.run(job, out=tmp_path)
    assert not left.exists()
    left.write_bytes(b"saved")
    part_of(run.file).write_bytes(b"a run that is begun anew beside its result")
    mc.run(job, out=tmp_path)
    assert left.exists()


def test_fresh_begins_again(small_job, tmp_path, capfd):
    job, _, _ = stopped_run(small_job, tmp_path)
    mc.run(job, out=tmp_path, fresh=True, quiet=False)
    assert "goes on" not in capfd.readouterr().err


def test_what_is_not_done_can_be_looked_at(small_job, tmp_path, capsys):
    _, part, _ = stopped_run(small_job, tmp_path)
    assert main(["show", str(part)]) == 0
    assert "CAT: stopped (by the test)" in capsys.readouterr().out
    figure = tmp_path / "figure.png"
    for what in ([str(part)], [str(small_job), "--out", str(tmp_path)]):
        assert main(["plot", *what, "-o", str(figure)]) == 0
        assert capsys.readouterr().out == f"{figure}\n"
        assert figure.read_bytes().startswith(b"\x89PNG")
        figure.unlink()


@pytest.mark.parametrize("ranks", [None, pytest.param(3, marks=pytest.mark.slow)])
def test_two_at_once_the_second_is_refused(ranks, small_job, tmp_path):
    line = ["run", small_job, "--out", tmp_path, "--quiet", "--only", "GD", "--set", "stop.rounds=100000000"]
    first = subprocess.Popen([str(a) for a in (BIN / "mpi-compress", *line)])
    try:
        wait_for(lambda: rows_in(tmp_path))
        second = command(*line, ranks=ranks)
        assert second.returncode == 2
        assert len(second.stderr.strip().splitlines()) == 1
        assert "the run is locked by another process" in second.stderr
        rounds = len(mc.read(next(tmp_path.rglob("*.part"))).trace["round"])
        wait_for(lambda: len(mc.read(next(tmp_path.rglob("*.part"))).trace["round"]) > rounds)
    finally:
        first.kill()
        first.wait()


def test_a_warning_that_comes_when_all_is_done_ends_nothing():
    program = subprocess.Popen([BIN / "python", "-c", """
import os, signal, sys
sys.argv[1:] = ["list", "losses"]
from mpi_compress.algorithms.estimators import cat
from mpi_compress.cli.main import main
status = main()
os.kill(os.getpid(), signal.SIGUSR1)
sys.exit(status)
"""], stdout=subprocess.DEVNULL)  # fmt: skip
    assert program.wait(60) == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="files are named by /proc")
def test_a_checkpoint_is_on_the_disk_before_it_takes_its_name(small_job, tmp_path, monkeypatch):
    """The rows that it goes with, then the checkpoint, are synced; only then the one before it is replaced."""
    seen = order_of_syncs(monkeypatch)
    job = mc.load_job(small_job, {"checkpoint.every": 3}, only="CAT")
    (run,) = mc.run(job, out=tmp_path)
    kept = checkpoint_of(run.file).name
    names = [i for i, what in enumerate(seen) if what == ("name", kept)]
    assert names
    for i in names:
        before = f"{run.file.name}.part" if i < names[-1] else run.file.parent.name  # the last state comes after the result
        assert seen[i - 2 : i] == [("sync", before), ("sync", f"{kept}.new")]
        assert seen[i + 1] == ("sync", run.file.parent.name)
