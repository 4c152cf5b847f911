"""A second reader of messages of the codec `entropy`, in plain Python: levels of QSGD, powers of two, and symmetric matrices.

It was written from the text of the codec and of its kernels, and imports nothing of the package, so that two programs establish
what a message says. A field of whole numbers is a byte with the bit length of the largest magnitude and, unless that is 0, the
numbers by an adaptive range coder (Martin 1979). It has no length of its own: it ends with the fewest bytes that decide it,
whatever follows.
"""

import struct
from collections import defaultdict

import numpy as np

WORD = 2**64  # the coder works with numbers below this
ONE = 2**28  # the chance of what is certain
LEAST = 2**12  # the least chance of an outcome
FORGETS = 4095  # outcomes after which a chance no longer moves more slowly
LEARNED = 3  # bits below the leading one of a number whose chances are learned


class Bits:
    """Bits by the range coder from `data[start]` on; the chance that a bit is 0 is learned for each name apart."""

    def __init__(self, data, start):
        self.data, self.at = data, start + 8
        self.above = int.from_bytes(self._bytes(start, self.at), "big")  # how far the number lies above the interval's lower end
        self.width = WORD - 1
        self.chances = defaultdict(lambda: (ONE // 2, 0))

    def _bytes(self, start, end):
        return self.data[start:end].ljust(end - start, b"\0")

    def _narrowed(self, above, width):
        self.above, self.width = above, width
        while self.width < WORD >> 8:
            self.above = self.above << 8 | self._bytes(self.at, self.at + 1)[0]
            self.width, self.at = self.width << 8, self.at + 1

    def learned(self, name):
        """A bit whose chance is learned from the bits before of that name."""
        chance, seen = self.chances[name]
        split = (self.width >> 28) * chance
        bit = self.above >= split
        moved = chance + (((0 if bit else ONE) - chance) * (2**17 // (2 * seen + 3)) >> 16)
        self.chances[name] = min(max(moved, LEAST), ONE - LEAST), min(seen + 1, FORGETS)
        self._narrowed(*((self.above - split, self.width - split) if bit else (self.above, split)))
        return int(bit)

    def plain(self, count):
        """A number of so many bits, which are sent as they are."""
        part = self.width >> count
        number = min(self.above // part, 2**count - 1)
        self._narrowed(self.above - number * part, part)
        return number

    def end(self):
        """Where the field ends: the fewest bytes that stay in the interval whatever follows; they must be these, and be there."""
        there = int.from_bytes(self._bytes(self.at - 8, self.at), "big")
        low = (there - self.above) % WORD
        for count in range(1, 9):
            rest = WORD >> 8 * count
            number = -(-low // rest) * rest
            if number + rest <= low + self.width:
                break
        end = self.at - 8 + count
        assert end <= len(self.data), "the message is cut off"
        assert (there - number) % WORD < rest, "the field does not end with the bytes that decide it"
        return end


def whole_numbers(data, at, count):
    """So many whole numbers from data[at] on, and where they end."""
    longest = data[at]
    if longest == 0:
        return [0] * count, at + 1
    assert longest < 32, "more bits than this reader knows"
    bits, depth, numbers = Bits(data, at + 1), (longest - 1).bit_length(), []
    one, two = 0, 0  # the magnitudes of the last number and of the one before
    for _ in range(count):
        context, size, negative = min((one + two).bit_length(), 33), 0, 0
        if bits.learned(("some", context)):
            negative = bits.learned("sign")
            length = 1 + _path(bits, ("length", context), depth)
            assert length <= longest
            learned = min(length - 1, LEARNED)
            size = 1 << learned | _path(bits, ("size", length), learned)
            if length - 1 > learned:
                size = size << length - 1 - learned | bits.plain(length - 1 - learned)
        numbers.append(-size if negative else size)
        one, two = size, one
    return numbers, bits.end()


def _path(bits, tree, depth):
    """The leaf of a binary tree, each node of which has a chance of its own."""
    node = 1
    for _ in range(depth):
        node = 2 * node + bits.learned((tree, node))
    return node - (1 << depth)


def levels(data, at, dim, short=False):
    """A vector (dim,) of QSGD from data[at] on with one norm for all: a step of 32 bits, or the upper 16 of these, and whole numbers
    of steps.

    Returns: the vector, where it ends, and a bound (dim,) of how far the two points of the grid are apart that each coordinate of
    the sender's vector lies between.
    """
    (step,) = struct.unpack("<f", b"\0\0" + data[at : at + 2] if short else data[at : at + 4])
    numbers, end = whole_numbers(data, at + (2 if short else 4), dim)
    v = step * np.array(numbers)
    return v, end, step + np.abs(v) * (2**-8 if short else 0)  # the step may be rounded to 8 binary digits


def powers(fraction):
    """The reader of vectors of natural compression with so many binary digits after the point; it returns what `levels` does.

    A number n > 0 is the place of 2^e (1 + m/2^fraction) among such values, from the message's least e with m = 0 on.
    """

    def read(data, at, dim):
        (least,) = struct.unpack_from("<h", data, at)
        numbers, end = whole_numbers(data, at + 2, dim)
        places = np.abs(numbers) - 1
        exponents = least + (places >> fraction)
        sizes = np.ldexp(2.0**fraction + (places & 2**fraction - 1), exponents - fraction)
        apart = np.ldexp(1.0, exponents - fraction)
        return np.sign(numbers) * np.where(places < 0, 0.0, sizes), end, np.where(places < 0, 0.0, apart)

    return read


def matrix(v):
    """The symmetric matrix whose lower triangle, by rows and times √2 off the diagonal, is v."""
    d = (int(np.sqrt(8 * v.size + 1)) - 1) // 2
    M = np.zeros((d, d))
    M[np.tril_indices(d)] = v
    below = np.tril(M, -1) / np.sqrt(2.0)
    return np.diag(np.diag(M)) + below + below.T


def triangle(M):
    """The vector that `matrix` makes M of."""
    return (np.tril(M, -1) * np.sqrt(2.0) + np.diag(np.diag(M)))[np.tril_indices(len(M))]
