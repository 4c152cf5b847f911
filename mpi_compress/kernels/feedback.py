"""Errors of error feedback, e_i/γ: additions to them, removal of what was sent, and their ‖·‖².

Squares are added in an order that is written down, so that they are the same to the last bit whatever a kernel does around them and
however wide a processor's registers are: 32 sums of every 32nd square, folded half onto half, then the last d mod 32.
"""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.threshold import reaches

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
    if not threshold > 0.0 or reaches(e, threshold):
        return False
    left = squares(e)
    note(sizes, step, left, left, 0.0)
    return True


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
