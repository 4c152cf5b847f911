"""A figure as one file: `archive` packs a job, its plugins and results; `run` plays them again, elsewhere, to the same bits."""

import random
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from helpers.crafted_archives import WAYS
from helpers.refusals import refused
from helpers.running import BIN

JOB = """
title = "Two runs"
plugins = ["evens"]
data = { generator = "gspar", samples = 40, dim = 20 }
objective = { mu = 0.1 }
workers = { count = 2 }
stop = { rounds = 3 }
[[run]]
label = "whole"
algorithm = { name = "gd" }
[[run]]
label = "evens"
algorithm = { name = "ef" }
up = { compressor = "evens" }
"""
WORDS = {
    "no sums": "not those that SHA256SUMS names", "no job": "has 0 jobs and", "no results": "has 1 job and 0 results",
    "a result is missing": "1 of 2 runs have no result", "a label in two lines": "cannot be printed", "twice": "each once",
    "encrypted": "is encrypted", "another method": "is encrypted", "a large module": "'jobs/evens.py' has 1,073,741,824 bytes",
}  # fmt: skip
PLUGIN = """
from dataclasses import dataclass
import numpy as np
import mpi_compress as mc
import at_two

@mc.compressors.register("evens")
@dataclass(frozen=True)
class Evens(mc.Compressor):
    def compress(self, v, t):
        indices = np.arange(0, v.size, at_two.STRIDE, dtype=np.uint32)
        return mc.Sparse(v.size, indices, v[indices])
"""


def typed(folder, *arguments, status=0):
    """What `mpi-compress` prints in a folder, on both streams."""
    done = subprocess.run([BIN / "mpi-compress", *arguments], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("author")
    (folder / "jobs").mkdir()
    for name, text in (("two.toml", JOB), ("evens.py", PLUGIN), ("at_two.py", "STRIDE = 2\n")):
        (folder / "jobs" / name).write_text(text)
    assert "2 runs have no result" in typed(folder, "archive", "jobs/two.toml", "-o", "fig.zip", status=2)
    typed(folder, "run", "jobs/two.toml", "--quiet")
    assert "as its file has it" in typed(folder, "archive", "jobs/two.toml", "-o", "fig.zip", "--set", "stop.rounds=3", status=2)
    typed(folder, "archive", "jobs/two.toml", "-o", "fig.zip")
    return folder / "fig.zip"


def test_it_holds_the_job_all_modules_of_its_plugins_the_results_and_a_page_without_paths_of_the_machine(packed):
    with zipfile.ZipFile(packed) as file:
        names = [re.sub(r"-[0-9a-f]{6,}\.h5", "-ID.h5", name) for name in file.namelist()]
        page = file.read("README.md").decode()
    wanted = ["README.md", "SHA256SUMS", "jobs/at_two.py", "jobs/evens.py", "jobs/two.toml", "results/two/evens-ID.h5"]
    assert sorted(names) == [*wanted, "results/two/whole-ID.h5"]
    assert "| seeds | 0 |" in page
    assert str(packed.parent) not in page


def test_another_user_plays_it_again_to_the_same_bits(packed, tmp_path):
    (tmp_path / "fig.zip").write_bytes(packed.read_bytes())
    printed = typed(tmp_path, "run", "fig.zip", "--quiet")
    assert [re.sub(", bit.*:", "", line) for line in printed.splitlines()] == ["whole: equal 4 records", "evens: equal 4 records"]


def test_a_damaged_archive_is_refused(packed, tmp_path):
    data = packed.read_bytes()
    (tmp_path / "fig.zip").write_bytes(data[: len(data) // 2])
    assert "is no archive of" in typed(tmp_path, "run", "fig.zip", status=2)
    with zipfile.ZipFile(packed) as old, zipfile.ZipFile(tmp_path / "bad.zip", "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"STRIDE = 2", b"STRIDE = 3"))
    said = typed(tmp_path, "run", "bad.zip", status=2)
    assert "jobs/at_two.py has another checksum" in said
    assert "is no archive" not in said


def test_of_a_hundred_crafted_archives_each_is_one_line_with_status_2(packed, tmp_path, monkeypatch, capsys):
    """A plugin is imported where a run's own result is missing alone: what that is called follows from the run's parts."""
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile(packed) as file:
        members = {name: file.read(name) for name in file.namelist()}
    for seed, (way, craft) in enumerate([*WAYS.items()] * 5):
        craft(random.Random(seed), Path(f"{seed}.zip"), members)
        refused(["run", f"{seed}.zip", "--quiet", "--one-process"], capsys, WORDS.get(way, ""))
        assert ("evens" in sys.modules) == (way == "a result is missing"), (seed, way)
        sys.modules.pop("evens", None)
