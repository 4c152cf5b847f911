"""The layout does not matter: real runs on real ranks, compared byte for byte."""

from pathlib import Path

import pytest
from helpers.layouts import ALLGATHER, MASTER_WORKS, assert_equal, assert_equal_on, played_in_one_process
from helpers.running import SMALL_JOB, command

import mpi_compress as mc

LAYOUTS = {
    "two ranks": (2, []),
    "three ranks": (3, []),
    "five ranks": (5, []),
    "ten ranks for seven workers": (10, []),
    "three ranks, the master hosts workers": (3, MASTER_WORKS),
    "allgather on three ranks": (3, ALLGATHER),
    "allgather on ten ranks": (10, ALLGATHER),
}


@pytest.fixture(scope="module")
def in_one_process(tmp_path_factory) -> tuple[Path, Path]:
    return played_in_one_process(tmp_path_factory.mktemp("one"), "small", SMALL_JOB)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_are_equal_byte_for_byte_on(layout, in_one_process, tmp_path):
    assert_equal_on(*LAYOUTS[layout], in_one_process, tmp_path)


TOO_FINE = """
[data]
path = "{data}"
[objective]
mu = 0.1
[workers]
count = 3
[stop]
rounds = 20
[[run]]
label = "worker 2 rounds too finely"
algorithm = {{ name = "gd" }}
{way} = {{ compressor = {{ name = "rounding", step = 1e-9 }} }}
"""


@pytest.mark.parametrize("layout", ["three ranks", "ten ranks for seven workers", "allgather on three ranks"])
@pytest.mark.parametrize(("way", "who"), [("up", "worker 2"), ("down", "the master")])
def test_who_could_not_send_and_what_would_do_is_told_on_any_layout(layout, way, who, tmp_path):
    """Two workers have small samples; the last one's gradients are 2³¹ steps of the grid and more."""
    data = tmp_path / "uneven.svm"
    data.write_text("".join(f"{y} 1:{y * size}\n" for size in (1, 1, 1e3) for y in (-1, 1)))
    played = played_in_one_process(tmp_path, "fine", TOO_FINE.format(data=data, way=way), status=3)
    (run,) = (mc.read(f) for f in played[1].glob("*.h5"))
    assert run.status == "diverged"
    assert run.attrs["reason"].startswith(f"the update of round 0 is not finite: {who}: a value of magnitude")
    assert run.attrs["reason"].endswith("use a larger step")
    assert_equal_on(*LAYOUTS[layout], played, tmp_path / "other", status=3)


COMPILED = """
[data]
generator = "gspar"
samples = 60
dim = 5000
[objective]
mu = "1e-3 L"
[workers]
count = 2
[stop]
rounds = 6
[[run]]
label = "EF"
algorithm = { name = "ef", batch = 2 }
up = { compressor = { name = "hard-threshold", threshold = 0.1 } }
[[run]]
label = "CAT"
algorithm = { name = "cat" }
up = { compressor = "stochastic" }
"""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_kernels_from_the_cache_give_the_bits_of_those_that_were_compiled_here(dtype, tmp_path, monkeypatch):
    """Ranks of one run have both: one compiles, the others read what it wrote."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    text = COMPILED.replace("dim = 5000", f'dim = 5000\ndtype = "{dtype}"')
    compiled, cached = (played_in_one_process(tmp_path / folder, "compiled", text)[1] for folder in ("first", "second"))
    for file in compiled.glob("*.h5"):
        assert_equal(file, cached / file.name)


@pytest.mark.parametrize("layout", ["three ranks", "three ranks, the master hosts workers", "allgather on three ranks"])
def test_bytes_received_from_other_ranks_are_those_logged_for_their_workers(layout, in_one_process, tmp_path):
    ranks, options = LAYOUTS[layout]
    done = command("run", in_one_process[0], "--out", tmp_path, "--quiet", "--only", "top-3", *options, ranks=ranks)
    assert done.returncode == 0, done.stderr
    (run,) = (mc.read(f) for f in tmp_path.glob("small/*.h5"))
    per_worker = run.workers["wire_bits_up"][-1]
    here = {"three ranks": 0, "three ranks, the master hosts workers": 2, "allgather on three ranks": 2}[layout]  # rank 0's workers
    assert 8 * run.attrs["mpi_bytes_received_up"] == per_worker[here:].sum()
    assert per_worker.sum() == run.trace["wire_bits_up"][-1]


def test_allgather_has_no_messages_down_on_any_number_of_ranks(in_one_process, tmp_path):
    down = ("wire_bits_down", "paper_bits_down", "cost_down")
    for ranks in (None, 3):
        options = ["--only", "top-3", "--set", 'workers.exchange="allgather"', "--out", tmp_path / str(ranks), "--quiet"]
        assert command("run", in_one_process[0], *options, ranks=ranks).returncode == 0
        (run,) = (mc.read(f) for f in (tmp_path / str(ranks)).glob("small/*.h5"))
        assert [run.trace[name].max() for name in down] == [0, 0, 0]


def test_python_call_on_a_communicator_gives_the_same_numbers(in_one_process, tmp_path):
    import os
    import subprocess

    from helpers.running import BIN

    program = f"""
from mpi4py import MPI
import mpi_compress as mc
runs = mc.run(mc.load_job({str(in_one_process[0])!r}).only("CAT"), comm=MPI.COMM_WORLD, out={str(tmp_path)!r})
assert len(runs) == (1 if MPI.COMM_WORLD.rank == 0 else 0)
"""
    line = [BIN / "mpiexec", "-n", "3", BIN / "python", "-m", "mpi4py", "-c", program]
    done = subprocess.run([str(a) for a in line], capture_output=True, text=True, timeout=120, env=os.environ)
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.glob("small/*.h5")
    one, other = mc.read(in_one_process[1] / file.name), mc.read(file)
    assert one.trace["loss"].tobytes() == other.trace["loss"].tobytes()
