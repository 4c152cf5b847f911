"""The hard-threshold paper's algorithms written out in plain NumPy, to compare with: nothing is encoded, nothing is shared."""

import numpy as np


class Shards:
    """∇f_i and f of µ-regularised logistic regression, rows dealt out in blocks."""

    def __init__(self, samples, labels, n, mu):
        self.N, self.n, self.mu = len(labels), n, mu
        cuts = [slice(i * self.N // n, (i + 1) * self.N // n) for i in range(n)]
        self.parts = [(samples[c], labels[c]) for c in cuts]

    def gradient(self, i, x, rows=slice(None)):
        A, y = self.parts[i]
        weight = self.n * len(y) / self.N
        A, y = A[rows], y[rows]
        return weight / len(y) * (A.T @ (-y / (1 + np.exp(y * (A @ x))))) + self.mu * x

    def loss(self, x):
        total = sum(np.logaddexp(0, -y * (A @ x)).sum() for A, y in self.parts)
        return total / self.N + self.mu / 2 * (x @ x)


def shards(p):
    """Those of a problem of `helpers.plays`."""
    return Shards(p.A, p.labels, p.count, p.mu)


def top(k):
    """C keeps the k largest, ties to the lowest index."""

    def compress(v):
        out = np.zeros_like(v)
        keep = np.argsort(-np.abs(v), kind="stable")[:k]
        out[keep] = v[keep]
        return out

    return compress


def threshold(level):
    """C keeps what is at least `level`."""
    return lambda v: np.where(np.abs(v) >= level, v, 0.0)


def algorithm_1(f, x, C, γ, rounds, shift=None, reset=None):
    """x and √mean‖e_i‖² after each round; `shift` is x* for EF-GDstar, and errors are dropped after every `reset`-th round."""
    e = [np.zeros_like(x) for _ in range(f.n)]
    h = [0.0 if shift is None else f.gradient(i, shift) for i in range(f.n)]
    xs, errors = [x], [0.0]
    for k in range(rounds):
        Δs = []
        for i in range(f.n):
            p = e[i] + γ * (f.gradient(i, x) - h[i])
            Δ = γ * C(p / γ)
            e[i] = 0 * p if reset and (k + 1) % reset == 0 else p - Δ
            Δs.append(Δ)
        x = x - np.mean(Δs, axis=0)
        xs.append(x)
        errors.append(np.sqrt(np.mean([v @ v for v in e])))
    return np.array(xs), np.array(errors)


DIRECTIONS = {"printed": lambda g, m, λ: g + m, "nesterov": lambda g, m, λ: g + λ * m, "heavy-ball": lambda g, m, λ: m}


def algorithm_2(f, x, C, γ, rounds, λ, rows=lambda i, k: slice(None), µ=0.0, direction="printed"):
    """Momentum by gradient compression, with rows(i, k) as minibatches, and µ x at the master."""
    e, m, xs = [np.zeros_like(x) for _ in range(f.n)], np.zeros_like(x), [x]
    for k in range(rounds):
        sent = []
        for i in range(f.n):
            Δ = f.gradient(i, x, rows(i, k)) + e[i]
            sent.append(C(Δ))
            e[i] = Δ - sent[-1]
        mean = np.mean(sent, axis=0)
        m = λ * m + mean
        x = x - γ * µ * x - γ * DIRECTIONS[direction](mean, m, λ)
        xs.append(x)
    return np.array(xs)


def algorithm_3(f, x, C, γ, rounds, λ, masking=False, direction="printed"):
    """Momentum by update compression."""
    e, ms, xs = [np.zeros_like(x) for _ in range(f.n)], [np.zeros_like(x) for _ in range(f.n)], [x]
    for _ in range(rounds):
        sent = []
        for i in range(f.n):
            g = f.gradient(i, x)
            ms[i] = λ * ms[i] + g
            Δ = DIRECTIONS[direction](g, ms[i], λ) + e[i]
            sent.append(C(Δ))
            e[i] = Δ - sent[-1]
            if masking:
                ms[i][sent[-1] != 0] = 0.0
        x = x - γ * np.mean(sent, axis=0)
        xs.append(x)
    return np.array(xs)
