"""A time limit counts from the start of the program; a process that was asked to end is not ended by a later SIGTERM."""

import os
import signal
import time

import pytest

from mpi_compress.core.signals import BEGUN, Interrupts


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
