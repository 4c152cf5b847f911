"""Columns of a result in HDF5: what is appended comes back, by h5py's own layer too."""

import h5py
import numpy as np
import pytest

from mpi_compress.results.hdf5 import GrowingDataset, Refused, array, arrays

NAME = "‖x‖ of é"


def test_rows_that_are_appended_come_back(tmp_path):
    rows = np.arange(12.0).reshape(4, 3)
    with h5py.File(tmp_path / "a.h5", "w") as h5:
        column = GrowingDataset(h5, f"workers/{NAME}", rows[:1])
        column.append(rows[1:3])
        column.append(rows[3:])
        GrowingDataset(h5, "workers/flags", np.array([True, False]))
        assert (column.shape, column.dtype) == ((4, 3), np.float64)
    with h5py.File(tmp_path / "a.h5") as h5:
        found = arrays(h5["workers"], most=10**6)
        np.testing.assert_array_equal(found[NAME], rows)
        np.testing.assert_array_equal(found[NAME], h5["workers"][NAME][:])
        assert found["flags"].tolist() == [True, False]
        assert h5["workers"][NAME].chunks == (1024 // 3, 3)


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
