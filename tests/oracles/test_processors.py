"""A run has the same bits on every x86-64 processor: the kernels' instructions and those of BLAS are those of older ones."""

import os
import platform
import subprocess

import pytest
from helpers.running import BIN, PATIENT

import mpi_compress as mc

JOB = """
seed = 1
data = { generator = "gspar", samples = 400, dim = 60 }
workers.count = 4
stop.rounds = 20
[[run]]
label = "gd"
algorithm = { name = "gd" }
[[run]]
label = "minibatches, float32"
algorithm = { name = "gd", batch = 5 }
data = { generator = "gspar", samples = 400, dim = 60, dtype = "float32" }
[[run]]
label = "cat"
algorithm = { name = "cat" }
[[run]]
label = "cat, stochastic"
algorithm = { name = "cat" }
up.compressor = "stochastic"
[[run]]
label = "diana"
algorithm = { name = "diana" }
up = { compressor = { name = "qsgd", levels = 4 } }
[[run]]
label = "gspar"
algorithm = { name = "gd" }
up = { compressor = { name = "gspar", kappa = 0.2 } }
"""
OLDER = [("haswell", "Haswell"), ("nehalem", "Nehalem")]


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors have no older x86-64 ones")
def test_older_processors_give_the_same_bits(tmp_path):
    job = tmp_path / "job.toml"
    job.write_text(JOB)

    def played(numba, blas):
        names = {"NUMBA_CPU_NAME": numba, "OPENBLAS_CORETYPE": blas, "NUMBA_CACHE_DIR": str(tmp_path / f"kernels-{numba}"), "MPI_COMPRESS_CACHE": str(tmp_path / f"cache-{numba}")}
        environment = {**os.environ, **{name: value for name, value in names.items() if value}}
        out = tmp_path / f"out-{numba}"
        subprocess.run([BIN / "mpi-compress", "run", job, "--out", out, "--quiet"], check=True, env=environment, timeout=3 * PATIENT)
        runs = [mc.read(file) for file in sorted(out.rglob("*.h5"))]
        return {(run.label, name): values.tobytes() for run in runs for name, values in {**run.trace, "x": run.x}.items()}

    here = played("", "")
    assert len({label for label, _ in here}) == 6
    for numba, blas in OLDER:
        assert played(numba, blas) == here
