"""Progress is a bar where somebody watches: on a terminal, also on the one of the mpiexec that started this process."""

import os
from types import SimpleNamespace

import pytest

from mpi_compress.core import progress


@pytest.fixture
def processes(tmp_path, monkeypatch):
    """Standard error is a pipe, and the parents of this process are 7, a helper of mpiexec, and 5, mpiexec; 3 is a shell."""
    for number, (name, parent, place) in {7: ("hydra_pmi_proxy", 5, "pipe:[1]"), 5: ("mpiexec", 3, "/dev/pts/9"), 3: ("bash", 1, "/dev/pts/8")}.items():
        folder = tmp_path / str(number)
        (folder / "fd").mkdir(parents=True)
        (folder / "comm").write_text(f"{name}\n")
        (folder / "stat").write_text(f"{number} ({name} (x) y) S {parent} 1 1")
        (folder / "fd" / "2").symlink_to(place)
    reading, writing = os.pipe()
    monkeypatch.setattr(progress, "_PROCESSES", tmp_path)
    monkeypatch.setattr(os, "getppid", lambda: 7)
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=os.fdopen(writing, "w"), modules={}))
    progress.launchers_terminal.cache_clear()
    yield tmp_path
    os.close(reading)
    progress.launchers_terminal.cache_clear()


def test_the_terminal_of_mpiexec_is_found(processes):
    assert str(progress.launchers_terminal()) == "/dev/pts/9"
    assert progress.has_bar()
    bar = progress.bar(total=3)
    assert (bar.ncols, bar.nrows) == (80, 24)  # that terminal is not here
    bar.close()


def test_no_terminal_where_mpiexec_writes_elsewhere(processes):
    link = processes / "5" / "fd" / "2"
    link.unlink()
    link.symlink_to("/tmp/log")
    assert progress.launchers_terminal() is None
    assert not progress.has_bar()


def test_no_terminal_where_no_mpiexec_started_this(processes, monkeypatch):
    monkeypatch.setattr(os, "getppid", lambda: 3)
    assert progress.launchers_terminal() is None
    monkeypatch.setattr(os, "getppid", lambda: 99)  # gone, or a system without /proc
    progress.launchers_terminal.cache_clear()
    assert progress.launchers_terminal() is None


def test_no_terminal_where_standard_error_goes_into_a_file(processes, tmp_path, monkeypatch):
    with (tmp_path / "log").open("w") as log:
        monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=log, modules={}))
        assert progress.launchers_terminal() is None


def test_a_terminal_that_says_no_size_has_the_usual_one(monkeypatch):
    ours, theirs = os.openpty()
    monkeypatch.setattr("sys.stderr", os.fdopen(theirs, "w"))
    bar = progress.bar(total=3)
    assert progress.has_bar()
    assert (bar.ncols, bar.nrows) == (80, 24)
    bar.close()
    assert b"0/3" in os.read(ours, 1000)
    os.close(ours)
