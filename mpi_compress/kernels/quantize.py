"""Rounding of rows to the grid scale·{…, −1, 0, 1, …}: at random, so that the mean is exact, or to the nearest point.

Random rounding compares the first eight binary digits of the part after the point with a random byte; where they are equal, which
is rare, a second draw of 53 bits is compared with the other digits. If a scale is not finite, its integers are all 1, so that the
receiver sees the scale in every coordinate.
"""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.hits import BLOCK, append_hits, with_room
from mpi_compress.kernels.probabilities import random_bytes

MOST = 2**53  # the largest integer that is rounded to


def round_at_random(vs, scales, bucket, top, out, t, some=None):
    """out_ij: an integer next to v_ij / scales[i, ⌊j/bucket⌋], equal to it in the mean; at most `top` ≤ MOST in size.

    vs (m, d), out (m, d) of integers, t the rows' `streams.Rounds`; a scale is 0 only where its bucket is. `some` (m,): rows that
    are not of these draw nothing, and stay as they are.
    """
    if some is not None and not some.all():
        out[some] = round_at_random(vs[some], scales[some], bucket, top, out[some], t[some])
        return out
    tied, counts = quantize(vs, scales, bucket, top, random_bytes(t, vs.shape[1]), out)
    settle(vs, scales, bucket, top, tied, counts, t.random(counts), out)
    return out


@kernel
def _grid(scale):
    """lift and per_scale such that |v|·lift·per_scale = 256·|v|/scale, without 1/scale overflowing."""
    lift = 2.0**300 if scale < 2.0**-900 else 1.0
    return lift, 256 / (scale * lift)


@kernel
def quantize(vs, scales, bucket, top, u, out):
    """Round rows by the bytes u (m, d or more). Returns the indices where a byte does not decide, and how many each row has."""
    m, d = vs.shape
    tied, n, counts = with_room(np.empty(vs.size >> 6, dtype=np.uint32), np.uint64(0)), np.uint64(0), np.empty(m, dtype=np.int64)
    tie = np.zeros(BLOCK, dtype=np.uint8)
    eight = tie.view(np.uint64)
    for i in range(m):
        before = n
        for b in range(scales.shape[1]):
            scale, first, end = scales[i, b], b * bucket, min((b + 1) * bucket, d)
            if not 0 < scale < np.inf:
                out[i, first:end] = 0 if scale == 0 else 1
                continue
            lift, per_scale = _grid(scale)
            for start in range(first, end, BLOCK):
                stop = min(start + BLOCK, end)
                tied = with_room(tied, n)
                _round_block(vs[i, start:stop], lift, per_scale, np.int64(top) << 8, u[i, start:stop], out[i, start:stop], tie)
                n = append_hits(tie, eight, stop - start, start, tied, n)
        counts[i] = n - before
    return tied, counts


@kernel
def _round_block(v, lift, per_scale, top, u, out, tie):
    """With y = ⌊256·|v|/scale⌋: ⌊y/256⌋, and one more where the last eight bits of y are above u. Only whole numbers, no branch."""
    for j in range(v.size):
        y = np.int64(abs(v[j]) * lift * per_scale)
        y = y if y < top else top
        r = np.int64(u[j])
        tie[j] = (y & 255) == r
        sign = np.int64(v[j] < 0)
        out[j] = (((y + 255 - r) >> 8) ^ -sign) + sign


@kernel
def settle(vs, scales, bucket, top, tied, counts, spare, out):
    """Round at `tied`, of which each row has `counts` (m,), by `spare` uniform on [0, 1)."""
    at = 0
    for i in range(counts.size):
        for _ in range(counts[i]):
            j = tied[at]
            v = vs[i, j]
            lift, per_scale = _grid(scales[i, j // bucket])
            x = min(abs(v) * lift * per_scale, 256.0 * top)
            size = (np.int64(x) >> 8) + (spare[at] < x - np.floor(x))
            out[i, j] = -size if v < 0 else size
            at += 1


@kernel
def round_to_nearest(vs, step, some, out):
    """out_ij: the integer for which step·out_ij, rounded to a float as the receiver will, is nearest to v_ij, in `some` rows."""
    for i in np.flatnonzero(some):
        for j in range(vs.shape[1]):
            x = np.rint(vs[i, j] / step)
            off = vs[i, j] - step * x
            if off > 0.5 * step:
                x += 1
            elif off < -0.5 * step:
                x -= 1
            out[i, j] = np.int64(x)

