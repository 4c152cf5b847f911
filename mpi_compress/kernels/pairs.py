"""Short messages of indices and values, each written and read by one call."""

from mpi_compress.kernels import kernel
from mpi_compress.kernels.bits import pack_fields
from mpi_compress.kernels.floats import put_count_and_floats, take_floats
from mpi_compress.kernels.sets import read_fields


@kernel
def put_pairs(indices, values, width, nbits, start, out):
    """Write T, T floats of `nbits`, and T fields of `width` bits from out[start] on. Returns whether no finite value overflows."""
    pack_fields(indices, width, out, start)
    return put_count_and_floats(values, nbits, out)


@kernel
def take_pairs(data, at, width, nbits, dim, indices, values):
    """Read T = values.size floats of `nbits` from data[at] on, then T fields. Returns whether these increase and stay below `dim`.

    `data` has all of them, and 8 bytes or more.
    """
    take_floats(data, at, nbits, values)
    return read_fields(data, at + values.size * nbits // 8, width, dim, indices)
