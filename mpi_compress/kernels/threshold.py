"""Hard thresholds: one pass, at the cost of reading the vector."""

from functools import reduce

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from mpi_compress.kernels import kernel, reassociating_kernel

_BLOCK, _LANES = 32, 8


@intrinsic
def _keep(typing_context, v, start, threshold, indices, values, n):
    """Of a block of v from `start` what reaches the threshold, NaN included: its indices and values, written from the n-th on.

    Returns the new n. Where a block holds something, LLVM's compressing stores write it: one instruction each with AVX-512,
    branches elsewhere.
    """

    def generate(context, builder, signature, arguments):
        _, start, level, _, _, n = arguments
        number, index = ir.DoubleType(), ir.IntType(32)
        numbers, places, bits = (ir.VectorType(kind, _LANES) for kind in (number, index, ir.IntType(1)))

        def pointer(k, at):
            return builder.gep(context.make_array(signature.args[k])(context, builder, arguments[k]).data, [at])

        def function(name, result, *kinds):
            return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, kinds), name)

        def repeated(scalar, kind):
            first = builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, ir.Constant(index, 0))
            return builder.shuffle_vector(first, first, ir.Constant(places, [0] * _LANES))

        def store(name, what, k, at, kept):
            kinds = what.type, what.type.element.as_pointer(), bits
            write = function(f"llvm.masked.compressstore.v{_LANES}{name}", ir.VoidType(), *kinds)
            builder.call(write, [what, pointer(k, at), kept])

        found = []  # values, their first place, which are kept
        for first in range(0, _BLOCK, _LANES):
            at = builder.add(start, start.type(first))
            x = builder.load(builder.bitcast(pointer(0, at), numbers.as_pointer()))
            x.align = 8
            magnitudes = builder.call(function(f"llvm.fabs.v{_LANES}f64", numbers, numbers), [x])
            found.append((x, at, builder.fcmp_unordered(">=", magnitudes, repeated(level, numbers))))
        some = builder.bitcast(reduce(builder.or_, (kept for *_, kept in found)), ir.IntType(_LANES))
        without, place = builder.block, n
        with builder.if_then(builder.icmp_unsigned("!=", some, some.type(0))):
            for x, at, kept in found:
                lanes = builder.add(repeated(builder.trunc(at, index), places), ir.Constant(places, list(range(_LANES))))
                store("i32", lanes, 3, place, kept)
                store("f64", x, 4, place, kept)
                place = builder.add(place, builder.zext(builder.ctpop(builder.bitcast(kept, some.type)), n.type))
            within = builder.block
        after = builder.phi(n.type)
        after.add_incoming(n, without)
        after.add_incoming(place, within)
        return after

    return types.uint64(v, types.uint64, types.float64, indices, values, types.uint64), generate


@kernel
def reaching(v, threshold, indices, values):
    """The increasing indices with |v_j| ≥ threshold, NaN included, and the values there, written to the front of two arrays (d,).

    Returns how many there are.
    """
    u = np.uint64
    n = u(0)
    in_blocks = u(v.size) - u(v.size) % u(_BLOCK)
    for start in range(u(0), in_blocks, u(_BLOCK)):
        n = _keep(v, start, threshold, indices, values, n)  # type: ignore[call-arg]
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
