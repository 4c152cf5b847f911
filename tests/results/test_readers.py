"""The programs of docs/results.md in other languages read what `table` reads."""

import csv
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers.running import here

PAGE = Path(__file__).parents[2] / "docs" / "results.md"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A folder with the demo's results, and what `table` says of them by label."""
    folder = tmp_path_factory.mktemp("demo")
    out, table = folder / "results", folder / "table.csv"
    here("run", "demo", "--quiet", "--out", out)
    here("table", "demo", "--to", "loss=0.6", "-o", table, "--out", out)
    rows = csv.reader(table.read_text().splitlines()[1:])
    return folder, {label: float(needed) for label, _, needed, *_ in rows}


def printed(folder, language, *line):
    """What a language's program of the page prints, without it where the language is not installed."""
    if shutil.which(line[0]) is None:
        pytest.skip(f"{line[0]} is not here: apt-get install r-cran-hdf5r octave hdf5-tools")
    (program,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (folder / "program").write_text(program)
    return subprocess.run([*line, "program"], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_the_table_of_r_is_that_of_the_command(demo):
    folder, table = demo
    rows = [*csv.reader(printed(folder, "r", "Rscript").splitlines()[1:])]
    assert [(label, float(needed)) for label, needed in rows] == [*table.items()]


@pytest.mark.slow
def test_octave_reads_the_same_bits(demo):
    folder, table = demo
    found = sorted(float(line.rpartition(",")[2]) for line in printed(folder, "octave", "octave", "-q").splitlines())
    assert found == sorted(table.values())


@pytest.mark.slow
def test_a_person_can_read_the_attributes(demo):
    if shutil.which("h5dump") is None:
        pytest.skip("h5dump is not here: apt-get install hdf5-tools")
    file, *_ = (demo[0] / "results" / "demo").glob("CAT*.h5")
    text = subprocess.run(["h5dump", "-A", file], capture_output=True, text=True, check=True).stdout
    assert all(f'"{word}"' in text for word in ("mpi-compress/1", "complete", "label", "CAT", "f_star"))
