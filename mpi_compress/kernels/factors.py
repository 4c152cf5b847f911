"""Matrix factorisation: predictions, which are products of two rows of factors, and their gradient."""

import numpy as np

from mpi_compress.kernels import kernel


@kernel
def predictions(pairs, scales, factors, biases, out):
    """out (N,) = scales_r ⟨F_i, F_j⟩ + b_i + b_j for each of pairs (N, 2); factors (features, rank), biases (features,) or (0,)."""
    for r in range(np.uint64(out.size)):
        u, v = factors[pairs[r, 0]], factors[pairs[r, 1]]
        total = 0.0
        for c in range(u.size):
            total += u[c] * v[c]
        out[r] = scales[r] * total
        if biases.size:
            out[r] += biases[pairs[r, 0]] + biases[pairs[r, 1]]


@kernel
def add_gradient(pairs, scales, slopes, factors, of_factors, of_biases):
    """Adds Σ_r slopes_r ∇(prediction of pair r) to of_factors (features, rank) and of_biases (features,) or (0,)."""
    for r in range(np.uint64(slopes.size)):
        i, j = pairs[r, 0], pairs[r, 1]
        slope = slopes[r]
        scale = slope * scales[r]
        for c in range(factors.shape[1]):
            u, v = factors[i, c], factors[j, c]
            of_factors[i, c] += scale * v
            of_factors[j, c] += scale * u
        if of_biases.size:
            of_biases[i] += slope
            of_biases[j] += slope
