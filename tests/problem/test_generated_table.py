"""The table of generated samples has what its script measures."""

import subprocess
import sys
from pathlib import Path

import pytest

from mpi_compress.core.errors import UserError
from mpi_compress.problem.datasets.table import find_set

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.slow
def test_the_table_is_what_its_script_prints():
    for name in ("rcv1_vw1000", "rcv1_vw500.t", "url_sub2000"):
        try:
            find_set(name, "data")
        except UserError:
            pytest.skip(f"{name} is not here")
    printed = subprocess.run([sys.executable, DOCS / "generated_table.py"], capture_output=True, text=True, check=True).stdout
    assert printed == (DOCS / "generated.csv").read_text(encoding="utf-8")
