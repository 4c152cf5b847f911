"""Results: one run is one HDF5 file, whose columns one table describes."""
