"""Two accounts in one folder of results and one cache: what both may do, and that what one may not is told in one line."""

import os
import tempfile
from pathlib import Path

import pytest
from helpers.accounts import GROUP, Account
from helpers.layouts import assert_equal
from helpers.running import SMALL_JOB, After, gone_on

import mpi_compress as mc
from mpi_compress.core.signals import Stopped

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="root alone can play other accounts")]
CAT, GD = ("--only", "CAT"), ("--only", "GD")


def folder_of_the_group(folder: Path) -> Path:
    folder.mkdir()
    os.chown(folder, -1, GROUP)
    folder.chmod(0o2775)
    return folder


@pytest.fixture(scope="module")
def place():
    """A folder that all may enter, with a job, and a cache that a group shares."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "small.toml").write_text(SMALL_JOB)
        folder_of_the_group(folder / "cache")
        yield folder


@pytest.fixture
def results(place, request):
    return folder_of_the_group(place / request.node.name)


def accounts(place: Path, umask: str) -> list[Account]:
    return [Account(number, place / str(number), umask, place / "cache") for number in (20001, 20002)]


def allowed(account: Account, *line: str | Path) -> str:
    done = account.command(*line)
    assert done.returncode == 0, (line, done.stdout, done.stderr)
    return done.stdout


def refused(account: Account, *line: str | Path) -> str:
    """The one line of a refusal."""
    done = account.command(*line)
    assert done.returncode == 2, (line, done.stdout, done.stderr)
    (said,) = (each for each in done.stderr.splitlines() if not each.startswith(("compiling", "computing", "data: ")))
    assert "Permission denied" in said or "Operation not permitted" in said
    return said


def stopped(place: Path, results: Path, owner: Account, mode: int) -> Path:
    """The unfinished result of a run that this account has begun; the whole one is in the folder `…-whole`."""
    job = mc.load_job(place / "small.toml", only="CAT")
    mc.run(job, out=f"{results}-whole")
    with pytest.raises(Stopped):
        mc.run(job, out=results, interrupts=After(2))
    for file in [results / "small", *(results / "small").iterdir()]:
        os.chown(file, owner.number, GROUP)
        file.chmod(0o2775 if file.is_dir() else mode)
    return next(results.rglob("*.part"))


def test_accounts_of_a_group_share_results_unfinished_runs_and_a_cache(place, results):
    one, other = accounts(place, "002")
    stopped(place, results, one, 0o664)
    assert gone_on(other.command("run", "small.toml", *CAT, "--out", results).stderr)
    (whole,) = Path(f"{results}-whole").rglob("*.h5")
    assert_equal(whole, results / "small" / whole.name)
    allowed(one, "run", "small.toml", *CAT, "--out", results, "--fresh")
    assert {file.stat().st_mode & 0o777 for file in (results / "small").iterdir()} == {0o664}
    assert {file.stat().st_mode & 0o777 for file in (place / "cache").rglob("*") if file.is_file()} <= {0o664, 0o775}
    allowed(one, "results", "rm", "small", "--yes", "--out", results)


def test_what_another_account_owns_is_read_and_not_written(place, results):
    one, other = accounts(place, "022")
    where = ("--out", results)
    allowed(one, "run", "small.toml", *GD, *where)
    (file,) = (results / "small").glob("*.h5")
    for command in ("plan", "table"):
        assert "GD" in allowed(other, command, "small.toml", *where)
    assert "done already" in other.command("run", "small.toml", *GD, *where).stderr
    for line in (("run", *CAT), ("run", *GD, "--fresh"), ("submit", *GD, "--fresh", "--launcher", "srun")):
        assert str(results / "small") in refused(other, line[0], "small.toml", *line[1:], *where)
    assert f"{file}: cannot be removed" in refused(other, "results", "rm", "small", "--yes", *where)


def test_an_unfinished_result_that_may_be_read_alone_is_named(place, results):
    one, other = accounts(place, "022")
    part = stopped(place, results, one, 0o644)
    assert f"{part}: " in refused(other, "run", "small.toml", *CAT, "--out", results)
    assert "stopped" in allowed(other, "plan", "small.toml", "--out", results)


def test_private_results_are_refused_by_every_command(place, results):
    one, other = accounts(place, "077")
    where = ("--out", results)
    allowed(one, "run", "small.toml", *GD, *where)
    (file,) = (results / "small").glob("*.h5")
    for command in ("plan", "table", "run", "plot", "submit"):
        refused(other, command, "small.toml", *where)
    assert f"{file}: Permission denied; it may belong to another account" in refused(other, "show", file)
    (results / "small").chmod(0o755)  # the file itself is private still
    assert f"{file}: " in refused(other, "show", file)
    assert f"{file}: " in refused(other, "run", "small.toml", *GD, *where)
    assert "Permission denied" in allowed(other, "plan", "small.toml", *where)
    assert "cannot be read" in allowed(other, "results", "ls", *where)


def test_a_cache_of_another_account_is_used_where_it_may_be_read(place, results):
    one, other = accounts(place, "002")
    where = ("--out", results)
    allowed(one, "run", "small.toml", *GD, *where)
    for folder in (place / "cache", place / "cache" / "data"):
        os.chown(folder, one.number, GROUP)
    try:
        (place / "cache").chmod(0o700)
        assert str(place / "cache") in refused(other, "run", "small.toml", *CAT, *where)
        for folder in (place / "cache", place / "cache" / "data"):
            folder.chmod(0o755)
        allowed(other, "run", "small.toml", *CAT, *where)
        for setting in ("data.samples=70", "objective.mu=0.01"):
            said = refused(other, "run", "small.toml", *CAT, *where, "--set", setting)
            assert said.endswith("cannot be written to: Permission denied; set MPI_COMPRESS_CACHE to a folder that can")
    finally:
        for folder in (place / "cache", place / "cache" / "data"):
            folder.chmod(0o2775)
