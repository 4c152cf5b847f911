"""Shared by all tests: a cache of their own, real data where it is, and real MPI."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("kernels", deadline=None)  # the first call of a kernel may compile it
settings.load_profile("kernels")

_CACHE = tempfile.TemporaryDirectory(prefix="mpi-compress-tests-")
os.environ["MPI_COMPRESS_CACHE"] = _CACHE.name

BIN = Path(sys.executable).parent


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets."""
    folder = os.environ.get("MPI_COMPRESS_DATA")
    if not folder:
        pytest.skip("real data sets are needed: set MPI_COMPRESS_DATA to their folder")
    return Path(folder)


def command(
    *arguments: str | Path, ranks: int | None = None, timeout: float = 120, **variables: str
) -> subprocess.CompletedProcess:
    """Run `mpi-compress`, under mpiexec where `ranks` is given."""
    launcher = [BIN / "mpiexec", "-n", str(ranks)] if ranks else []
    line = [str(a) for a in (*launcher, BIN / "mpi-compress", *arguments)]
    return subprocess.run(line, capture_output=True, text=True, timeout=timeout, env={**os.environ, **variables})


@pytest.fixture
def small_job(tmp_path: Path) -> Path:
    """A job of a second: GD, top-k and CAT on 120 generated samples."""
    file = tmp_path / "small.toml"
    file.write_text(SMALL_JOB)
    return file


SMALL_JOB = """
title = "small"
seed = 3
[data]
generator = "gspar"
samples = 120
dim = 40
[objective]
mu = "1e-3 L"
[workers]
count = 7
[cost]
model = "packet"
c1 = "16 B"
c0 = "8 B"
pmax = "16 B"
[stop]
rounds = 12
[[run]]
label = "GD"
algorithm = { name = "gd" }
[[run]]
label = "GD, floats of 32 bits, regulariser at the master"
algorithm = { name = "gd", regularizer = "master" }
up = { compressor = "identity", codec = { name = "dense", float = 32 } }
[[run]]
label = "top-3"
algorithm = { name = "gd" }
up = { compressor = { name = "top-k", k = 3 } }
[[run]]
label = "random 10%"
algorithm = { name = "gd", step = "0.1/L" }
up = { compressor = { name = "random-k", k = "10%" } }
down = { compressor = { name = "top-k", k = 5 }, codec = { name = "fixed", float = 32 } }
[[run]]
label = "CAT"
algorithm = { name = "cat" }
"""
