"""When kernels are compiled: at the first call of one, and again when the sources have changed that it was compiled from."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mpi_compress

UNIT_ROWS = """
import numpy as np
from mpi_compress.kernels.text import unit_rows
values = np.array([3.0, 4.0])
unit_rows(np.array([0, 2], dtype=np.uint64), values)
print(values[0])
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with a copy of the package, without compiled kernels."""
    shutil.copytree(Path(mpi_compress.__file__).parent, tmp_path / "mpi_compress", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def first_of_a_unit_row(folder, **variables):
    """As a new process computes it with the package in this folder and the kernels that were compiled there."""
    env = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", **variables}
    return float(subprocess.run([sys.executable, "-c", UNIT_ROWS], cwd=folder, env=env, capture_output=True, text=True, check=True).stdout)


def test_a_kernel_is_compiled_again_when_one_that_it_calls_in_another_file_has_changed(folder):
    vectors = folder / "mpi_compress" / "kernels" / "vectors.py"
    assert first_of_a_unit_row(folder) == 3 / 5
    vectors.write_text(vectors.read_text().replace("return np.sqrt(total)", "return 2.0 * np.sqrt(total)"))
    assert first_of_a_unit_row(folder) == 3 / 10
    assert len([*(folder / "mpi_compress" / "kernels" / "__pycache__").glob("kernels-*/**/text.unit_rows*.nbi")]) == 2


def test_an_installation_that_cannot_be_written_to_keeps_kernels_with_the_data_or_nowhere(folder):
    """As on a read-only mount; where there is no home either, they are compiled in each process."""
    (folder / "mpi_compress" / "kernels" / "__pycache__").touch()  # no folder can be made there
    assert first_of_a_unit_row(folder, MPI_COMPRESS_CACHE=str(folder / "cache")) == 3 / 5
    assert [*(folder / "cache").rglob("text.unit_rows*.nbi")]
    assert first_of_a_unit_row(folder, MPI_COMPRESS_CACHE="", HOME="/dev/null", XDG_CACHE_HOME="/dev/null") == 3 / 5


FIRST_CALLS = """
import sys
import numpy as np
from mpi_compress.engine import evaluation
from mpi_compress.kernels.vectors import norm, squared_norm
assert "numba" not in sys.modules and norm.__name__ == "norm"
assert norm(np.array([3.0, 4.0])) == evaluation.norm(np.array([3.0, 4.0])) == 5.0
import numba
@numba.njit
def twice(v):
    return 2.0 * squared_norm(v)
print(twice(np.array([3.0, 4.0])), squared_norm(np.array([1.0])))
"""


def test_numba_is_imported_by_the_first_call_of_a_kernel_which_numba_functions_of_others_may_call():
    found = subprocess.run([sys.executable, "-c", FIRST_CALLS], capture_output=True, text=True)
    assert found.stdout.split() == ["50.0", "1.0"], found.stderr


def test_kernels_import_numba_within_functions_alone():
    """An import at the top of a file would make every command wait for Numba."""
    for file in Path(mpi_compress.__file__).parent.glob("kernels/*.py"):
        assert not re.findall(r"^(?:from|import) (?:numba|llvmlite).*", file.read_text(), re.MULTILINE), file
