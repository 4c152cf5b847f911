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


def unit_row(folder, **variables):
    """What a new process prints that computes one with the package in this folder and the kernels that were compiled there."""
    env = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", **variables}
    return subprocess.run([sys.executable, "-c", UNIT_ROWS], cwd=folder, env=env, capture_output=True, text=True, check=True)


def first_of_a_unit_row(folder, **variables):
    return float(unit_row(folder, **variables).stdout)


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


def cut_short(file):
    os.truncate(file, 20)


def emptied(file):
    os.truncate(file, 0)


def with_one_wrong_byte(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def followed_by_zeros(file):
    """As a file may be after the power has failed."""
    size = file.stat().st_size
    os.truncate(file, size // 2)
    os.truncate(file, size)


def not_to_be_read(file):
    file.unlink()
    file.mkdir()


DAMAGES = [
    [(with_one_wrong_byte, ".nbc")],
    [(cut_short, ".nbi"), (emptied, ".nbc"), (with_one_wrong_byte, ".nbi"), (followed_by_zeros, ".nbi")],
    [(cut_short, ".nbc"), (emptied, ".nbi"), (followed_by_zeros, ".nbc")],
]


@pytest.mark.parametrize("damages", [DAMAGES[0], *(pytest.param(each, marks=pytest.mark.slow) for each in DAMAGES[1:])])
def test_kernels_that_are_damaged_in_the_cache_are_compiled_again_and_one_line_says_so(damages, folder):
    assert unit_row(folder).stderr == ""
    kept = [*(folder / "mpi_compress" / "kernels" / "__pycache__").rglob("*.nb[ic]")]
    assert {file.suffix for file in kept} == {".nbi", ".nbc"}
    for damage, ending in damages:
        for file in kept:
            if file.suffix == ending:
                damage(file)
        found = unit_row(folder)
        assert float(found.stdout) == 3 / 5
        assert found.stderr == f"{kept[0].parent}: a compiled kernel in it is damaged, and is compiled again\n", damage
    assert unit_row(folder).stderr == ""


def test_kernels_are_compiled_where_the_cache_can_be_neither_read_nor_written(folder):
    first_of_a_unit_row(folder)
    for file in (folder / "mpi_compress" / "kernels" / "__pycache__").rglob("*.nb[ic]"):
        not_to_be_read(file)
    assert first_of_a_unit_row(folder) == 3 / 5


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
