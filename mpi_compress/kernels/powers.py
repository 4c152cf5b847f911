"""Rounding of rows to powers of two with the first binary digits after the point, at random, so that the mean is exact."""

import numpy as np

from mpi_compress.kernels import kernel

_DIGITS = 52  # of a float after the point
_BELOW_ONE = np.int64(1023)  # what is added to exponents where they are stored


@kernel
def round_to_powers(vs, some, fraction, words, out):
    """out_ij (m, d) int32, in `some` rows: ±(p − 2^fraction·least + 1) of v_ij = ±2^e (1 + f), 0 of 0. p = 2^fraction·e +
    ⌊2^fraction·f⌋, or one more with the chance that is left of 2^fraction·f, by 53 bits of words, which have a row for each of
    these. Returns the least and the largest ⌊p/2^fraction⌋ of each row; 0 and 0 of one without nonzeros."""
    m, d = vs.shape
    bits = vs.view(np.int64)
    least, most = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
    low = np.int64(_DIGITS - fraction)  # binary digits that are rounded off
    unit = np.int64(1) << low
    for row, i in enumerate(np.flatnonzero(some)):
        first, last = np.int64(1 << 40), np.int64(-1 << 40)
        for j in range(d):
            if vs[i, j] == 0:
                out[i, j] = 0
                continue
            a, lowered = bits[i, j] & np.int64(0x7FFF_FFFF_FFFF_FFFF), np.int64(0)
            if a >> _DIGITS == 0:  # denormal
                a, lowered = np.float64(abs(vs[i, j]) * 2.0**64).view(np.int64), np.int64(64)
            rest = np.float64(a & (unit - 1)) / np.float64(unit)
            up = np.float64(words[row, j] >> np.uint64(11)) * 2.0**-53 < rest
            place = (a >> low) + up - ((_BELOW_ONE + lowered) << fraction)
            out[i, j] = place
            first, last = min(first, place), max(last, place)
        if last >= first:
            least[i], most[i] = first >> fraction, last >> fraction
        start = (least[i] << fraction) - 1
        for j in range(d):
            if vs[i, j] != 0:
                sign = np.int64(vs[i, j] < 0)
                out[i, j] = ((out[i, j] - start) ^ -sign) + sign
    return least, most
