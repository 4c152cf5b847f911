"""Each kept file damaged at random, 500 times: never another number, never a traceback. The counts are printed (pytest -s)."""

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from helpers.running import SMALL_JOB, After
from helpers.slurm_stub import StubSlurm

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.core.signals import Stopped
from mpi_compress.problem.datasets import opening
from mpi_compress.problem.datasets.cache import cache_folder

TIMES = 500

pytestmark = pytest.mark.slow


def damaged(content: bytes, draw: random.Random) -> bytes:
    """A file with one to four bits flipped, bytes overwritten, cut, lengthened, or emptied."""
    changed, at = bytearray(content), draw.randrange(max(1, len(content)))
    match draw.choice(["bits", "bits", "bits", "zeros", "noise", "cut", "longer", "empty"]):
        case "bits":
            held = [i for i, byte in enumerate(changed) if byte]
            for _ in range(draw.randint(1, 4)):
                changed[draw.choice(held)] ^= 1 << draw.randrange(8)
        case "zeros":
            changed[at : at + 64] = bytes(len(changed[at : at + 64]))
        case "noise":
            changed[at : at + 64] = draw.randbytes(len(changed[at : at + 64]))
        case "cut":
            del changed[at:]
        case "longer":
            changed += draw.randbytes(draw.randint(1, 200))
        case "empty":
            changed.clear()
    return bytes(changed)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a job and a cache of its own."""
    monkeypatch.setenv("MPI_COMPRESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SMALL_JOB)
    return tmp_path


def numbers(run) -> tuple:
    """All that a result says, but for seconds."""
    return {name: column.tobytes() for name, column in run.trace.items()}, {key: run.attrs[key] for key in ("L", "mu", "f_star", "dim")}


def report(what: str, counts: Counter) -> None:
    print(f"\n{what}: {', '.join(f'{n} {how}' for how, n in sorted(counts.items()))}")


@pytest.mark.parametrize("what", ["gspar-????????????????.h5", "*-eigenvalues-*-1.json", "*-optimum-*.h5"])
def test_data_eigenvalues_and_optima(what, place, capfd):
    job, counts, draw = mc.load_job("small.toml", only="GD"), Counter(), random.Random(what)
    wanted = numbers(mc.run(job, out="out")[0])
    (file,) = cache_folder().rglob(what)
    whole = file.read_bytes()
    for _ in range(TIMES):
        opening._sound.clear()
        file.write_bytes(damaged(whole, draw))
        capfd.readouterr()
        (run,) = mc.run(job, out="out", fresh=True)
        told = [line for line in capfd.readouterr().err.splitlines() if "made anew" in line]
        assert numbers(run) == wanted
        assert len(told) <= 1
        counts["made anew" if told else "unchanged"] += 1
    report(what, counts)


@pytest.mark.parametrize("suffix", [".part", ".ckpt"])
def test_unfinished_results_and_checkpoints(suffix, place, capfd):
    """They are read, and gone on from."""
    job, counts, draw = mc.load_job("small.toml", only="CAT"), Counter(), random.Random(suffix)
    wanted = numbers(mc.run(job, out="whole")[0])
    with pytest.raises(Stopped):
        mc.run(job, out="out", interrupts=After(2))
    files = {file: file.read_bytes() for file in Path("out").rglob("*.h5.*")}
    (file,) = (file for file in files if file.suffix == suffix)
    (part,) = (file for file in files if file.suffix == ".part")
    before = mc.read(part)
    for _ in range(TIMES):
        for each, content in files.items():
            each.write_bytes(content)
        file.write_bytes(damaged(files[file], draw))
        if suffix == ".part":
            try:
                rows = mc.read(file).trace
            except mc.UserError:
                counts["refused"] += 1
            else:
                assert all(column.tobytes() == before.trace[name][: len(column)].tobytes() for name, column in rows.items())
                counts["read the same"] += 1
        capfd.readouterr()
        (run,) = mc.run(job, out="out")
        told = capfd.readouterr().err
        assert "Traceback" not in told
        assert numbers(run) == wanted
        counts["begun again" if "begins again" in told else "gone on from"] += 1
        run.file.unlink()
    report(suffix, counts)


def test_results(place):
    job, counts, draw = mc.load_job("small.toml", only="CAT"), Counter(), random.Random("results")
    (run,) = mc.run(job, out="out")
    whole, wanted = run.file.read_bytes(), numbers(run)
    for _ in range(TIMES):
        run.file.write_bytes(damaged(whole, draw))
        try:
            found = numbers(mc.read(run.file))
        except mc.UserError:
            counts["refused"] += 1
        else:
            assert found == wanted
            counts["read the same"] += 1
    report(".h5", counts)


def test_submitted_jobs(place, monkeypatch):
    """A task of a damaged submission refuses, or gives the same numbers; many are tried by one process."""
    stub = StubSlurm(place / "stub")
    for name, value in stub.variables.items():
        monkeypatch.setenv(name, value)
    assert main(["submit", "small.toml", "--only", "GD", "--launcher", "srun"]) == 0
    folder, counts, draw = Path("results/small/submitted/1"), Counter(), random.Random("submitted")
    files = {file: file.read_bytes() for file in folder.iterdir()}
    (whole,) = mc.run(mc.load_job("small.toml", only="GD"), out="whole")
    line = [sys.executable, "-m", "mpi_compress", "run", "small.toml", "--only", "GD", "--quiet", "--one-process", "--index", "0"]
    for file in draw.choices(list(files), k=TIMES):
        for each, content in files.items():
            each.write_bytes(content)
        file.write_bytes(damaged(files[file], draw))
        done = subprocess.run([*line, "--submitted", str(folder)], capture_output=True, text=True, env=os.environ)
        assert "Traceback" not in done.stderr
        found = [mc.read(each) for each in Path("results").rglob("*.h5")]
        assert done.returncode == (0 if found else 2)
        assert all(numbers(run) == numbers(whole) for run in found)
        for run in found:
            run.file.unlink()
        counts[f"{file.name} {'played the same' if found else 'refused'}"] += 1
    report("submitted jobs", counts)
