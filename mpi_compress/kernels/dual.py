"""One pass of dual coordinate ascent for the hinge loss."""

from mpi_compress.kernels import kernel
from mpi_compress.kernels.rows import row_add, row_dot


@kernel
def ascend(matrix, labels, squares, order, mu, cap, alpha, x):
    """Set each α_i, i along `order` (uint64), to its best value in [0, cap], the others fixed; x (d,) stays (1/µ) Σ α_i y_i a_i.

    squares (N,): ‖a_i‖².  Hsieh, Chang, Lin, Keerthi, Sundararajan (ICML 2008), Algorithm 1.  Returns how many α_i changed.
    """
    moved = 0
    for i in order:
        if squares[i] == 0.0:
            alpha[i] = cap
            continue
        slope = labels[i] * row_dot(matrix, i, x) - 1.0
        new = min(max(alpha[i] - slope * mu / squares[i], 0.0), cap)
        if new != alpha[i]:
            row_add(matrix, i, labels[i] * (new - alpha[i]) / mu, x)
            alpha[i] = new
            moved += 1
    return moved
