"""Arrays of HDF5 files: what users add, and what no file can hold."""

import h5py
import numpy as np
import pytest

from mpi_compress.results.hdf5 import Refused, array, arrays


def test_what_a_user_adds_is_read_as_h5py_reads_it(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as h5:
        h5["mine/words"] = ["one", "two"]
        h5["mine/none"] = np.empty((0, 2), dtype=np.int32)
        found = arrays(h5["mine"], most=10**6)
    assert found["words"].tolist() == [b"one", b"two"]
    assert (found["none"].shape, found["none"].dtype) == ((0, 2), np.int32)


def test_an_array_that_the_file_cannot_hold_is_refused_before_memory_is_taken(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as h5:
        h5.create_dataset("trace/loss", (2**60,), "f8", chunks=(1024,))
        with pytest.raises(Refused, match=r"its dataset /trace/loss has shape \(1152921504606846976,\)"):
            array(h5["trace"], "loss", most=10**6)
