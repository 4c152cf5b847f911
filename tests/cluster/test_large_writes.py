"""Checkpoints of 32 MB, a folder that turns read-only in mid-run, and a file system that is read-only."""

import os
import subprocess
from pathlib import Path

import pytest
from helpers.layouts import assert_equal
from helpers.running import BIN, gone_on, wait_for

import mpi_compress as mc

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="root alone can give up its rights")]
WIDE = """
seed = 7
data = { path = "wide.txt", dim = 200000 }
objective = { mu = 1e-3 }
workers = { count = 20 }
stop = { rounds = 40 }
log = { every = 5 }
checkpoint = { every = 1 }
algorithm = { name = "ef21", step = 0.1 }
up = { compressor = { name = "top-k", k = 5 } }
"""
BOUND = ["setpriv", "--inh-caps=-dac_override", "--bounding-set=-dac_override"]  # root, whom permissions bind


@pytest.fixture
def whole(tmp_path, monkeypatch):
    """The result when nothing happens; the job lies in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("wide.txt").write_text("".join(f"{(-1) ** i} {1 + i}:1 {5000 + 9 * i}:{i}\n" for i in range(1, 41)))
    Path("wide.toml").write_text(WIDE)
    return mc.run("wide.toml", out="whole")[0].file


def checkpoints() -> list[Path]:
    return [*Path("results").rglob("*.ckpt")]


def test_a_folder_that_turns_read_only_ends_the_run_in_one_line_and_loses_nothing(whole):
    line = [*BOUND, str(BIN / "mpi-compress"), "run", "wide.toml", "--quiet"]
    program = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
    wait_for(checkpoints, every=0.01)
    folder = checkpoints()[0].parent
    folder.chmod(0o555)
    said = program.communicate(timeout=100)[1]
    assert program.returncode == 2
    assert said.endswith(".ckpt: the checkpoint cannot be written: Permission denied\n")
    assert sorted(file.suffix for file in folder.iterdir()) == [".ckpt", ".part"]
    assert mc.read(next(folder.glob("*.part"))).attrs["status"] == "failed"
    refused = subprocess.run(line, capture_output=True, text=True)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    folder.chmod(0o755)
    done = subprocess.run([word for word in line if word != "--quiet"], capture_output=True, text=True)
    assert done.returncode == 0
    assert gone_on(done.stderr)
    assert_equal(whole, next(folder.glob("*.h5")))


@pytest.fixture
def file_system(tmp_path):
    """A folder that is a file system of its own; called with "ro" or "rw" it is mounted so."""
    folder = tmp_path / "results"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("root alone may mount a file system, and not in every container")
    yield lambda way: subprocess.run(["mount", "-o", f"remount,{way}", folder], check=True, capture_output=True)
    subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_read_only_file_system_ends_all_ranks_in_one_line(whole, file_system, ranks):
    launcher = [] if ranks == 1 else [str(BIN / "mpiexec"), "-n", str(ranks)]
    line = [*launcher, str(BIN / "mpi-compress"), "run", "wide.toml", "--quiet"]
    file_system("ro")
    said = subprocess.run(line, capture_output=True, text=True, timeout=100)
    assert said.returncode == 2
    (told,) = [line for line in said.stderr.splitlines() if line.startswith("mpi-compress")]
    assert told.endswith(": Read-only file system")
    assert "results" in told
    assert "Traceback" not in said.stderr
    file_system("rw")
    assert subprocess.run(line, capture_output=True, text=True, timeout=100).returncode == 0
    assert_equal(whole, next(Path("results").rglob("*.h5")))
