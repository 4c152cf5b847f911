"""Products of an estimator, a server and a downlink written out in plain NumPy, to compare with: nothing is encoded, nothing is shared.

A direction is a function of the points where the workers take gradients, and of the round. A server gives the iterate, and the point
that workers should know. A downlink gives the points that they know, and the point that is evaluated.
"""

import numpy as np


def gd(f, Q):
    return lambda ws, k: np.mean([Q(f.gradient(i, ws[i]), i, k) for i in range(f.n)], axis=0)


def ef21(f, C):
    g = np.zeros((f.n, f.parts[0][0].shape[1]))

    def direction(ws, k):
        for i in range(f.n):
            g[i] += C(f.gradient(i, ws[i]) - g[i], i, k)
        return g.mean(axis=0)

    return direction


def diana(f, Q, α):
    h = np.zeros((f.n, f.parts[0][0].shape[1]))

    def direction(ws, k):
        m = np.array([Q(f.gradient(i, ws[i]) - h[i], i, k) for i in range(f.n)])
        g = (h + m).mean(axis=0)
        h[:] += α * m
        return g

    return direction


def rand_diana(f, Q, coin, p):
    """`coin(i, k)` is worker i's number in [0, 1) of round k."""
    h = np.zeros((f.n, f.parts[0][0].shape[1]))

    def direction(ws, k):
        now = np.array([f.gradient(i, ws[i]) for i in range(f.n)])
        g = np.mean([h[i] + Q(now[i] - h[i], i, k) for i in range(f.n)], axis=0)
        renewed = [i for i in range(f.n) if coin(i, k) < p]
        h[renewed] = now[renewed]
        return g

    return direction


def ef_bv(f, C, λ, ν):
    h = np.zeros((f.n, f.parts[0][0].shape[1]))

    def direction(ws, k):
        m = np.array([C(f.gradient(i, ws[i]) - h[i], i, k) for i in range(f.n)])
        g = (h + ν * m).mean(axis=0)
        h[:] += λ * m
        return g

    return direction


def rounded(f, C, α, round):
    """ef_bv with ν = 1 whose means come down rounded; the master keeps what rounding left, where the mean has coordinates."""
    d = f.parts[0][0].shape[1]
    hs, h, e = np.zeros((f.n, d)), np.zeros(d), np.zeros(d)

    def direction(ws, k):
        c = np.array([C(f.gradient(i, ws[i]) - hs[i], i, k) for i in range(f.n)])
        hs[:] += α * c
        where = np.any(c, axis=0) | (4 * np.count_nonzero(c) > 3 * d)
        v = np.where(where, c.mean(axis=0) + e, 0.0)
        q = round(v)
        e[where] = (v - q)[where]
        g = h + q
        h[:] += α * q
        return g

    return direction


def marina(f, Q, full):
    before, g = np.zeros((f.n, f.parts[0][0].shape[1])), np.zeros(f.parts[0][0].shape[1])

    def direction(ws, k):
        now = np.array([f.gradient(i, ws[i]) for i in range(f.n)])
        g[:] = now.mean(axis=0) if full[k] else g + np.mean([Q(now[i] - before[i], i, k) for i in range(f.n)], axis=0)
        before[:] = now
        return g.copy()

    return direction


def ef(f, C):
    e = np.zeros((f.n, f.parts[0][0].shape[1]))

    def direction(ws, k):
        sent = []
        for i in range(f.n):
            p = e[i] + f.gradient(i, ws[i])
            sent.append(C(p, i, k))
            e[i] = p - sent[-1]
        return np.mean(sent, axis=0)

    return direction


def cafe(f, C):
    g = np.zeros(f.parts[0][0].shape[1])

    def direction(ws, k):
        g[:] = g + np.mean([C(f.gradient(i, ws[i]) - g, i, k) for i in range(f.n)], axis=0)
        return g.copy()

    return direction


def sparse_loco(f, C, γ, τ, β):
    """In units of x: moved by `step(η)`."""
    e, far = np.zeros((f.n, f.parts[0][0].shape[1])), local(f, γ, τ, mean=False)

    def direction(ws, k):
        p = β * e + far(ws, k)
        sent = np.array([C(p[i], i, k) for i in range(f.n)])
        e[:] = p - sent
        return sent.mean(axis=0)

    return direction


def local(f, γ, τ, mean=True):
    def direction(ws, k):
        moved = []
        for i in range(f.n):
            y = ws[i].copy()
            for _ in range(τ):
                y = y - γ * f.gradient(i, y)
            moved.append(ws[i] - y)
        return np.mean(moved, axis=0) if mean else np.array(moved)

    return direction


def step(γ):
    def server(x):
        while True:
            g, _ = yield x, x
            x = x - γ * g

    return server


def heavy_ball(γ, β, form="heavy-ball"):
    def server(x):
        m = np.zeros_like(x)
        while True:
            g, _ = yield x, x
            m = β * m + g
            x = x - γ * {"heavy-ball": m, "nesterov": g + β * m, "printed": g + m}[form]

    return server


def nesterov(γ, τ):
    def server(x):
        y = x
        while True:
            g, _ = yield x, y
            x, before = y - γ * g, x
            y = x + τ * (x - before)

    return server


def adam(γ, β1=0.9, β2=0.999, ε=1e-8):
    def server(x):
        m, v = np.zeros_like(x), np.zeros_like(x)
        while True:
            g, k = yield x, x
            m, v = β1 * m + (1 - β1) * g, β2 * v + (1 - β2) * g**2
            x = x - γ * (m / (1 - β1 ** (k + 1))) / (np.sqrt(v / (1 - β2 ** (k + 1))) + ε)

    return server


def l_bfgs(γ, L, c, memory):
    """By the matrix H itself, built again from the pairs in each round: H ← (I − ρ s yᵀ) H (I − ρ y sᵀ) + ρ s sᵀ."""

    def server(x):
        pairs, before, identity = [], None, np.eye(x.size)
        while True:
            g, _ = yield x, x
            if before is not None:
                s, y = x - before[0], g - before[1]
                θ = min(1.0, (L - c) * (s @ s) / (L * (s @ s) - s @ y)) if s @ y < L * (s @ s) else 1.0
                pairs = [*pairs, (s, θ * y + (1 - θ) * L * s)][-memory:]
            H = identity / (min(L, pairs[-1][1] @ pairs[-1][1] / (pairs[-1][0] @ pairs[-1][1])) if pairs else L)
            for s, y in pairs:
                V = identity - np.outer(y, s) / (s @ y)
                H = V.T @ H @ V + np.outer(s, s) / (s @ y)
            x, before = x - γ * (H @ g), (x, g)

    return server


def adagrad(γ, β1=0.0, ε=1e-3):
    def server(x):
        m, v = np.zeros_like(x), np.zeros_like(x)
        while True:
            g, _ = yield x, x
            m, v = β1 * m + (1 - β1) * g, v + g**2
            x = x - γ * m / (np.sqrt(v) + ε)

    return server


def normalised(γ, β):
    def server(x):
        m = np.zeros_like(x)
        while True:
            g, _ = yield x, x
            m = β * m + g
            x = x - γ * m / np.sqrt(np.sum(m**2))

    return server


def by_mean(f, x, direction, server, rounds):
    moving = server(x)
    (x, y), xs = next(moving), [x]
    for k in range(rounds):
        x, y = moving.send((direction([y] * f.n, k), k))
        xs.append(x)
    return np.array(xs)


def by_ef21_p(f, x, direction, server, rounds, C):
    """The points w that all know."""
    moving, w = server(x), x
    next(moving)
    ws = [w]
    for k in range(rounds):
        _, y = moving.send((direction([w] * f.n, k), k))
        w = w + C(y - w, 0, k)
        ws.append(w)
    return np.array(ws)


def by_squeeze(f, x, direction, server, rounds, C):
    moving, E = server(x), np.zeros_like(x)
    (x, y), xs = next(moving), [x]
    for k in range(rounds):
        V = direction([y] * f.n, k) + E
        q = C(V, 0, k)
        E = V - q
        x, y = moving.send((q, k))
        xs.append(x)
    return np.array(xs)


def by_marina_p(f, x, direction, server, rounds, Q, full):
    """The points x that the master holds."""
    moving, ws = server(x), [x] * f.n
    (_, y), ys = next(moving), [x]
    for k in range(rounds):
        before = y
        _, y = moving.send((direction(ws, k), k))
        ws = [y if full[k] else ws[i] + Q(y - before, i, k) for i in range(f.n)]
        ys.append(y)
    return np.array(ys)
