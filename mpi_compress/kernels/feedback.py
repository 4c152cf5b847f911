"""Errors of error feedback, e_i/γ: additions to them, removal of what was sent, and their ‖·‖².

Squares are added in an order that is written down, so that they are the same to the last bit whatever a kernel does around them and
however wide a processor's registers are: 32 sums of every 32nd square, folded half onto half, then the last d mod 32.
"""

import numpy as np

from mpi_compress.kernels import kernel

_ONE, _LANES = np.uint64(1), np.uint64(32)
_TWO, _THREE, _FOUR = 2 * _LANES, 3 * _LANES, 4 * _LANES


@kernel
def squares(v):
    """Σ v_j²."""
    sums, size = np.zeros(_LANES), np.uint64(v.size)
    fours, whole = size - size % _FOUR, size - size % _LANES
    for start in range(np.uint64(0), fours, _FOUR):  # four squares a lane, so that its sum is read and written once for them
        for lane in range(_LANES):
            j = start + lane
            total = sums[lane] + v[j] * v[j]
            total += v[j + _LANES] * v[j + _LANES]
            total += v[j + _TWO] * v[j + _TWO]
            sums[lane] = total + v[j + _THREE] * v[j + _THREE]
    for start in range(fours, whole, _LANES):
        for lane in range(_LANES):
            sums[lane] += v[start + lane] * v[start + lane]
    width = _LANES >> _ONE
    while width:
        for lane in range(width):
            sums[lane] += sums[lane + width]
        width >>= _ONE
    total = sums[0]
    for j in range(whole, size):
        total += v[j] * v[j]
    return total


@kernel
def squares_of_rows(e):
    """`squares` of each row of e (m, d)."""
    out = np.empty(e.shape[0])
    for i in range(out.size):
        out[i] = squares(e[i])
    return out


@kernel
def note(sizes, step, corrected, left, density):
    """Write the sizes (m, 4) of a round: ‖e‖², Σ_t ‖e‖², the density of the message and ‖p/γ‖²; ‖e/γ‖² = left, all (m,)."""
    for i in range(left.size):
        error = step[i] * step[i] * left[i]
        sizes[i, 0] = error
        sizes[i, 1] += error
        sizes[i, 2] = density[i]
        sizes[i, 3] = corrected[i]


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
def take_out_of_rows(indices, values, ends, e, left, corrected):
    """e[indices] −= values, what was sent of each row of e (m, d), `ends` (m,) where each row's end. ‖e‖² goes to `left` (m,), and
    what it was before to `corrected`."""
    start = 0
    for i in range(ends.size):
        before, after = take_out(indices[start : ends[i]], values[start : ends[i]], e[i])
        left[i] = squares(e[i])
        corrected[i] = left[i] - after + before
        start = ends[i]
