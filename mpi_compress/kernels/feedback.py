"""Errors of error feedback, e_i/γ: additions to them, removal of what was sent, and their ‖·‖².

Squares are added in an order that is written down, so that they are the same to the last bit whatever a kernel does around them and
however wide a processor's registers are: 32 sums of every 32nd square, folded half onto half, then the last d mod 32.
"""

import numpy as np

from mpi_compress.kernels import intrinsic, ir, kernel, side_by_side, types
from mpi_compress.kernels.threshold import magnitudes, repeated

_LANES = 32


@intrinsic
def squares_in_lanes(typing_context, v, threshold):
    """The sum of squares of as much of v as fills all lanes, and whether any |v_j| there reaches the threshold, NaN included."""
    side_by_side(v)

    def generate(context, builder, signature, arguments):
        number, count, index = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
        numbers, flags = ir.VectorType(number, _LANES), ir.VectorType(ir.IntType(1), _LANES)
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        level = repeated(builder, arguments[1], numbers)
        stop = builder.and_(array.nitems, ir.Constant(count, -_LANES))
        before, loop, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
        builder.cbranch(builder.icmp_unsigned("!=", stop, ir.Constant(count, 0)), loop, after)
        builder.position_at_end(loop)
        at, sums, reached = builder.phi(count), builder.phi(numbers), builder.phi(flags)
        x = builder.load(builder.bitcast(builder.gep(array.data, [at]), numbers.as_pointer()))
        x.align = 8
        grown = builder.fadd(sums, builder.fmul(x, x))
        found = builder.or_(reached, builder.fcmp_unordered(">=", magnitudes(builder, x), level))
        next_ = builder.add(at, ir.Constant(count, _LANES))
        builder.cbranch(builder.icmp_unsigned("<", next_, stop), loop, after)
        builder.position_at_end(after)
        total, any_ = builder.phi(numbers), builder.phi(flags)
        for phi, first, later in ((at, 0, next_), (sums, None, grown), (reached, None, found)):
            phi.add_incoming(ir.Constant(phi.type, first), before)
            phi.add_incoming(later, loop)
        for phi, later in ((total, grown), (any_, found)):
            phi.add_incoming(ir.Constant(phi.type, None), before)
            phi.add_incoming(later, loop)
        width = _LANES
        while width > 1:
            width //= 2
            halves = (
                builder.shuffle_vector(total, total, ir.Constant(ir.VectorType(index, width), list(range(start, start + width))))
                for start in (0, width)
            )
            total = builder.fadd(*halves)
        total = builder.extract_element(total, ir.Constant(index, 0))
        any_ = builder.icmp_unsigned("!=", builder.bitcast(any_, index), ir.Constant(index, 0))
        return context.make_tuple(builder, signature.return_type, (total, any_))

    return types.Tuple((types.float64, types.boolean))(v, types.float64), generate


@kernel
def squares(v):
    """Σ v_j²."""
    total, _ = squares_in_lanes(v, np.inf)
    for j in range(v.size - v.size % _LANES, v.size):
        total += v[j] * v[j]
    return total


@kernel
def squares_below(v, threshold):
    """‖v‖² if all |v_j| < threshold, otherwise −1."""
    total, reached = squares_in_lanes(v, threshold)
    for j in range(v.size - v.size % _LANES, v.size):
        total += v[j] * v[j]
        reached |= not abs(v[j]) < threshold
    return -1.0 if reached else total


@kernel
def note(sizes, step, corrected, left, density):
    """Write the sizes (4,) of a round: ‖e‖², Σ_t ‖e‖², the density of the message and ‖p/γ‖²; ‖e/γ‖² = left."""
    error = step * step * left
    sizes[0] = error
    sizes[1] += error
    sizes[2] = density
    sizes[3] = corrected


@kernel
def is_silent(e, threshold, step, sizes):
    """True if all |e_j| < threshold: nothing is sent, and `sizes` are written. A threshold of 0 means that there is none."""
    if threshold > 0.0:
        below = squares_below(e, threshold)
        if below >= 0.0:
            note(sizes, step, below, below, 0.0)
            return True
    return False


@kernel
def grow(e, g, h, threshold, step, sizes):
    """e += g − h, or e += g where h (0,) is empty, all (d,). Returns whether it `is_silent` then."""
    if h.size == 0:
        for j in range(e.size):
            e[j] += g[j]
    else:
        for j in range(e.size):
            e[j] += g[j] - h[j]
    return is_silent(e, threshold, step, sizes)


@kernel
def grow_all(e, g, h, threshold, step, sizes, silent):
    """`grow` of all rows (m, d), h (m, 0) if empty, sizes (m, 4); its results go to `silent` (m,)."""
    for i in range(silent.size):
        silent[i] = grow(e[i], g[i], h[i], threshold, step, sizes[i])


@kernel
def take_out(indices, values, v):
    """v[indices] −= values. Returns Σ v² there, before and after."""
    before = after = 0.0
    for j in range(indices.size):
        i = indices[j]
        a = v[i]
        b = a - values[j]
        v[i] = b
        before += a * a
        after += b * b
    return before, after


@kernel
def take_out_and_note(indices, values, e, step, sizes):
    """e[indices] −= values, what was sent of e (d,); `sizes` are written."""
    before, after = take_out(indices, values, e)
    left = squares(e)
    note(sizes, step, left - after + before, left, indices.size / e.size)


@kernel
def take_out_of_rows(indices, values, ends, rows, e, step, sizes):
    """`take_out_and_note` of `rows` int64 of e (m, d) and sizes (m, 4), each with its own of `SparseRows`."""
    start = 0
    for r in range(rows.size):
        row = rows[r]
        take_out_and_note(indices[start : ends[r]], values[start : ends[r]], e[row], step, sizes[row])
        start = ends[r]
