"""A time limit counts from the start of the program; a process that was asked to end is not ended by a later SIGTERM; where wall time goes."""

import json
import os
import signal
import time
from contextlib import suppress

import pytest

import mpi_compress as mc
from mpi_compress.core.clock import Stopwatch
from mpi_compress.core.signals import BEGUN, Interrupted, Interrupts


@pytest.fixture
def as_at_the_start():
    """The signals of a program that has just begun, and those of before given back."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGUSR1)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_time_limit_counts_from_the_start_of_the_program():
    elapsed = time.monotonic() - BEGUN
    assert Interrupts(elapsed + 50.0).wish() == ""
    assert Interrupts(0.0).wish() == "the time limit of 0 s"
    assert Interrupts().wish() == ""


@pytest.mark.usefixtures("as_at_the_start")
@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGUSR1, None], ids=["SIGTERM", "SIGUSR1", "the time limit"])
def test_the_rank_that_ends_last_keeps_its_status_where_srun_ends_it(asked):
    interrupts = Interrupts(None if asked else 0.0)
    with interrupts.caught(), interrupts.in_rounds():
        if asked:
            os.kill(os.getpid(), asked)
        assert interrupts.wish()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


@pytest.mark.usefixtures("as_at_the_start")
def test_without_a_request_signals_are_as_they_were():
    with Interrupts().caught() as interrupts, interrupts.in_rounds():
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_laps_of_one_name_add_up_and_are_told_once():
    stopwatch = Stopwatch(time.monotonic() - 100.0)
    stopwatch.end("start")
    stopwatch.end("rounds")
    stopwatch.since -= 10.0
    stopwatch.end("rounds")
    taken = stopwatch.taken()
    assert [*taken] == ["start", "rounds"]
    assert 100.0 <= taken["start"] < 110.0
    assert 10.0 <= taken["rounds"] < 20.0
    assert stopwatch.taken() == {}


def test_a_result_says_where_all_its_wall_time_went(tmp_path):
    job = {
        "data": {"generator": "gspar", "samples": 20, "dim": 4},
        "stop": {"rounds": 2},
        "run": [{"label": label, "algorithm": {"name": "gd", "step": 0.1 * step}} for step, label in enumerate("ab", 1)],
    }
    begun = time.monotonic()
    first, second = (json.loads(run.attrs["wall"]) for run in mc.run(job, out=tmp_path))
    took = time.monotonic() - begun
    assert [*first] == ["start", "prepare", "read", "file", "warm-up", "rounds"]
    assert [*second] == ["read", "file", "warm-up", "rounds"]
    assert 0.0 < sum(first.values()) + sum(second.values()) < took


def test_an_error_that_a_signal_has_caused_is_told_as_the_signal():
    """As where Numba compiles: what is raised in its callback does not get through, and an error follows from it."""

    def compile_a_kernel():
        with Interrupts().caught((signal.SIGTERM,)):
            with suppress(Interrupted):
                os.kill(os.getpid(), signal.SIGTERM)
            raise RuntimeError("no compiled object yet")

    with pytest.raises(Interrupted):
        compile_a_kernel()
