"""Reads ship-data's messages of rows in plain Python, without the package: a second program for its bytes."""

import math
import struct

INPUTS, FIRST, SETS = 8, 4, 512
MASK = 2**64 - 1
SPREAD = 0x9E3779B97F4A7C15
SQUASH = [min(max(round(65536 / (1 + math.exp(-x / 170))), 16), 65520) for x in range(-2047, 2048)]
STRETCH = [min(max(round(math.log((i + 0.5) / (4096 - i - 0.5)) * 170), -2047), 2047) for i in range(4096)]


def spread(one, other):
    return ((one + 1) * SPREAD ^ other) & MASK


def level_of(times):
    return times if times < 4 else 4 if times < 8 else 5 if times < 24 else 6 if times < 100 else 7


def squashed(total):
    return SQUASH[min(max(total >> 16, -2047), 2047) + 2047]


class Message:
    """The bytes of a message, and what its bits have taught so far."""

    def __init__(self, data, dim):
        self.data, self.at, self.dim = data, 0, dim
        self.N, self.nonzeros = self.count(), self.count()
        self.heads = [[self.count() for _ in range(3)] for _ in range(2)]
        size = self.count()
        self.body = data[self.at : self.at + size] + bytes(16)
        self.end = self.at + size
        promised = 8 * (self.N + dim + 16 * self.nonzeros + min(self.N * dim, 128 * self.nonzeros))
        self.cells = min(2 ** promised.bit_length(), 2**22)
        self.chance, self.seen = {}, {}
        self.weights = [[[11796] * 8 for _ in range(INPUTS)] for _ in range(SETS)]
        self.code, self.width, self.next = int.from_bytes(self.body[:8], "big"), MASK, 8
        self.entropy = 0.0  # −Σ log2 p of the bits that were read

    def count(self):
        found = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return found

    def bit(self, one_in):
        """A bit whose chance to be 1 is so many 65536ths."""
        split = (self.width >> 28) * ((65536 - one_in) << 12)
        found = self.code >= split
        self.entropy -= math.log2((one_in if found else 65536 - one_in) / 65536)
        self.code, self.width = (self.code - split, self.width - split) if found else (self.code, split)
        while self.width < 2**56:
            self.code, self.width = (self.code << 8 | (self.body[self.next] if self.next < len(self.body) else 0)), self.width << 8
            self.next += 1
        return int(found)

    def integer(self, bits, keys, first, second):
        node = 1
        for _ in range(bits):
            slots, inputs, levels = [], [], []
            for i, key in enumerate(keys):
                h = spread(key, (node * INPUTS + i) & MASK) * SPREAD & MASK
                slot = ((h ^ h >> 29) * SPREAD & MASK) >> 40 & self.cells - 1
                times = self.seen.get(slot, 0)
                slots.append(slot)
                levels.append(level_of(times))
                inputs.append(STRETCH[self.chance[slot] >> 4] if times else 0)
            one, two = ([self.weights[s][i][k] for i, k in enumerate(levels)] for s in (first, second))
            sums = [sum(w * x for w, x in zip(each, inputs, strict=True)) for each in (one, two)]
            bit = self.bit(squashed(sum(sums) >> 1))
            for s, total in zip((first, second), sums, strict=True):
                error = (bit << 16) - squashed(total)
                for i, k in enumerate(levels):
                    self.weights[s][i][k] += inputs[i] * error >> 13
            for slot in slots:
                times, before = self.seen.get(slot, 0), self.chance.get(slot, 32768)
                step = (bit * 65535 - before) * 2
                self.chance[slot] = before + step // (2 * times + 3)
                self.seen[slot] = min(times + 1, 255)
            node = (node << 1 | bit) & MASK
        return node - (1 << bits) if bits < 64 else node

    def integers(self, columns, bits):
        found, above = [], {}
        one = two = 0
        for c in columns:
            over, over_that = above.get(c, (0, 0))
            keys = [0, c, spread(c, over), spread(spread(c, over), over_that), spread(c, one), spread(1, one)]
            keys += [spread(spread(c, one), over), spread(spread(c, one), two)]
            n = self.integer(bits, keys, 0, FIRST + c % (SETS - FIRST))
            found.append(n)
            above[c] = n, over
            one, two = n, one
        return found

    def numbers(self, head, columns):
        kind, least, bits = head
        found = self.integers(columns, bits)
        if kind <= 12:
            return [(n + (-(least // 2) if least % 2 else least // 2)) / 10.0**kind for n in found]
        whole, as_float = {14: ("<H", "<e"), 16: ("<I", "<f"), 20: ("<Q", "<d")}[kind]
        return [struct.unpack(as_float, struct.pack(whole, n))[0] for n in found]

    def bits_of_rows(self, across, classes):
        rows = [[0] * across for _ in range(self.N)]
        none = [0] * across
        for r, label in enumerate(classes):
            one = two = three = missed = run = 0
            up = [rows[r - j] if r >= j else none for j in (1, 2, 3)]
            for c in range(across):
                above = up[0][c] << 2 | up[1][c] << 1 | up[2][c]
                last = spread(c, one)
                keys = [c, spread(c, above >> 1 << 2 | missed), last, spread(last, two), spread(spread(last, two), three)]
                keys += [spread(c, above >> 2 << 1 | label), spread(last, above >> 2 << 2 | missed)]
                keys += [above << 6 | missed << 4 | min(run, 15)]
                bit = rows[r][c] = self.integer(1, keys, missed, FIRST + c % (SETS - FIRST))
                missed, run = (missed, run + 1) if bit == up[0][c] else (min(missed + 1, 3), 0)
                if bit:
                    one, two, three = c + 1, one, two
        return [[c for c in range(across) if row[c]] for row in rows]

    def lists_of_rows(self, across):
        lengths = self.integers([0] * self.N, across.bit_length())
        places = iter(self.integers([0] * self.nonzeros, across.bit_length()))
        return [[next(places) for _ in range(n)] for n in lengths]


def rows_of(data, dim):
    """The rows of a message: (label, places, values) of each; and where it ends."""
    rows, m = read(data, dim)
    return rows, m.end


def read(data, dim):
    """The rows of a message, and the message, with what its bits have taught."""
    m = Message(bytes(data), dim)
    labels = m.numbers(m.heads[0], [0] * m.N)
    used = [c for c, held in enumerate(m.integers([0] * dim, 1)) if held]
    classes = [int(y == max(labels)) for y in labels]
    across = len(used)
    lists = m.N * across > 8 * across.bit_length() * m.nonzeros
    rows = m.lists_of_rows(across) if lists else m.bits_of_rows(across, classes)
    values = iter(m.numbers(m.heads[1], [c for row in rows for c in row]))
    return [(y, [used[c] for c in row], [next(values) for _ in row]) for y, row in zip(labels, rows, strict=True)], m
