"""A figure as one file: `archive` packs a job, its plugins and results; `run` plays them again, elsewhere, to the same bits."""

import hashlib
import json
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

import mpi_compress as mc

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


TEN = """
data = {{ generator = "gspar", samples = 40, dim = 20 }}
objective = {{ mu = 0.1 }}
workers = {{ count = 2 }}
stop = {{ rounds = {rounds} }}
grid = {{ seed = [0, 1, 2, 3, 4] }}
algorithm = {{ name = "ef" }}
up = {{ compressor = {{ name = "random-k", k = 3, scaled = false }} }}
"""
ABOUT = """
title = "Ten records"
licence = "CC-BY-4.0"
date = 2026-11-27
creators = [{ name = "Doe, J.", orcid = "0000-0000-0000-0000" }]
"""


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """A folder with two jobs of five runs each, their results, and an archive of both."""
    folder = tmp_path_factory.mktemp("records")
    (folder / "jobs" / "sub").mkdir(parents=True)
    for name, rounds in (("one", 3), ("sub/two", 4)):
        (folder / "jobs" / f"{name}.toml").write_text(TEN.format(rounds=rounds))
        typed(folder, "run", f"jobs/{name}.toml", "--quiet")
    (folder / "about.toml").write_text(ABOUT)
    assert "--about is needed" in typed(folder, "archive", "jobs", "-o", "ten.zip", "--publish", "forge", status=2)
    typed(folder, "archive", "jobs", "-o", "ten.zip", "--about", "about.toml", "--publish", "zenodo")
    return folder


def test_table_and_plot_read_an_archive_where_it_is(collected, monkeypatch):
    monkeypatch.chdir(collected)
    files = sorted(map(str, Path("results").rglob("*.h5")))
    asked = ["--to", "loss=0.6", "--to", "loss=0.1"]
    packed = [f"ten.zip/{file}" for file in files]
    assert [mc.read(file).file for file in packed[:2]] == [Path(file) for file in packed[:2]]
    assert typed(collected, "table", "ten.zip", *asked) == typed(collected, "table", *files, *asked)
    assert len(set(mc.load("ten.zip/results/sub/two", as_="dict")["seed"])) == 5
    typed(collected, "plot", "ten.zip/results/one", files[-1], "-o", "all.png")
    assert Path("all.png").stat().st_size > 1000
    assert "there is no such result" in typed(collected, "table", "ten.zip/results/three", status=2)


def test_ten_records_of_an_archive_are_rerun_to_the_bit(collected, tmp_path):
    (tmp_path / "ten.zip").write_bytes((collected / "ten.zip").read_bytes())
    assert "name one, such as ten.zip/one" in typed(tmp_path, "run", "ten.zip", status=2)
    said = [typed(tmp_path, "run", f"ten.zip/{name}", "--quiet").splitlines() for name in ("one", "sub/two")]
    assert [": equal, bit for bit: " in line for lines in said for line in lines] == 10 * [True]


def test_an_archive_says_who_made_it_and_what_would_be_sent(collected):
    with zipfile.ZipFile(collected / "ten.zip") as file:
        datacite, cff = json.loads(file.read("datacite.json")), file.read("CITATION.cff").decode()
    assert {"creators", "titles", "publisher", "publicationYear", "types"} <= {*datacite}
    assert (datacite["publicationYear"], datacite["rightsList"][0]["rightsIdentifier"]) == (2026, "CC-BY-4.0")
    assert 'authors: [{"name": "Doe, J.", "orcid": "https://orcid.org/0000-0000-0000-0000"}]' in cff.splitlines()
    create, upload, publish = json.loads((collected / "ten.zenodo.json").read_text())
    assert create["json"]["metadata"]["creators"][0]["name"] == "Doe, J."
    assert upload["sha256"] == hashlib.sha256((collected / "ten.zip").read_bytes()).hexdigest()
    assert [*publish] == ["POST"]


def test_a_damaged_member_of_an_archive_is_not_read(collected, tmp_path):
    with zipfile.ZipFile(collected / "ten.zip") as old, zipfile.ZipFile(tmp_path / "bad.zip", "w") as new:
        name = next(name for name in old.namelist() if name.endswith(".h5"))
        for each in old.namelist():
            new.writestr(each, old.read(each) + b"x" * (each == name))
    with pytest.raises(mc.UserError, match="another checksum"):
        mc.read(tmp_path / "bad.zip" / name)
