"""A figure as one file: `archive` packs a job, its plugins and results; unpacked elsewhere they are run again to the same bits."""

import re
import subprocess
import zipfile

import pytest
from helpers.refusals import refused
from helpers.running import BIN

import mpi_compress as mc
from mpi_compress.results.tidy import BIT_FOR_BIT, difference

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
    typed(folder, "archive", "jobs/two.toml", "-o", "fig.zip")
    return folder / "fig.zip"


def test_it_holds_the_job_all_modules_of_its_plugins_the_results_and_a_page_without_paths_of_the_machine(packed):
    with zipfile.ZipFile(packed) as file:
        names = [re.sub(r"-[0-9a-f]{6,}\.h5", "-ID.h5", name) for name in file.namelist()]
        page = file.read("README.md").decode()
    wanted = ["README.md", "jobs/at_two.py", "jobs/evens.py", "jobs/two.toml", "results/two/evens-ID.h5", "results/two/whole-ID.h5"]
    assert sorted(names) == wanted
    assert "| seeds | 0 |" in page
    assert str(packed.parent) not in page


def test_equal_results_make_equal_archives(packed, tmp_path):
    typed(packed.parent, "archive", "jobs/two.toml", "-o", tmp_path / "again" / "fig.zip")
    assert (tmp_path / "again" / "fig.zip").read_bytes() == packed.read_bytes()


def test_another_user_finds_its_runs_done_and_plays_them_again_to_the_same_bits(packed, tmp_path):
    with zipfile.ZipFile(packed) as file:
        commands = re.findall("^    (mpi-compress run [^#]*)", file.read("README.md").decode(), re.MULTILINE)
        file.extractall(tmp_path)
    files = sorted((tmp_path / "results").rglob("*.h5"))
    written = [file.stat().st_mtime_ns for file in files]
    for command in commands:
        typed(tmp_path, *command.split()[1:], "--quiet")
    assert [file.stat().st_mtime_ns for file in files] == written
    again = sorted((tmp_path / "again").rglob("*.h5"))
    assert len(again) == 2
    for pair in zip(files, again, strict=True):
        assert [*difference(*map(mc.read, pair))] == [f"{BIT_FOR_BIT}: 4 records"]


@pytest.mark.parametrize("typed", [
    "run fig.zip", "run fig.zip/jobs/two.toml", "table fig.zip", "table fig.zip/results/two/whole.h5", "plot fig.zip -o fig.png", "show fig.zip",
])  # fmt: skip
def test_what_is_in_a_zip_is_read_once_it_is_unpacked(packed, monkeypatch, capsys, typed):
    monkeypatch.chdir(packed.parent)
    refused(typed.split(), capsys, "fig.zip: is an archive; `unzip fig.zip`, and take the jobs and results that are in it")


ABOUT = """
title = "Two runs"
licence = "CC-BY-4.0"
date = 2026-11-27
description = "Of gradient descent."
creators = [{ name = "Doe, J.", orcid = "0000-0000-0000-0000" }]
"""


def test_an_archive_of_a_folder_of_jobs_says_who_made_it(packed):
    folder = packed.parent
    (folder / "about.toml").write_text(ABOUT)
    typed(folder, "archive", "jobs", "-o", "all.zip", "--about", "about.toml")
    with zipfile.ZipFile(folder / "all.zip") as file:
        lines = file.read("CITATION.cff").decode().splitlines()
    assert 'authors: [{"name": "Doe, J.", "orcid": "https://orcid.org/0000-0000-0000-0000"}]' in lines
    assert {'license: "CC-BY-4.0"', 'abstract: "Of gradient descent."'} <= {*lines}


def test_a_command_and_an_option_that_were_removed_say_what_to_write_instead(capsys):
    assert "report JOB… --run" in refused(["reproduce", "jobs/demo.toml"], capsys)
    assert "--publish: was removed" in refused(["archive", "jobs/demo.toml", "-o", "fig.zip", "--publish", "zenodo"], capsys)
