"""A kernel that was compiled before is used only with the sources that it was compiled from."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import mpi_compress

UNIT_ROWS = """
import numpy as np
from mpi_compress.kernels.convert import unit_rows
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


def first_of_a_unit_row(folder: Path) -> float:
    """As a new process computes it with the package in this folder and the kernels that were compiled there."""
    env = {**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "kernels")}
    return float(subprocess.run([sys.executable, "-c", UNIT_ROWS], cwd=folder, env=env, capture_output=True, text=True, check=True).stdout)
