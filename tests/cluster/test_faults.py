"""Results are safe: kills at random moments, full disks, folders that cannot be written."""

import os
import random
import subprocess
from functools import partial
from pathlib import Path

import pytest
from helpers.killing import Kills, Program, begun
from helpers.layouts import assert_equal
from helpers.running import BIN, command

import mpi_compress as mc

pytestmark = pytest.mark.slow
KILLS = 50
RANKS = 4

JOB = """
seed = 7
data = { generator = "gspar", samples = 140, dim = 60 }
objective = { mu = "1e-3 L" }
workers = { count = 7 }
stop = { rounds = 4000 }
checkpoint = { every = 40 }
[[run]]
label = "ef"
algorithm = { name = "ef", batch = 1, momentum = 0.5, form = "update", step = "0.2/L" }
up = { compressor = { name = "top-k", k = 3 } }
[[run]]
label = "marina"
algorithm = { name = "marina" }
up = { compressor = { name = "random-k", k = 9 } }
[[run]]
label = "cat"
algorithm = { name = "cat" }
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory) -> tuple[Path, Path]:
    """A job, and its results when nothing happens."""
    folder = tmp_path_factory.mktemp("whole")
    file = folder / "job.toml"
    file.write_text(JOB)
    mc.run(mc.load_job(file), out=folder)
    return file, folder / "job"


def test_kills_at_random_moments_lose_nothing(job, tmp_path):
    """Of a worker, of the master, of mpiexec: all ranks end, no half result gets its name, and what goes on ends in the same bytes."""
    file, reference = job
    wanted = sorted(f.name for f in reference.glob("*.h5"))
    kills = Kills(KILLS, random.Random(0), longest=14.0, ranks=RANKS)

    def nothing_is_half(program: Program) -> None:
        assert program.returncode != 0
        for whole in out.rglob("*.h5"):
            assert_equal(reference / whole.name, whole)
        for part in out.rglob("*.part"):
            if part.stat().st_size:
                mc.read(part)

    while kills.done.total() < KILLS:
        out = tmp_path / str(kills.programs)
        line = [BIN / "mpiexec", "-n", str(RANKS), BIN / "mpi-compress", "run", file, "--out", out]
        kills.until_it_ends(partial(begun, line), nothing_is_half)
        assert sorted(f.name for f in (out / "job").iterdir()) == wanted
        for name in wanted:
            assert_equal(reference / name, out / "job" / name)
    print(f"\n{kills}")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 8 MB, and a function that leaves so many bytes of it free."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("only root may mount a small file system")

    def leave(free: int) -> None:
        (disk / "filler").unlink(missing_ok=True)
        stat = os.statvfs(disk)
        with (disk / "filler").open("wb") as filler:
            os.posix_fallocate(filler.fileno(), 0, stat.f_bavail * stat.f_frsize - free)

    yield disk, leave
    subprocess.run(["umount", disk], check=True)


def refused(done: subprocess.CompletedProcess) -> None:
    assert done.returncode == 2, done.stderr
    lines = [line for line in done.stderr.splitlines() if line and "Abort" not in line and "begins again" not in line]
    assert len(lines) == 1
    assert "No space left on device" in lines[0]


@pytest.mark.parametrize("ranks", [None, 3])
@pytest.mark.parametrize("free", [50_000, 600_000, 1_600_000], ids=["none to begin", "none for rows", "none later"])
def test_a_disk_that_is_full_of_rows(ranks, free, job, small_disk):
    file, reference = job
    disk, leave = small_disk
    only = ("--only", "cat", "--out", disk, "--quiet")
    assert command("run", file, *only, "--set", "stop.rounds=10").returncode == 0
    (earlier,) = disk.rglob("*.h5")
    before = earlier.read_bytes()
    leave(free)
    refused(command("run", file, *only, ranks=ranks))
    refused(command("run", file, *only, ranks=ranks))
    assert earlier.read_bytes() == before
    assert not [f for f in disk.rglob("*.h5") if f != earlier]
    (disk / "filler").unlink()
    assert command("run", file, *only, ranks=ranks).returncode == 0
    (result,) = (f for f in disk.rglob("*.h5") if f != earlier)
    assert_equal(reference / result.name, result)
    assert not list(disk.rglob("*.ckpt*"))


@pytest.mark.parametrize("free", [5_000, 20_000, 1_200_000], ids=["none to begin", "none for other ways", "none for notes"])
def test_a_disk_that_a_verification_fills(free, tmp_path, small_disk, monkeypatch):
    disk, leave = small_disk
    file = tmp_path / "job.toml"
    file.write_text(JOB)
    monkeypatch.setenv("TMPDIR", str(disk))
    leave(free)
    done = command("run", file, "--only", "cat", "--verify", "3000")
    assert done.returncode == 2, done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"mpi-compress: --verify {disk}/")
    assert line.endswith(": cannot be written: No space left on device")
    assert [*disk.iterdir()] == [disk / "filler"]


WIDE = """
seed = 7
data = { path = "wide.txt", dim = 10000 }
objective = { mu = 1e-3 }
workers = { count = 20 }
stop = { rounds = 60 }
log = { every = 1000 }
checkpoint = { every = 20 }
algorithm = { name = "ef21", step = 0.1 }
up = { compressor = { name = "top-k", k = 5 } }
"""


@pytest.mark.parametrize("ranks", [None, 3])
def test_a_disk_that_has_no_room_for_a_checkpoint(ranks, tmp_path, small_disk):
    disk, leave = small_disk
    (tmp_path / "wide.txt").write_text("".join(f"{(-1) ** i} {1 + i}:1 {5000 + 9 * i}:{i}\n" for i in range(1, 41)))
    file = tmp_path / "wide.toml"
    file.write_text(WIDE)
    (whole,) = mc.run(mc.load_job(file), out=tmp_path / "whole")
    leave(3_000_000)
    done = command("run", file, "--out", disk, "--quiet", ranks=ranks)
    refused(done)
    assert "checkpoint" in done.stderr
    assert not list(disk.rglob("*.new"))
    assert mc.read(next(disk.rglob("*.part"))).attrs["status"] == "failed"
    (disk / "filler").unlink()
    assert command("run", file, "--out", disk, "--quiet", ranks=ranks).returncode == 0
    assert_equal(whole.file, next(disk.rglob("*.h5")))


def test_a_disk_that_has_no_room_for_parsed_data(job, tmp_path, small_disk):
    file, reference = job
    disk, leave = small_disk
    leave(20_000)
    line = ("run", file, "--out", tmp_path / "out", "--only", "cat", "--quiet", "--set", "data.samples=140")
    refused(command(*line, MPI_COMPRESS_CACHE=str(disk / "cache")))
    refused(command(*line, MPI_COMPRESS_CACHE=str(disk / "cache"), ranks=3))
    assert not [f for f in (disk / "cache").rglob("*") if f.is_file()]
    (disk / "filler").unlink()
    assert command(*line, MPI_COMPRESS_CACHE=str(disk / "cache")).returncode == 0
    (result,) = (tmp_path / "out").rglob("*.h5")
    assert_equal(reference / result.name, result)


def test_a_data_folder_that_is_read_only(tmp_path):
    """Nothing is written beside the data, not even by root."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "tiny").write_text("".join(f"{(-1) ** i} {1 + i % 3}:1 {4 + i % 5}:{i}\n" for i in range(1, 30)))
    mounted = subprocess.run(["mount", "--bind", "-o", "ro", data, data], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root may mount a folder read-only")
    try:
        with pytest.raises(OSError, match="Read-only"):
            (data / "more").write_text("")
        file = tmp_path / "job.toml"
        file.write_text('data = { name = "tiny" }\nworkers = { count = 3 }\nstop = { rounds = 3 }\nalgorithm = { name = "gd" }\n')
        for ranks in (None, 3):
            done = command("run", file, "--out", tmp_path / f"out{ranks}", "--quiet", ranks=ranks, MPI_COMPRESS_DATA=str(data))
            assert done.returncode == 0, done.stderr
        assert [f.name for f in data.iterdir()] == ["tiny"]
    finally:
        subprocess.run(["umount", data], check=True)
