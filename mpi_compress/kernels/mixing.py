"""Integers by the range coder, with the chance of each bit mixed from what followed several contexts before.

An integer of B bits is a path down a binary tree. For each of the `INPUTS` contexts a table has the chance of a 1 at the node, in
65536ths, and how often that was seen. The chances are added up in the logistic domain, in units of 1/170, with weights that are
learned online (Mahoney 2005, "Adaptive Weighing of Context Models"): each input has a weight for how often it was seen, in two sets
of weights, whose sums are averaged. All of it is in integers, so that any machine reads what any other wrote. One function writes
and reads, so that both learn the same.
"""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels import range_coder as coder

u = np.uint64
INPUTS = 8
FIRST, SETS = 4, 512  # sets of weights: those that are chosen first, and all of them
LEVELS = 8  # of how often a context was seen
START = 11796  # 0.18 of 65536, the weights at first
MOST = 255  # times that a context is counted
ROOM = 16  # digits that a bit can need, and the coder's slack
UNIT, END = 170, 2047  # of the logistic domain
SQUASH = np.clip(np.round(65536 / (1 + np.exp(-np.arange(-END, END + 1) / UNIT))), 16, 65520).astype(np.int64)
_CELLS = np.arange(4096) + 0.5
STRETCH = np.clip(np.round(np.log(_CELLS / (4096 - _CELLS)) * UNIT), -END, END).astype(np.int64)
LEVEL = np.array([0, 1, 2, 3, *[4] * 4, *[5] * 16, *[6] * 76, *[7] * 156])
SPREAD = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio, which spreads keys over a table (Knuth)


@kernel
def squashed(sum_of_inputs):
    """The chance, of 65536, of a sum with weights of 16 bits."""
    return SQUASH[min(max(sum_of_inputs >> 16, -END), END) + END]


@kernel
def spread(one, other):
    """A key of two numbers."""
    return (u(one) + u(1)) * u(SPREAD) ^ u(other)


@kernel
def coded(n, bits, keys, first, second, model, stream):
    """Write an integer n of so many bits, or read it, in contexts `keys`, INPUTS of uint64, by two sets of weights.

    Args:
        model: chance uint16 and seen uint8 of 2^k cells, weights int64 (SETS, INPUTS, LEVELS), and scratch int64 (5, INPUTS).
        stream: digits or data, and the coder's state, an array.
    """
    chance, seen, weights, (slots, inputs, level, p, never) = model
    data, state = stream
    second = FIRST + second % (SETS - FIRST)
    node = u(1)
    for depth in range(bits):
        one = two = np.int64(0)
        for i in range(INPUTS):
            key = spread(keys[i], node * u(INPUTS) + u(i)) * u(SPREAD)
            slots[i] = np.int64((key ^ key >> u(29)) * u(SPREAD) >> u(40)) & np.int64(chance.size - 1)
            times = seen[slots[i]]
            level[i], inputs[i] = LEVEL[times], STRETCH[chance[slots[i]] >> 4] if times else 0
            one += weights[first, i, level[i]] * inputs[i]
            two += weights[second, i, level[i]] * inputs[i]
        p[0], never[0] = (65536 - squashed((one + two) >> 1)) << 12, 0
        found, moved = coder.code_bit(n >> (bits - 1 - depth) & 1, 0, p, never, data, (state[0], state[1], state[2]))
        bit = np.int64(found)
        state[0], state[1], state[2] = moved
        for i in range(INPUTS):
            weights[first, i, level[i]] += inputs[i] * ((bit << 16) - squashed(one)) >> 13
            weights[second, i, level[i]] += inputs[i] * ((bit << 16) - squashed(two)) >> 13
            times, before = np.int64(seen[slots[i]]), np.int64(chance[slots[i]])
            chance[slots[i]] = before + (bit * 65535 - before) * 2 // (2 * times + 3)
            seen[slots[i]] = min(times + 1, MOST)
        node = node << u(1) | u(bit)
    return np.int64(node ^ u(1) << u(bits - 1) << u(1))


@kernel
def code_bits(rows, labels, model, stream):
    """Write or read bits rows (N, across) uint8, by those of three rows above and the entries before. False: there is no room, or
    no more to read."""
    for r in range(rows.shape[0]):
        label, missed, run = u(labels[r]), u(0), u(0)
        one = two = three = u(0)
        for c in range(rows.shape[1]):
            above = u(0)
            for j in range(1, 4):
                above = above << u(1) | (u(rows[r - j, c]) if r >= j else u(0))
            column, over = u(c), above >> u(2)
            last = spread(column, one)
            keys = (
                column, spread(column, above >> u(1) << u(2) | missed), last, spread(last, two), spread(spread(last, two), three),
                spread(column, over << u(1) | label), spread(last, over << u(2) | missed),
                above << u(6) | missed << u(4) | min(run, u(15)),
            )  # fmt: skip
            rows[r, c] = coded(np.int64(rows[r, c]), 1, keys, np.int64(missed), c, model, stream)
            if u(rows[r, c]) == over:
                run += u(1)
            else:
                missed, run = min(missed + u(1), u(3)), u(0)
            if rows[r, c]:
                one, two, three = column + u(1), one, two
            if is_full(1, *stream):
                return False
    return True


@kernel
def code_numbers(numbers, columns, bits, model, stream):
    """Write or read numbers (M,) uint64 of so many bits, by those before and those above in their `columns` (M,)."""
    above = np.zeros((2, columns.max() + 1 if columns.size else 1), np.uint64)
    one = two = u(0)
    for j in range(numbers.size):
        c = columns[j]
        column, over, last = u(c), spread(u(c), above[0, c]), spread(u(c), one)
        before, twice = spread(u(1), one), spread(last, two)
        keys = (u(0), column, over, spread(over, above[1, c]), last, before, spread(last, above[0, c]), twice)
        numbers[j] = u(coded(np.int64(numbers[j]), bits, keys, 0, c, model, stream))
        above[1, c], above[0, c] = above[0, c], numbers[j]
        one, two = numbers[j], one
        if is_full(bits, *stream):
            return False
    return True


@coder.by_data
def is_full(bits, data, state):
    """True if the room for digits, or what is read, ends here."""
    if coder.writes(data):
        return lambda bits, data, state: state[2] + u(ROOM * (bits + 1)) > u(data.size)
    return lambda bits, data, state: coder.is_over(data, state)
