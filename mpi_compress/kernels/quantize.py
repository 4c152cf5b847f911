"""Rounding to the grid scale·{…, −1, 0, 1, …}: at random, so that the mean is exact, or to the nearest point.

Random rounding compares the first eight binary digits of the part after the point with a random byte; where they are equal, which
is rare, a second draw of 53 bits is compared with the other digits. If a scale is not finite, its integers are all 1, so that the
receiver sees the scale in every coordinate.
"""

import numpy as np
from numpy.random import Generator

from mpi_compress.kernels import kernel
from mpi_compress.kernels.hits import BLOCK, append_hits, with_room
from mpi_compress.kernels.probabilities import measure, random_bytes

MOST = 2**53  # the largest integer that is rounded to


def round_at_random(v, scales, bucket, top, out, rng: Generator):
    """out_j: an integer next to v_j / scales[⌊j/bucket⌋], equal to it in the mean; at most `top` ≤ MOST in size.

    v (d,), out (d,) of integers; a scale is 0 only where its bucket is.
    """
    v, u = np.ascontiguousarray(v, dtype=np.float64), random_bytes(rng, v.size)
    tied = quantize(v, scales, bucket, top, u, out)
    settle(v, scales, bucket, top, tied, rng.random(tied.size), out)
    return out


@kernel
def _grid(scale):
    """lift and per_scale such that |v|·lift·per_scale = 256·|v|/scale, without 1/scale overflowing."""
    lift = 2.0**300 if scale < 2.0**-900 else 1.0
    return lift, 256 / (scale * lift)


@kernel
def quantize(v, scales, bucket, top, u, out):
    """Round by the bytes u (d,). Returns the indices where a byte does not decide."""
    tied, n = with_room(np.empty(v.size >> 6, dtype=np.uint32), np.uint64(0)), np.uint64(0)
    tie = np.zeros(BLOCK, dtype=np.uint8)
    eight = tie.view(np.uint64)
    for b in range(scales.size):
        first, end = b * bucket, min((b + 1) * bucket, v.size)
        if not 0 < scales[b] < np.inf:
            out[first:end] = 0 if scales[b] == 0 else 1
            continue
        lift, per_scale = _grid(scales[b])
        for start in range(first, end, BLOCK):
            stop = min(start + BLOCK, end)
            tied = with_room(tied, n)
            _round_block(v[start:stop], lift, per_scale, np.int64(top) << 8, u[start:stop], out[start:stop], tie)
            n = append_hits(tie, eight, stop - start, start, tied, n)
    return tied[:n].copy()


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
def settle(v, scales, bucket, top, tied, spare, out):
    """Round at `tied`, by `spare` uniform on [0, 1)."""
    for i in range(tied.size):
        j = tied[i]
        lift, per_scale = _grid(scales[j // bucket])
        x = min(abs(v[j]) * lift * per_scale, 256.0 * top)
        size = (np.int64(x) >> 8) + (spare[i] < x - np.floor(x))
        out[j] = -size if v[j] < 0 else size


@kernel
def round_to_nearest(v, step, out):
    """out_j: the integer for which step·out_j, rounded to a float as the receiver will, is nearest to v_j."""
    for j in range(v.size):
        x = np.rint(v[j] / step)
        off = v[j] - step * x
        if off > 0.5 * step:
            x += 1
        elif off < -0.5 * step:
            x -= 1
        out[j] = np.int64(x)


@kernel
def bucket_sizes(v, bucket, euclidean, out):
    """out_b: the 2-norm of bucket b if `euclidean`, else its largest magnitude; NaN and infinity propagate."""
    for b in range(out.size):
        part = v[b * bucket : min((b + 1) * bucket, v.size)]
        out[b], _, _, squares = measure(part, 1.0)
        if euclidean and 0 < out[b] < np.inf:
            lift = 1.0
            if not 1e-140 < out[b] < 1e140:  # squares that are no floats
                lift = 2.0**600 if out[b] < 1 else 2.0**-600
                _, _, _, squares = measure(part, lift)
            out[b] = np.sqrt(squares) / lift
