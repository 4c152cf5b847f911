"""The AIADE paper's Algorithms 1 and 2 written out in plain NumPy, to compare with: nothing is encoded, nothing is shared."""

import numpy as np


def Q(v, σ):
    """v to the grid 2σ/√d, to the point that is nearest in floats; 0 where ‖v‖ ≤ σ. (Means of lattice points are often half-way.)"""
    if np.linalg.norm(v) <= σ:
        return np.zeros_like(v)
    Δ = 2 * σ / np.sqrt(v.size)
    m = np.rint(v / Δ)
    left = v - Δ * m
    return Δ * (m + (left > Δ / 2) - (left < -Δ / 2))


def iade(gradients, x, s, η, rate, rounds, accelerated=None):
    """x_k for k = 0 … rounds; `gradients` are the ∇f_i. With `accelerated` = (c, τ) it is Algorithm 2, at y."""
    c, τ = accelerated or (rate, 0.0)
    y, xs = x, [x]
    held, S, v = [np.zeros_like(x) for _ in gradients], np.zeros_like(x), np.zeros_like(x)
    for k in range(rounds):
        σ = s * c ** (k + 1) / (2 * k + 2 if accelerated else 2)
        d = [Q(gradient(y) - h, σ) for gradient, h in zip(gradients, held, strict=True)]
        held = [h + di for h, di in zip(held, d, strict=True)]
        S = S + np.mean(d, axis=0)
        v = v + Q(S - v, σ)
        x_new = y - η * v
        y = x_new + τ * (x_new - x)
        x = x_new
        xs.append(x)
    return np.array(xs)
