"""Dense rows against vectors in sums that are written out, so that their bits depend on no processor.

a · x is eight sums: product j is added to sum j mod 8, with one rounding; the eight are added in pairs, and then the products
behind the last whole eight, one after another. Rows are added to a vector one after another, each product with one rounding.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from mpi_compress.kernels import intrinsic, kernel
from mpi_compress.kernels.instructions import fma

EIGHT, _FOUR = np.uint64(8), np.uint64(4)
WHOLE = ~np.uint64(7)  # n & WHOLE: the whole eights of n
_SUMS = 32  # of absolute values and of squares
_AHEAD = 512  # bytes: so early rows are fetched
_IN_PAIRS = [(0, 1), (2, 3), (4, 5), (6, 7)], [(0, 1), (2, 3)], [(0, 1)]


def _sweep(rows: int, before: int) -> Any:
    """The instruction (A, i, x, scales, out, dots), over the whole eights of columns: dots_r is a_{i+r} · x for r < `rows`, and
    meanwhile out += Σ scales_r a_{i−before+r} for r < `before`. Of one row the dot is returned."""

    @intrinsic
    def sweep(typing, A, i, x, scales, out, dots):
        from numba import types

        if A.layout != "C":
            raise TypeError("rows are C-contiguous")
        made = types.float64 if rows == 1 else types.void
        return made(A, types.uint64, x, scales, out, dots), _loop(rows, before)

    return sweep


def _loop(rows: int, before: int) -> Callable[..., Any]:
    """Writes the loop of `_sweep`. Vectors of eight numbers are what the processor has: one register, or some."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from llvmlite import ir
        from numba.core import cgutils

        index, number, byte, word = ir.IntType(64), ir.DoubleType(), ir.IntType(8).as_pointer(), ir.IntType(32)
        eight = ir.VectorType(number, 8)
        held = context.get_value_type(signature.args[0].dtype)
        A, x, scales, out, dots = (context.make_array(signature.args[k])(context, builder, arguments[k]) for k in (0, 2, 3, 4, 5))
        d, zeros = builder.extract_value(A.shape, 1), ir.Constant(eight, [0.0] * 8)
        fused = cgutils.get_or_insert_function(builder.module, ir.FunctionType(eight, [eight] * 3), "llvm.fma.v8f64")
        fetch = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [byte, word, word, word]), "llvm.prefetch.p0i8"
        )

        def row(r: int) -> Any:
            return builder.gep(A.data, [builder.mul(builder.add(arguments[1], index(r)), d)])

        def read(pointer: Any, j: Any, of: Any = number) -> Any:
            vector = builder.load(builder.bitcast(builder.gep(pointer, [j]), ir.VectorType(of, 8).as_pointer()))
            vector.align = 8 if of == number else 4
            return vector if of == number else builder.fpext(vector, eight)

        def spread(pointer: Any, r: int) -> Any:
            one = builder.insert_element(ir.Constant(eight, ir.Undefined), builder.load(builder.gep(pointer, [index(r)])), word(0))
            return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(word, 8), [0] * 8))

        now, earlier = [row(r) for r in range(rows)], [row(r - before) for r in range(before)]
        factors = [spread(scales.data, r) for r in range(before)]
        entry, loop, end = builder.block, builder.append_basic_block("loop"), builder.append_basic_block("end")
        whole = builder.and_(d, index(-8))
        builder.cbranch(builder.icmp_unsigned(">", whole, index(0)), loop, end)
        builder.position_at_end(loop)
        j, sums = builder.phi(index), [builder.phi(eight) for _ in now]
        for pointer in now:
            ahead = builder.gep(builder.bitcast(builder.gep(pointer, [j]), byte), [index(_AHEAD)])
            builder.call(fetch, [ahead, word(0), word(3), word(1)])
        at_x = read(x.data, j)
        added = [builder.call(fused, [read(p, j, held), at_x, s]) for p, s in zip(now, sums, strict=True)]
        if before:
            total = read(out.data, j)
            for pointer, factor in zip(earlier, factors, strict=True):
                total = builder.call(fused, [read(pointer, j, held), factor, total])
            builder.store(total, builder.bitcast(builder.gep(out.data, [j]), eight.as_pointer())).align = 8
        following = builder.add(j, index(8))
        j.add_incoming(index(0), entry)
        j.add_incoming(following, loop)
        for s, new in zip(sums, added, strict=True):
            s.add_incoming(zeros, entry)
            s.add_incoming(new, loop)
        builder.cbranch(builder.icmp_unsigned("<", following, whole), loop, end)
        builder.position_at_end(end)
        lasts = [builder.phi(eight) for _ in added]  # a block begins with its phis
        for last, new in zip(lasts, added, strict=True):
            last.add_incoming(zeros, entry)
            last.add_incoming(new, loop)
        for r, last in enumerate(lasts):
            parts = [builder.extract_element(last, word(k)) for k in range(8)]
            for pairs in _IN_PAIRS:
                parts = [builder.fadd(parts[a], parts[b]) for a, b in pairs]
            if rows == 1:
                return parts[0]
            builder.store(parts[0], builder.gep(dots.data, [index(r)]))
        return context.get_dummy_value()

    return generate


_one, _first, _next = _sweep(1, 0), _sweep(8, 0), _sweep(8, 8)


@kernel
def absolute_and_squares(v, scale, level):
    """Σ a_j and Σ a_j² over the a_j = |v_j|·scale below `level`, or all if that is NaN: a_j goes to sum j mod 32, and these are
    added in halves."""
    a, b = np.zeros(_SUMS), np.zeros(_SUMS)
    for start in range(0, v.size, _SUMS):
        part = v[start : start + _SUMS]
        for j in range(part.size):
            size = abs(part[j]) * scale
            size = size if size < level or level != level else 0.0
            a[j] += size
            b[j] += size * size
    half = _SUMS // 2
    while half > 0:
        for j in range(half):
            a[j] += a[j + half]
            b[j] += b[j + half]
        half //= 2
    return a[0], b[0]


@kernel
def dot(A, i, x):
    """a_i · x."""
    total = _one(A, i, x, x, x, x)
    for j in range(np.uint64(x.size) & WHOLE, np.uint64(x.size)):
        total = fma(A[i, j], x[j], total)
    return total


@kernel
def add(A, i, scale, out):
    """out += scale · a_i."""
    for j in range(np.uint64(out.size)):
        out[j] = fma(scale, A[i, j], out[j])


@kernel
def dots(A, i, x, out):
    """out_r = a_{i+r} · x; eight rows at once, so that x is read once for them."""
    eights = np.uint64(out.size) & WHOLE
    for r in range(np.uint64(0), eights, EIGHT):
        next_eight(A, i + r, x, out, out, out[r : r + EIGHT], True)
    for r in range(eights, np.uint64(out.size)):
        out[r] = dot(A, i + r, x)


@kernel
def add_rows(A, i, scales, out):
    """out += Σ_r scales_r a_{i+r}; four rows at once, so that `out` is read and written once for them."""
    fours = np.uint64(scales.size) & ~np.uint64(3)
    for r in range(np.uint64(0), fours, _FOUR):
        a, b, c, d = A[i + r], A[i + r + np.uint64(1)], A[i + r + np.uint64(2)], A[i + r + np.uint64(3)]
        s, t, u, v = scales[r], scales[r + np.uint64(1)], scales[r + np.uint64(2)], scales[r + np.uint64(3)]
        for j in range(out.size):
            out[j] = fma(v, d[j], fma(u, c[j], fma(t, b[j], fma(s, a[j], out[j]))))
    for r in range(fours, np.uint64(scales.size)):
        add(A, i + r, scales[r], out)


@kernel
def next_eight(A, i, x, scales, out, dots, are_first):
    """dots (8,): a_i · x, … of the next eight rows; those before are added to `out`, times scales (8,), unless there are none."""
    if are_first:
        _first(A, i, x, scales, out, dots)
    else:
        _next(A, i, x, scales, out, dots)
    whole = np.uint64(x.size) & WHOLE
    for r in range(EIGHT):
        row, total = A[i + r], dots[r]
        for j in range(whole, np.uint64(x.size)):
            total = fma(row[j], x[j], total)
        dots[r] = total
    for j in range(whole, np.uint64(0 if are_first else x.size)):
        for r in range(EIGHT):
            out[j] = fma(scales[r], A[i - EIGHT + r, j], out[j])
