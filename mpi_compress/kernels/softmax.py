"""Multinomial logistic regression in one pass over the rows: scores (c,), their softmax, the gradient (d, c).

A row's scores and its part of the gradient run over classes in the inner loop, so X (d, c) and its gradient are read by rows.
"""

import numpy as np

from mpi_compress.kernels import by_types, kernel
from mpi_compress.kernels.vectors import compensated

_ONE = np.uint64(1)


@by_types()
def _scores(matrix, i, X, out):
    """out (c,) = a_i X."""

    def sparse(matrix, i, X, out):
        out[:] = 0.0
        for p in range(matrix[0][i], matrix[0][i + _ONE]):
            value, row = matrix[2][p], X[matrix[1][p]]
            for c in range(out.size):
                out[c] += value * row[c]

    def dense(matrix, i, X, out):
        out[:] = 0.0
        a = matrix[0][i]
        for j in range(a.size):
            row = X[j]
            for c in range(out.size):
                out[c] += a[j] * row[c]

    return sparse if len(matrix) == 3 else dense


@by_types()
def _add_outer(matrix, i, weights, out):
    """out (d, c) += a_iᵀ weights."""

    def sparse(matrix, i, weights, out):
        for p in range(matrix[0][i], matrix[0][i + _ONE]):
            value, row = matrix[2][p], out[matrix[1][p]]
            for c in range(weights.size):
                row[c] += value * weights[c]

    def dense(matrix, i, weights, out):
        a = matrix[0][i]
        for j in range(a.size):
            if a[j] != 0.0:
                row = out[j]
                for c in range(weights.size):
                    row[c] += a[j] * weights[c]

    return sparse if len(matrix) == 3 else dense


@kernel
def _biased_scores(matrix, i, X, bias, out):
    """out (c,) = a_i X + bias, (c,) or (0,)."""
    _scores(matrix, i, X, out)
    for c in range(bias.size):
        out[c] += bias[c]


@kernel
def _softmax(scores):
    """Turns scores (c,) into probabilities, in place, and returns log Σ exp(scores)."""
    peak = scores.max()
    total = 0.0
    for c in range(scores.size):
        scores[c] = np.exp(scores[c] - peak)
        total += scores[c]
    for c in range(scores.size):
        scores[c] /= total
    return peak + np.log(total)


@kernel
def loss_and_gradient(matrix, labels, X, bias, gradient, of_bias):
    """Σ_i −log softmax(a_i X + bias)[y_i]; its gradient is added to gradient (d, c) and of_bias (c,). A bias of (0,) is none."""
    p = np.empty(X.shape[1])
    total = lost = 0.0
    for i in range(np.uint64(labels.size)):
        _biased_scores(matrix, i, X, bias, p)
        y = np.int64(labels[i])
        score = p[y]
        total, lost = compensated(total, lost, _softmax(p) - score)
        p[y] -= 1.0
        _add_outer(matrix, i, p, gradient)
        for c in range(bias.size):
            of_bias[c] += p[c]
    return total + lost if abs(total) < np.inf else total


@kernel
def normalise(scores):
    """Turns scores (N, c) into probabilities, in place."""
    for i in range(np.uint64(scores.shape[0])):
        _softmax(scores[i])


@kernel
def hessian_product(matrix, probabilities, V, of_v, out, of_bias):
    """Adds to out (d, c) and of_bias (c,) the product of the Hessian of Σ_i −log softmax with V (d, c) and of_v (c,) or (0,).

    Args:
        probabilities: softmax(a_i X + bias) (N, c).
    """
    z = np.empty(V.shape[1])
    for i in range(np.uint64(probabilities.shape[0])):
        p = probabilities[i]
        _biased_scores(matrix, i, V, of_v, z)
        mean = 0.0
        for c in range(p.size):
            mean += p[c] * z[c]
        for c in range(p.size):
            z[c] = p[c] * (z[c] - mean)
        _add_outer(matrix, i, z, out)
        for c in range(of_v.size):
            of_bias[c] += z[c]


@kernel
def scores(matrix, X, bias, out):
    """out (N, c) = A X + bias."""
    for i in range(np.uint64(out.shape[0])):
        _biased_scores(matrix, i, X, bias, out[i])
