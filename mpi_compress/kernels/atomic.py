"""Additions to memory that several processes share, one coordinate at a time: no addition is lost."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from mpi_compress.kernels import intrinsic, kernel


@intrinsic
def replace(typing_context, array, index, expected, new):
    """Set array[index] to `new` if it holds `expected`, bit for bit. Returns whether it did."""

    def generate(context, builder, signature, arguments):
        kind = signature.args[0]
        view = context.make_array(kind)(context, builder, arguments[0])
        place = cgutils.get_item_pointer(context, builder, kind, view, [arguments[1]], wraparound=False)
        word = ir.IntType(64)
        place = builder.bitcast(place, word.as_pointer())
        old, to = (builder.bitcast(value, word) for value in arguments[2:])
        done = builder.extract_value(builder.cmpxchg(place, old, to, "seq_cst", "seq_cst"), 1)
        return builder.zext(done, context.get_value_type(types.boolean))

    return types.boolean(array, types.uintp, types.float64, types.float64), generate


@kernel
def add_shared(indices, values, scale, out):
    """out[indices] += scale · values, each coordinate atomically. Returns how often another process changed one first."""
    retries = 0
    for j in range(indices.size):
        i = np.uint64(indices[j])
        change = scale * values[j]
        while True:
            before = out[i]
            if replace(out, i, before, before + change):
                break
            retries += 1
    return retries
