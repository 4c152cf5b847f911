"""A first run on a machine says that kernels are compiled, and other runs do not."""

import time

import numba
import numpy as np
import pytest

from mpi_compress.core import clock
from mpi_compress.kernels import compilations, get_ready
from mpi_compress.preparing import compiling


def test_what_is_compiled_is_noticed_and_what_was_is_not():
    @numba.njit
    def inner(x):
        return x + 1

    @numba.njit
    def outer(x):
        return inner(x) * 2

    seen = []
    get_ready()  # as the first kernel does
    with compilations(lambda name: seen.append("begun"), lambda: seen.append("ended")):
        assert outer(1) == 4
        assert seen[:2] == ["begun", "begun"]  # one within the other
        assert seen.count("begun") == seen.count("ended") == 2
        assert outer(2) == 6
    assert len(seen) == 4
    assert outer(1.5) == 5.0
    assert len(seen) == 4


@pytest.fixture
def now(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(compiling.time, "monotonic", lambda: now[0])
    return now


def compile_kernels(seen, now, count, seconds):
    for _ in range(count):
        seen.begun("file.kernel")
        seen.begun("file.kernel")  # one that it calls
        now[0] += seconds
        seen.ended()
        seen.ended()


def test_lines_come_once_it_takes_a_second_and_then_once_a_minute(now, capsys):
    seen = compiling.Compiling()
    compile_kernels(seen, now, 2, 0.4)
    assert capsys.readouterr().err == ""
    compile_kernels(seen, now, 20, 5.0)
    ends = ["6 so far, in 6 s; now file.kernel", "30 so far, in 1.1 min; now file.kernel"]
    assert capsys.readouterr().err.splitlines() == [f"compiling kernels (once on this machine): {end}" for end in ends]


def test_a_bar_is_there_while_kernels_are_compiled(now, capsys, monkeypatch):
    monkeypatch.setattr(compiling, "has_bar", lambda: True)
    seen = compiling.Compiling()
    compile_kernels(seen, now, 3, 2.0)
    seen.begun("file.kernel")
    assert capsys.readouterr().err.rstrip().endswith("  6 so far, in 6 s, now file.kernel")
    seen.ended()
    assert capsys.readouterr().err.strip("\r ") == ""  # and gone
    seen.close()


@pytest.mark.parametrize(("quiet", "variable", "said"), [(True, "", 0), (False, "silent", 0), (False, "", 1)])
def test_a_quiet_run_says_nothing(quiet, variable, said, monkeypatch, capsys):
    @numba.njit
    def kernel(x):
        return x + 1

    monkeypatch.setenv("MPI_COMPRESS_COMPILING", variable)
    monkeypatch.setattr(compiling, "_WORTH_SAYING", 0.0)
    with compiling.shown(quiet):
        kernel(1)
    assert capsys.readouterr().err.count("compiling kernels") == said


def test_the_algorithms_clock_stands_still_while_something_is_compiled():
    @numba.njit
    def slow(x):
        return np.sort(x).sum() + np.linalg.norm(x)

    with compiling.shown(quiet=True):
        begun, real = clock.now(), time.perf_counter()
        slow(np.ones(3))
        took, really = clock.now() - begun, time.perf_counter() - real
    assert really > 0.2
    assert took < 0.3 * really


def test_the_clock_goes_on_when_all_who_stopped_it_say_so(monkeypatch):
    real = [0.0]
    monkeypatch.setattr(clock.time, "perf_counter", lambda: real[0])
    begun, read = clock.now(), []
    for second, change in enumerate((clock.stand_still, clock.stand_still, clock.go_on, clock.go_on, lambda: None), 1):
        real[0] = float(second)
        change()
        read.append(clock.now() - begun)
    assert read == [1.0, 1.0, 1.0, 1.0, 2.0]


def test_an_installation_without_bytecode_is_named_with_what_would_do(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    for place in (compiling.__spec__.cached, str(tmp_path / "none.pyc")):
        monkeypatch.setattr(compiling.__spec__, "cached", place)
        with compiling.shown(quiet=False):
            pass
    (line,) = capsys.readouterr().err.splitlines()
    assert "python -m compileall" in line
