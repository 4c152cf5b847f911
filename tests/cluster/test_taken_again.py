"""What cannot be read is submitted again, and a task waits for what is left of an earlier one: with stub commands for SLURM's."""

import re
import subprocess
from pathlib import Path

import pytest
from helpers.refusals import naming, refused
from helpers.running import BIN, SMALL_JOB, nothing_left, rows_in, wait_for
from helpers.slurm_stub import in_front

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.engine import executing

LINE = ["--only", "GD"]


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    stub = in_front(tmp_path, monkeypatch)
    Path("small.toml").write_text(SMALL_JOB)
    return stub


@pytest.mark.parametrize("content", [b"", b"no HDF5", None], ids=["empty", "text", "one bit"])
def test_a_result_that_cannot_be_read_is_kept_aside_and_its_run_submitted(content, slurm, capsys):
    (run,) = mc.run(mc.load_job("small.toml", only="GD"))
    loss = run.trace["loss"].tobytes()
    damaged = run.file.read_bytes().replace(loss, bytes([loss[0] ^ 1]) + loss[1:]) if content is None else content
    run.file.write_bytes(damaged)
    for command in ("plan", "table"):
        main([command, "small.toml", *LINE])
        said = "".join(capsys.readouterr())
        assert "`run --fresh`" in said
    assert main(["submit", "small.toml", *LINE, "--dry-run"]) == 0
    assert run.file.exists()
    capsys.readouterr()
    assert main(["submit", "small.toml", *LINE, "--launcher", "srun"]) == 0
    said, kept = capsys.readouterr(), Path(f"{run.file}.old")
    assert said.out.startswith("submitted 1 run as job 1001")
    (line,) = said.err.splitlines()
    assert re.search(naming(f"{run.file} `run --fresh` kept as {kept}"), line)
    assert kept.read_bytes() == damaged
    assert slurm.task("1001", 0).returncode == 0
    assert mc.read(run.file).trace["loss"].tolist() == run.trace["loss"].tolist()


def test_fresh_submits_what_is_done_and_keeps_its_results(slurm, capsys):
    (run,) = mc.run(mc.load_job("small.toml", only="GD"))
    assert main(["submit", "small.toml", *LINE]) == 0
    assert nothing_left(capsys.readouterr().out)
    assert main(["submit", "small.toml", *LINE, "--fresh", "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("# `submit --fresh` first renames results")
    assert main(["submit", "small.toml", *LINE, "--fresh"]) == 0
    assert capsys.readouterr().out.startswith("submitted 1 run as job 1001")
    assert not run.file.exists()
    assert mc.read(Path(f"{run.file}.old").rename("old.h5")).rows == run.rows
    slurm.queue("1001_0|PENDING|Resources|x")
    assert main(["submit", "small.toml", *LINE, "--fresh"]) == 0
    assert nothing_left(capsys.readouterr().out)


@pytest.fixture
def other(tmp_path, monkeypatch):
    """A process that plays the run, and does not end by itself."""
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SMALL_JOB)
    line = [BIN / "mpi-compress", "run", "small.toml", "--set", "stop.rounds=100000000", "--only", "GD", "--quiet"]
    process = subprocess.Popen([str(part) for part in line], stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: rows_in(Path("results")))
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_task_waits_for_a_process_of_before_and_then_ends_to_be_queued_again(other, monkeypatch, capfd):
    """Outside of SLURM the second process is refused."""
    line = ["run", "small.toml", "--set", "stop.rounds=100000000", *LINE]
    refused(line, capfd, "GD")
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setattr(executing, "_IN_A_TASK", 1.0)
    assert main(line) == 75
    said = capfd.readouterr().err
    assert "GD: another process executes this run; waiting for it" in said
    assert "GD: stopped by 1 s of waiting while another process executes it; " in said


def has_rows(part: Path) -> bool:
    """True if rows can be read; while they are flushed they may not be."""
    try:
        return mc.read(part).rows > 0
    except mc.UserError:
        return False


def test_a_task_goes_on_when_the_process_of_before_has_ended(other, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    line = [BIN / "mpi-compress", "run", "small.toml", "--set", "stop.rounds=100000000", *LINE]
    process = subprocess.Popen([str(part) for part in line], stderr=subprocess.PIPE, text=True)
    assert process.stderr
    for said in process.stderr:
        if "waiting" in said:
            break
    other.kill()
    wait_for(lambda: other.poll() is not None)
    part = next(Path("results").rglob("*.part"))
    left = part.stat().st_mtime_ns
    wait_for(lambda: part.exists() and part.stat().st_mtime_ns != left and has_rows(part))
    process.terminate()
    assert "stopped by SIGTERM, and saved" in process.communicate()[1]
    assert process.returncode == 75
