"""Importing Numba leaves nothing that the next collections of garbage would look through."""

import gc

from mpi_compress.kernels import lasting


def test_what_lasts_is_not_searched_for_cycles_again():
    gc.collect()
    with lasting():
        assert not gc.isenabled()
        made = [[] for _ in range(100_000)]
    assert gc.isenabled()
    assert sum(map(len, (gc.get_objects(0), gc.get_objects(1)))) < len(made)
    assert any(each is made for each in gc.get_objects(2))


def test_a_program_that_collects_nothing_goes_on_so():
    gc.disable()
    try:
        with lasting():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
