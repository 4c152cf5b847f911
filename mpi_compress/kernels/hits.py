"""The coordinates of a vector that meet a condition, in increasing order.

Magnitudes are compared as integers: the bits of |v_j| are in the order of |v_j|, infinity comes above every number and NaN above
infinity, so that neither is lost. A threshold is such an integer too.
"""

import numpy as np
from numpy.typing import NDArray

from mpi_compress.kernels import inlined_kernel, kernel

u = np.uint64
Indices = NDArray[np.uint32]
MAGNITUDE = np.int64(0x7FFF_FFFF_FFFF_FFFF)  # all bits of a float but its sign
BLOCK = 512  # coordinates compared at once, in vector registers


@kernel
def take(v, indices, out):
    """out = v[indices], all (T,)."""
    for j in range(indices.size):
        out[j] = v[indices[j]]


@inlined_kernel
def append_hits(hit, eight, size, start, found, n):
    """Append to the n indices `found` each start + j, j < size, where hit (BLOCK,) is 1 and not 0. Returns the new n. `eight` is
    `hit` as words of eight: where hits are rare, 64 or 8 neighbours are skipped at once. `found` is `with_room`: some entries are
    written twice."""
    for j in range(size, BLOCK):
        hit[j] = 0
    for first in range(0, (size + 7) >> 3, 8):
        some = u(0)
        for w in range(8):
            some |= eight[u(first) + u(w)]
        if some:
            for w in range(first, first + 8):
                if eight[w]:
                    for j in range(8 * w, 8 * w + 8):
                        found[n] = start + j
                        n += u(hit[j])
    return n


@kernel
def with_room(found, n):
    """`found`, or a longer copy of its first n, with room for the indices of one more block."""
    if np.int64(n) + BLOCK + 8 <= found.size:
        return found
    longer = np.empty(2 * found.size + BLOCK + 8, dtype=np.uint32)
    for j in range(n):  # to assign a slice takes two seconds to compile
        longer[j] = found[j]
    return longer
