"""When kernels are compiled: at the first call of one, and again when the sources have changed that it was compiled from."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import mpi_compress

UNIT_ROWS = """
import numpy as np
from mpi_compress.kernels.text import unit_rows
values = np.array([3.0, 4.0])
unit_rows(np.array([0, 2], dtype=np.uint64), values)
print(values[0])
"""


def test_a_kernel_is_compiled_again_when_one_that_it_calls_in_another_file_has_changed(tmp_path):
    package = tmp_path / "mpi_compress"
    shutil.copytree(Path(mpi_compress.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    vectors = package / "kernels" / "vectors.py"
    assert first_of_a_unit_row(tmp_path) == 3 / 5
    vectors.write_text(vectors.read_text().replace("return np.sqrt(total)", "return 2.0 * np.sqrt(total)"))
    assert first_of_a_unit_row(tmp_path) == 3 / 10


def test_an_installation_and_a_home_that_cannot_be_written_to_keep_kernels_with_the_data(tmp_path):
    """Or nowhere: Numba has no place of its own then (seen on a read-only mount, without HOME)."""
    no_place = "from numba.core import caching as c\nc.CacheImpl._locator_classes = [c.UserProvidedCacheLocator]\n"
    for folder in (str(tmp_path), ""):
        variables = {**os.environ, "MPI_COMPRESS_CACHE": folder}
        found = subprocess.run([sys.executable, "-c", no_place + UNIT_ROWS], capture_output=True, text=True, env=variables)
        assert float(found.stdout) == 3 / 5, found.stderr
    assert [*(tmp_path / "kernels").rglob("*.nbi")]


def first_of_a_unit_row(folder: Path) -> float:
    """As a new process computes it with the package in this folder and the kernels that were compiled there."""
    env = {**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "kernels")}
    return float(subprocess.run([sys.executable, "-c", UNIT_ROWS], cwd=folder, env=env, capture_output=True, text=True, check=True).stdout)


FIRST_CALLS = """
import sys
import numpy as np
from mpi_compress.engine import evaluation
from mpi_compress.kernels import Deferred, vectors
from mpi_compress.kernels.vectors import norm, squared_norm
assert "numba" not in sys.modules and type(evaluation.norm) is Deferred and norm.__name__ == "norm"
assert norm(np.array([3.0, 4.0])) == 5.0 and norm is vectors.norm and type(norm) is not Deferred and "scipy.linalg" not in sys.modules
from mpi_compress.kernels import text
text.unit_rows(np.array([0, 1], dtype=np.uint64), np.array([3.0]))
assert evaluation.norm(np.array([3.0])) == 3.0
import numba
@numba.njit
def twice(v):
    return 2.0 * squared_norm(v)
print(twice(np.array([3.0, 4.0])), squared_norm(np.array([1.0])))
"""


def test_the_first_call_of_a_kernel_puts_the_compiled_one_into_its_own_module_and_the_caller_s():
    """Also kernels that modules hold under other names work, and others' Numba functions may call them."""
    found = subprocess.run([sys.executable, "-c", FIRST_CALLS], capture_output=True, text=True)
    assert found.stdout.split() == ["50.0", "1.0"], found.stderr


def test_kernels_import_numba_through_their_package_alone():
    """An import at the top of a file would make every command wait for Numba."""
    for file in Path(mpi_compress.__file__).parent.glob("kernels/*.py"):
        assert not re.findall(r"^(?:from|import) (?:numba|llvmlite).*", file.read_text(), re.MULTILINE), file
