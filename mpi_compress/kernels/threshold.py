"""The coordinates that reach a threshold, found in one pass at the speed of reading the vector."""

import numpy as np

from mpi_compress.kernels import cgutils, intrinsic, ir, kernel, side_by_side, types

_BLOCK = 32  # coordinates compared at once
_CACHED = 2048  # coordinates whose values are read again while they lie in the first cache
_PLACES = np.array([sorted(range(8), key=lambda j: ~byte >> j & 1) for byte in range(256)], dtype=np.uint8)
"""(256, 8): where the bits of a byte are set, lowest first; the entries after them have no meaning."""


@intrinsic
def reaching_of_block(typing_context, v, start, threshold):
    """Bits for the block of v from `start`, the lowest for its first coordinate: 1 if |v_j| reaches the threshold or is NaN."""
    side_by_side(v)

    def generate(context, builder, signature, arguments):
        _, start, level = arguments
        numbers, index = ir.VectorType(ir.DoubleType(), _BLOCK), ir.IntType(32)
        x = builder.load(builder.bitcast(_pointer(context, builder, signature, arguments, 0, start), numbers.as_pointer()))
        x.align = 8
        kept = builder.fcmp_unordered(">=", magnitudes(builder, x), repeated(builder, level, numbers))
        return builder.bitcast(kept, index)

    return types.uint32(v, types.uint64, types.float64), generate


@intrinsic
def put_places(typing_context, byte, start, indices, n, places):
    """Write start + j for every set bit j of `byte` to `indices` from the n-th entry on; 8 entries change. Returns the new n.
    AVX-512 has an instruction for this, which takes some processors tens of cycles; a table is nearly as fast, on all of them."""

    def generate(context, builder, signature, arguments):
        byte, start, _, n, _ = arguments
        index = ir.IntType(32)
        eight = ir.VectorType(index, 8)
        at = _pointer(context, builder, signature, arguments, 4, builder.mul(byte, byte.type(8)))
        row = builder.load(builder.bitcast(at, ir.VectorType(ir.IntType(8), 8).as_pointer()))
        row.align = 1
        js = builder.add(builder.zext(row, eight), repeated(builder, builder.trunc(start, index), eight))
        store = builder.store(js, builder.bitcast(_pointer(context, builder, signature, arguments, 2, n), eight.as_pointer()))
        store.align = 4
        return builder.add(n, builder.ctpop(byte))

    return types.uint64(types.uint64, types.uint64, indices, types.uint64, places), generate


def _pointer(context, builder, signature, arguments, k, at):
    """A pointer to the at-th number of the k-th argument, an array."""
    return builder.gep(context.make_array(signature.args[k])(context, builder, arguments[k]).data, [at])


def magnitudes(builder, x):
    """|x| of a vector of float64."""
    name = f"llvm.fabs.v{x.type.count}f64"
    return builder.call(cgutils.get_or_insert_function(builder.module, ir.FunctionType(x.type, [x.type]), name), [x])


def repeated(builder, scalar, kind):
    """A vector of type `kind` that repeats one number."""
    index = ir.IntType(32)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, ir.Constant(index, 0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(index, kind.count), [0] * kind.count))


@kernel
def reaching(v, threshold, indices, values):
    """The increasing indices with |v_j| ≥ threshold, NaN included, and the values there, written to the front of two arrays (d,).
    Returns their number. Blocks with such coordinates are listed first, without a branch that processors could mispredict."""
    u = np.uint64
    n = u(0)
    in_blocks = u(v.size) - u(v.size) % u(_BLOCK)
    listed = np.empty(_CACHED // _BLOCK, dtype=np.uint64)  # blocks with hits: 32 bits for the start, 32 bits for the hits
    for first in range(u(0), in_blocks, u(_CACHED)):
        m = u(0)
        for start in range(first, min(first + u(_CACHED), in_blocks), u(_BLOCK)):
            held = u(reaching_of_block(v, start, threshold))
            listed[m] = start << u(32) | held
            m += u(held != u(0))
        before = n
        for i in range(m):
            start = listed[i] >> u(32)
            for j in range(u(0), u(_BLOCK), u(8)):
                n = put_places(listed[i] >> j & u(255), start + j, indices, n, _PLACES)
        for p in range(before, n):
            values[p] = v[indices[p]]
    for j in range(in_blocks, u(v.size)):
        indices[n] = j
        values[n] = v[j]
        n += u(not abs(v[j]) < threshold)
    return n


@kernel
def reaching_of_rows(vs, rows, threshold):
    """`reaching` in `rows` int64 of vs (m, d): indices and values, one row after another, and where those of each row end."""
    n, dim, ends = 0, vs.shape[1], np.empty(rows.size, dtype=np.int64)
    indices, values = np.empty(rows.size * dim, dtype=np.uint32), np.empty(rows.size * dim)
    for r in range(rows.size):
        n += int(reaching(vs[rows[r]], threshold, indices[n : n + dim], values[n : n + dim]))
        ends[r] = n
    return indices[:n].copy(), values[:n].copy(), ends


@kernel
def reaching_among(v, touched, threshold):
    """`reaching` among the coordinates `touched` (increasing): their indices and values."""
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
