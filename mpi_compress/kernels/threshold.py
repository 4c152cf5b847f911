"""Hard thresholds: one pass, at the cost of reading the vector."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from mpi_compress.kernels import kernel, reassociating_kernel

_BLOCK, _LANES = 32, 16
_CACHED = 2048  # coordinates whose values are read again while they lie in the first cache


@intrinsic
def _append_reaching(typing_context, v, start, threshold, indices, n):
    """Of a block of v from `start` the indices of what reaches the threshold, NaN included, written from the n-th on.

    Returns the new n. Where a block holds something, LLVM's compressing stores write it: one instruction each with AVX-512,
    branches elsewhere.
    """

    def generate(context, builder, signature, arguments):
        _, start, level, _, n = arguments
        number, index, bit = ir.DoubleType(), ir.IntType(32), ir.IntType(1)
        numbers, places, flags = ir.VectorType(number, _BLOCK), ir.VectorType(index, _LANES), ir.VectorType(bit, _LANES)

        def pointer(k, at):
            return builder.gep(context.make_array(signature.args[k])(context, builder, arguments[k]).data, [at])

        def function(name, result, *kinds):
            return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, kinds), name)

        def repeated(scalar, kind):
            first = builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, ir.Constant(index, 0))
            return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(index, kind.count), [0] * kind.count))

        magnitude = function(f"llvm.fabs.v{_BLOCK}f64", numbers, numbers)
        write = function(f"llvm.masked.compressstore.v{_LANES}i32", ir.VoidType(), places, index.as_pointer(), flags)
        x = builder.load(builder.bitcast(pointer(0, start), numbers.as_pointer()))
        x.align = 8
        kept = builder.fcmp_unordered(">=", builder.call(magnitude, [x]), repeated(level, numbers))
        some = builder.bitcast(kept, ir.IntType(_BLOCK))
        without, place = builder.block, n
        with builder.if_then(builder.icmp_unsigned("!=", some, some.type(0))):
            for first in range(0, _BLOCK, _LANES):
                lanes = list(range(first, first + _LANES))
                here = builder.shuffle_vector(kept, kept, ir.Constant(places, lanes))
                js = builder.add(repeated(builder.trunc(start, index), places), ir.Constant(places, lanes))
                builder.call(write, [js, pointer(3, place), here])
                place = builder.add(place, builder.zext(builder.ctpop(builder.bitcast(here, ir.IntType(_LANES))), n.type))
            within = builder.block
        after = builder.phi(n.type)
        after.add_incoming(n, without)
        after.add_incoming(place, within)
        return after

    return types.uint64(v, types.uint64, types.float64, indices, types.uint64), generate


@kernel
def reaching(v, threshold, indices, values):
    """The increasing indices with |v_j| ≥ threshold, NaN included, and the values there, written to the front of two arrays (d,).

    Returns how many there are.
    """
    u = np.uint64
    n = u(0)
    in_blocks = u(v.size) - u(v.size) % u(_BLOCK)
    for first in range(u(0), in_blocks, u(_CACHED)):
        before = n
        for start in range(first, min(first + u(_CACHED), in_blocks), u(_BLOCK)):
            n = _append_reaching(v, start, threshold, indices, n)  # type: ignore[call-arg]
        for p in range(before, n):
            values[p] = v[indices[p]]
    for j in range(in_blocks, u(v.size)):
        indices[n] = j
        values[n] = v[j]
        n += u(not abs(v[j]) < threshold)
    return n


@reassociating_kernel
def squares_below(v, threshold):
    """‖v‖² if all |v_j| < threshold, otherwise −1."""
    n, total = np.int64(0), 0.0
    for j in range(v.size):
        n += not abs(v[j]) < threshold
        total += v[j] * v[j]
    return total if n == 0 else -1.0


@kernel
def reaching_among(v, touched, threshold):
    """The same among `touched` (increasing)."""
    u = np.uint64
    indices = np.empty(touched.size, dtype=np.uint32)
    values = np.empty(touched.size)
    n = u(0)
    for p in range(touched.size):
        j = touched[p]
        if not abs(v[j]) < threshold:
            indices[n] = j
            values[n] = v[j]
            n += u(1)
    return indices[:n].copy(), values[:n].copy()
