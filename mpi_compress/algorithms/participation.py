"""Partial participation: r of n workers, drawn anew in each round without replacement; the others neither compute nor send."""

from mpi_compress.core.streams import Role, Streams


def participants(streams: Streams, n: int, r: int, k: int) -> frozenset[int]:
    """The workers that take part in round k: the same on every rank, and any r of the n as likely as others."""
    draw = streams.at(Role.PARTICIPATION, 0, k)
    return frozenset(draw.choice(n, r, replace=False, shuffle=False).tolist())


def sampled_delta(δ: float, n: int, r: int) -> float:
    """The δ of "C(v) with probability r/n, else 0", for C contractive with δ.

    E‖v − ·‖² ≤ (r/n)(1 − δ)‖v‖² + (1 − r/n)‖v‖² = (1 − δr/n)‖v‖².
    """
    return δ * (r / n)


def sampled_omega(ω: float, n: int, r: int) -> float:
    """The ω of "(n/r) Q(v) if drawn, else 0" in a mean over n workers, for unbiased and independent Q with ω.

    Of one worker alone it is (1+ω)n/r − 1. Two workers are drawn together with probability r(r−1)/(n(n−1)), less than (r/n)²: the
    variance of the sum over workers of their v_i has c Σ_{i≠j} v_i·v_j, too, c = −(n−r)/(r(n−1)), which is at most |c| Σ‖v_i‖².
    """
    return ω + (1.0 + ω) * (n / r - 1.0) + (n - r) / (r * max(n - 1, 1))
