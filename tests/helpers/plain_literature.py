"""Methods of 2019 to 2024 written out in plain NumPy, to compare with: nothing is encoded, nothing is shared.

Each returns the iterates x_0, x_1, … as rows. C(v, i, k) is what worker i's compressor makes of v in round k, and `rows(i, k)` its
k-th minibatch; gradients are those of `plain_ef.Shards`. Coins say which rounds are full. All are drawn here, from the addresses
that `core.streams` documents.
"""

import numpy as np

from helpers.plain_ef import top

WORKER, BATCH, MASTER_ROLE, SHARED, START, PARTICIPATION, ALIKE = 0, 1, 2, 3, 5, 6, 16  # who draws, and for what
MASTER = 0


def stream(seed, role, who, k):
    """The random numbers of an address: Philox with the seed as its key and (k, who, role) as the high words of its counter."""
    key = np.random.SeedSequence(seed).generate_state(2, np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=np.array([0, k, who, int(role)], dtype=np.uint64)))


def everything(i, k):
    return slice(None)


def drawn(table, seed=0, role=WORKER):
    """C as a run of this seed draws it: top-k, or random-k, whose values are times d/k."""
    if table["name"] == "top-k":
        return lambda v, i, k: top(table["k"])(v)
    assert set(table) == {"name", "k"}
    assert table["name"] == "random-k"

    def compress(v, i, k):
        kept = stream(seed, role, i, k).choice(v.size, size=table["k"], replace=False, shuffle=False)
        out = np.zeros(v.size)
        out[kept] = v[kept] * (v.size / table["k"])
        return out

    return compress


def batches(f, batch, seed=0, epoch=False):
    """Minibatches as a run of this seed draws them: 1024 rows at once, or a permutation of the shard in each epoch."""

    def rows(i, k):
        size = len(f.parts[i][1])
        chapter, place = divmod(k, -(-size // batch) if epoch else max(1, 1024 // batch))
        draw = stream(seed, BATCH, i, chapter)
        some = draw.permutation(size) if epoch else draw.integers(size, size=max(1, 1024 // batch) * batch)
        return some[place * batch : (place + 1) * batch]

    return rows


def coins(p, rounds, seed=0, at=0):
    """True for each round that is full: round 0, and those for which the round before tossed less than p, with its toss number `at`."""
    return [True] + [bool(stream(seed, SHARED, 0, k).random(at + 1)[at] < p) for k in range(rounds - 1)]


def participants(n, r, k, seed=0):
    """The workers that take part in round k."""
    return sorted(stream(seed, PARTICIPATION, 0, k).choice(n, r, replace=False, shuffle=False).tolist())


def permuted(d, part, parts, k, seed=0, role=WORKER):
    """Perm-k's coordinates of a worker in round k, by a permutation of the coordinates and one of the blocks."""
    rng = np.random.Generator(np.random.Philox(key=int(stream(seed, ALIKE, int(role), k).integers(2**32))))
    order, at = rng.permutation(d), int(rng.permutation(parts)[part])
    return np.sort(order[at * d // parts : (at + 1) * d // parts] if parts <= d else order[[at % d]])


def cyclic(d, part, parts, copies, k, seed=0, role=WORKER):
    """A worker's coordinates in round k: a table of d rows with `copies` crosses each, which go on where the row before ended."""
    rng = np.random.Generator(np.random.Philox(key=int(stream(seed, ALIKE, int(role), k).integers(2**32))))
    table, at = np.zeros((d, parts), dtype=bool), 0
    for row in table:
        for _ in range(copies):
            row[at % parts] = True
            at += 1
    return np.flatnonzero(table[:, int(rng.permutation(parts)[part])])


def correlated(s, n, seed=0, role=WORKER):
    """Dithering with s levels of the 2-norm by n workers, one of whose thresholds lies in each nth of [0, 1)."""

    def compress(v, i, k):
        common = np.random.Generator(np.random.Philox(key=int(stream(seed, ALIKE, int(role), k).integers(2**32))))
        order, start = common.permutation(n), common.integers(n, size=v.size)
        threshold = ((order[i] + start) % n + stream(seed, role, i, k).random(v.size)) / n
        level = np.sqrt(np.sum(v**2)) / s
        low = np.floor(v / level)
        return level * np.where(v / level - low > threshold, low + 1, low)

    return compress


def uniform(s):
    return lambda v: np.round(v * s / np.abs(v).max()) * np.abs(v).max() / s


def zeros(f, x):
    return np.zeros((f.n, x.size))


def ef21(f, x, C, γ, rounds, first="compressed", rows=everything, η=1.0, prox=lambda x: x):
    """EF21, its proximal form, and EF21-SGDM, whose first gradients are minibatches as well."""
    g, v, xs = zeros(f, x), zeros(f, x), [x]
    for k in range(rounds):
        for i in range(f.n):
            whole = k == 0 and first == "gradient" and η == 1.0
            new = f.gradient(i, x, slice(None) if whole else rows(i, k))
            v[i] = new if k == 0 else (1 - η) * v[i] + η * new
            g[i] = v[i] if k == 0 and first == "gradient" else g[i] + C(v[i] - g[i], i, k)
        x = prox(x - γ * g.mean(axis=0))
        xs.append(x)
    return np.array(xs)


def econtrol(f, x, C, γ, rounds, η, rows=everything):
    h, e, xs = zeros(f, x), zeros(f, x), [x]
    for k in range(rounds):
        for i in range(f.n):
            new = f.gradient(i, x, rows(i, k))
            c = new if k == 0 else C(η * e[i] + new - h[i], i, k)
            e[i] += new - h[i] - c
            h[i] += c
        x = x - γ * h.mean(axis=0)
        xs.append(x)
    return np.array(xs)


def dasha(f, x, Q, γ, rounds, a, rows=everything, b=None, full=None):
    """DASHA; with `b` DASHA-MVR, with the coins `full` DASHA-PAGE, whose minibatches are counted over the rounds that take one."""
    h, g, xs, taken = zeros(f, x), zeros(f, x), [x], 0
    for k in range(rounds):
        before = xs[max(k - 1, 0)]
        for i in range(f.n):
            if k == 0 or (b is None and (full is None or full[k])):
                new = f.gradient(i, x)
            elif b is not None:
                new = f.gradient(i, x, rows(i, k)) + (1 - b) * (h[i] - f.gradient(i, before, rows(i, k)))
            else:
                new = h[i] + f.gradient(i, x, rows(i, taken)) - f.gradient(i, before, rows(i, taken))
            g[i] = new if k == 0 else g[i] + Q(new - h[i] - a * (g[i] - h[i]), i, k)
            h[i] = new
        taken += full is not None and not full[k]
        x = x - γ * g.mean(axis=0)
        xs.append(x)
    return np.array(xs)


def page(f, x, Q, γ, rounds, rows, full):
    g, xs, taken = np.zeros_like(x), [x], 0
    for k in range(rounds):
        if full[k]:
            g = np.mean([f.gradient(i, x) for i in range(f.n)], axis=0)
        else:
            B = [rows(i, taken) for i in range(f.n)]
            g = g + np.mean([Q(f.gradient(i, x, B[i]) - f.gradient(i, xs[k - 1], B[i]), i, k) for i in range(f.n)], axis=0)
            taken += 1
        x = x - γ * g
        xs.append(x)
    return np.array(xs)


def marina_pp(f, x, Q, γ, rounds, full, r, seen):
    """`seen(k)` are the r workers that take part in round k, if it is not full."""
    g, xs = np.zeros_like(x), [x]
    for k in range(rounds):
        if full[k]:
            g = np.mean([f.gradient(i, x) for i in range(f.n)], axis=0)
        else:
            g = g + sum(Q(f.gradient(i, x) - f.gradient(i, xs[k - 1]), i, k) for i in seen(k)) / r
        x = x - γ * g
        xs.append(x)
    return np.array(xs)


def dasha_pp(f, x, Q, γ, rounds, a, b, r, seen):
    h, g, xs, q = zeros(f, x), zeros(f, x), [x], r / f.n
    for k in range(rounds):
        for i in seen(k) if k else range(f.n):
            if k == 0:
                h[i] = g[i] = f.gradient(i, x)
                continue
            now, before = f.gradient(i, x), f.gradient(i, xs[k - 1])
            change = now - before - b * (h[i] - before)
            m = Q(change / q - a * (g[i] - h[i]), i, k)
            h[i] += change / q
            g[i] += m
        x = x - γ * g.mean(axis=0)
        xs.append(x)
    return np.array(xs)


def double_squeeze(f, x, C, C_down, γ, rounds, rows=everything):
    """The iterates, and x − γ (E + mean e_i) beside them."""
    e, E, xs, virtual = zeros(f, x), np.zeros_like(x), [x], [x]
    for k in range(rounds):
        sent = []
        for i in range(f.n):
            u = f.gradient(i, x, rows(i, k)) + e[i]
            sent.append(C(u, i, k))
            e[i] = u - sent[-1]
        V = np.mean(sent, axis=0) + E
        q = C_down(V, MASTER, k)
        E = V - q
        x = x - γ * q
        xs.append(x)
        virtual.append(x - γ * (E + e.mean(axis=0)))
    return np.array(xs), np.array(virtual)
