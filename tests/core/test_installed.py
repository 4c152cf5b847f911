"""Parts of installed packages, which no job names: they are imported where a job needs them, and nowhere else."""

import json
import re

import pytest
from helpers.refusals import naming
from helpers.running import command

import mpi_compress as mc

JOB = """
data = { generator = "gspar", samples = 32, dim = 16 }
workers.count = 2
algorithm = { name = "ef", step = "0.5/L" }
stop = { rounds = 3 }
[[run]]
label = "own"
up = { compressor = { name = "first-k", k = 3 } }
[[run]]
label = "top"
up = { compressor = { name = "top-k", k = 3 } }
"""
PARTS = """
import sys
import numpy as np
import mpi_compress as mc
print("parts are imported", file=sys.stderr)
@mc.compressors.register("first-k")
class Taken(mc.Compressor):
    k: int = 3
    def compress(self, v, t):
        return mc.Sparse(v.size, np.arange(self.k, dtype=np.uint32), v[:self.k])
"""


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A place of packages: one with parts, and one that is broken."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("MPI_COMPRESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts.py").write_text(PARTS)
    (tmp_path / "job.toml").write_text(JOB)
    install(tmp_path, "a-broken", "2.0", "anything = not_there.parts")
    install(tmp_path, "some-parts", "1.0", "first-k = parts")
    return tmp_path


def install(site, name, version, entry):
    info = site / f"{name.replace('-', '_')}.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[mpi_compress.plugins]\n{entry}\n")


def ids(*only):
    """The run ids by label, and what was said on stderr."""
    done = command("plan", "job.toml", *only)
    assert done.returncode == 0, done.stderr
    return {line.split()[1]: line.split()[2] for line in done.stdout.splitlines()[2:]}, done.stderr


def test_a_part_of_an_installed_package_needs_no_plugins_and_its_version_is_in_the_run_id(site):
    found, said = ids()
    assert said == "parts are imported\n"
    install(site, "some-parts", "1.1", "first-k = parts")
    later, _ = ids()
    assert later["own"] != found["own"]
    assert later["top"] == found["top"]
    command("run", "job.toml", "--quiet", ranks=2)
    versions = {run.label: json.loads(run.attrs["versions"]) for run in map(mc.read, (site / "results" / "job").glob("*.h5"))}
    assert (versions["own"]["some-parts"], "some-parts" in versions["top"]) == ("1.1", False)


def test_a_run_without_its_parts_imports_no_package_and_keeps_its_id_and_its_meaning(site):
    (site / "job.toml").write_text(JOB.replace('[[run]]\nlabel = "own"\nup = { compressor = { name = "first-k", k = 3 } }', ""))
    alone, said = ids()
    assert said == ""
    (site / "job.toml").write_text(JOB)
    assert ids()[0]["top"] == alone["top"]


def test_two_packages_with_a_part_of_one_name_are_refused_and_both_are_named(site):
    (site / "others.py").write_text(PARTS)
    install(site, "z-parts", "3.0", "first-k = others")
    done = command("plan", "job.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(naming("z-parts 3.0 two classes are the compressor 'first-k': parts.py others.py"), done.stderr.splitlines()[-1])


def test_list_says_which_packages_conflict_and_lists_the_rest(site):
    (site / "others.py").write_text(PARTS)
    install(site, "z-parts", "3.0", "first-k = others")
    done = command("list")
    assert done.returncode == 0
    assert re.search(naming("z-parts 3.0 two classes are the compressor 'first-k': parts.py others.py"), done.stderr.splitlines()[-1])
    assert done.stdout.splitlines()[-1] == "from some-parts 1.0: compressors/first-k"
    assert "(from some-parts 1.0)" in command("list", "first-k").stdout


def test_a_package_with_the_name_of_a_part_of_this_one_is_refused(site):
    (site / "parts.py").write_text(PARTS + '@mc.compressors.register("top-k")\nclass Other(Taken):\n    pass\n')
    done = command("plan", "job.toml", "--set", "stop.rounds=2")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(naming("some-parts 1.0 two classes are the compressor 'top-k': largest.py parts.py"), done.stderr.splitlines()[-1])


def test_list_says_what_comes_from_where_and_what_is_broken(site):
    done = command("list")
    assert done.stdout.splitlines()[-1] == "from some-parts 1.0: compressors/first-k"
    assert "package a-broken 2.0: its plugin 'not_there.parts' cannot be imported" in done.stderr
    assert "(from some-parts 1.0)" in command("list", "first-k").stdout


def test_a_broken_package_is_named_where_a_part_is_in_no_other(site):
    (site / "job.toml").write_text(JOB.replace("first-k", "last-k"))
    done = command("plan", "job.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(naming("last-k first-k a-broken 2.0"), done.stderr.splitlines()[-1])
