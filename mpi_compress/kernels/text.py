"""LIBSVM text to numbers, lines `label index:value … # comment`; and parsed rows to their places in a data file.

A decimal number m · 10^e with m ≤ 2^53 and |e| ≤ 22 is rounded once, as a product or quotient with an exact power of ten, so it is
the nearest float64 (Clinger, PLDI 1990). Other numbers are left to the caller, and so are lines that are not of the usual form.
Parsed rows are (indptr (m+1,), indices (nnz,), values (nnz,)).
"""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.vectors import norm

_POWERS = np.array([float(10**e) for e in range(23)])  # all exact
_MOST = np.int64(2**53)
_FULL = np.int64((2**63 - 10) // 10)  # another digit fits
_TAB, _NEWLINE, _RETURN, _SPACE, _HASH, _PLUS, _MINUS, _POINT, _ZERO, _COLON = 9, 10, 13, 32, 35, 43, 45, 46, 48, 58

ROWS, ENTRIES, OPEN = 0, 1, 2
"""Places in `counts`."""
MALFORMED, EXACT, LEFT = 0, 1, 2
"""What `number` finds."""


@kernel
def _is_blank(c):
    return c == _SPACE or _TAB <= c <= _RETURN


@kernel
def _digits(text, p, m, dropped):
    """The integer m, continued by the digits from p on: (m, the place after them, how many do not fit into m)."""
    while True:
        c = np.int64(text[p]) - _ZERO
        if c < 0 or c > 9:
            return m, p, dropped
        if m <= _FULL and dropped == 0:
            m = 10 * m + c
        else:
            dropped += 1
        p += 1


@kernel
def _exponent(text, p):
    """(e, the place after it) for an exponent `e±digits` at p, 0 where there is none; MALFORMED is shown by a place of −1."""
    if text[p] | 32 != 101:
        return np.int64(0), p
    p += 1
    negative = text[p] == _MINUS
    if negative or text[p] == _PLUS:
        p += 1
    e, end, dropped = _digits(text, p, np.int64(0), np.int64(0))
    if end == p:
        return e, np.int64(-1)
    if dropped > 0 or e > 9999:
        e = np.int64(9999)
    return -e if negative else e, end


@kernel
def number(text, p):
    """The decimal number at p, which ends in white space, # or the end of its line: (value, the place after it, what it is)."""
    negative = text[p] == _MINUS
    if negative or text[p] == _PLUS:
        p += 1
    m, end, dropped = _digits(text, p, np.int64(0), np.int64(0))
    some = end > p
    e = dropped
    p = end
    if text[p] == _POINT:
        p += 1
        m, end, dropped = _digits(text, p, m, dropped)
        some = some or end > p
        e = dropped - (end - p)
        p = end
    power, p_after = _exponent(text, p)
    if not some or p_after < 0 or not (_is_blank(text[p_after]) or text[p_after] == _HASH):
        return 0.0, p, MALFORMED
    e += power
    value = float(m)
    kind = EXACT
    if m != 0:
        if dropped > 0 or m > _MOST or e < -22 or e > 22:
            kind = LEFT
        elif e < 0:
            value /= _POWERS[-e]
        else:
            value *= _POWERS[e]
    return -value if negative else value, p_after, kind


@kernel
def _after_blanks(text, p):
    while text[p] != _NEWLINE and _is_blank(text[p]):
        p += 1
    return p


@kernel
def parse(text, start, most, counts, labels, ends, indices, values, left):
    """Parse lines from `start` on, up to the end or to the first line that is not of the usual form; returns where that is.

    Args:
        text: (bytes,) uint8; ends in a newline.
        most: the largest index allowed; indices start at 1 and increase along a line.
        counts: (3,) rows, entries and numbers left so far; counted on.
        labels, ends: of each row, its label and where its entries end; indices, values: of each entry, its index − 1 and its value.
        left: (k, 2) of each number that the caller has to convert: the entry, or −1 − row for a label; and its place in the text.
    """
    row, entry, open_ = counts[ROWS], counts[ENTRIES], counts[OPEN]
    p = np.int64(start)
    while p < text.size:
        line, entry_before, open_before = p, entry, open_
        p = _after_blanks(text, p)
        if text[p] != _NEWLINE and text[p] != _HASH:
            value, end, kind = number(text, p)
            if kind == LEFT:
                left[open_, 0] = -1 - row
                left[open_, 1] = p
                open_ += 1
            labels[row] = value
            usual = kind != MALFORMED
            p = _after_blanks(text, end)
            if text[p] == 113 and text[p + 1] == 105 and text[p + 2] == 100 and text[p + 3] == _COLON:  # qid:
                while not (_is_blank(text[p]) or text[p] == _HASH):
                    p += 1
                p = _after_blanks(text, p)
            last = np.int64(0)
            while usual and text[p] != _NEWLINE and text[p] != _HASH:
                index, end, dropped = _digits(text, p, np.int64(0), np.int64(0))
                if end == p or text[end] != _COLON or dropped > 0 or index <= last or index > most:
                    usual = False
                    break
                p = _after_blanks(text, end + 1)
                value, end, kind = number(text, p)
                usual = kind != MALFORMED
                if kind == LEFT:
                    left[open_, 0] = entry
                    left[open_, 1] = p
                    open_ += 1
                indices[entry] = index - 1
                values[entry] = value
                entry += 1
                last = index
                p = _after_blanks(text, end)
            if not usual:
                counts[ROWS], counts[ENTRIES], counts[OPEN] = row, entry_before, open_before
                return line
            ends[row] = entry
            row += 1
        while text[p] != _NEWLINE:  # the comment
            p += 1
        p += 1
    counts[ROWS], counts[ENTRIES], counts[OPEN] = row, entry, open_
    return p


@kernel
def unit_rows(indptr, values):
    """Divide the values of every row by the row's norm; zero rows stay."""
    for i in range(indptr.size - 1):
        row = values[indptr[i] : indptr[i + 1]]
        size = norm(row)
        if size > 0.0:
            for p in range(row.size):
                row[p] /= size


@kernel
def place_sparse(indptr, indices, values, position, starts, out_indices, out_values):
    """Copy row i to the place of row position[i], unless that is negative; starts (N,): where a placed row begins."""
    for i in range(position.size):
        if position[i] >= 0:
            at = starts[position[i]]
            for p in range(indptr[i], indptr[i + 1]):
                out_indices[at] = np.uint32(indices[p])
                out_values[at] = values[p]
                at += 1


@kernel
def place_dense(indptr, indices, values, position, out):
    """Copy row i to row position[i] of an array (N, d), with its zeros, unless that is negative."""
    for i in range(position.size):
        if position[i] >= 0:
            row = out[position[i]]
            row[:] = 0.0
            for p in range(indptr[i], indptr[i + 1]):
                row[indices[p]] = values[p]
