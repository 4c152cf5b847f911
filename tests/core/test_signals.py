"""A time limit counts from the start of the program."""

import time

from mpi_compress.core.signals import BEGUN, Interrupts


def test_a_time_limit_counts_from_the_start_of_the_program():
    elapsed = time.monotonic() - BEGUN
    assert Interrupts(elapsed + 50.0).wish() == ""
    assert Interrupts(0.0).wish() == "the time limit of 0 s"
    assert Interrupts().wish() == ""
