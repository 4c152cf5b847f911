"""What methods share that step along −γ (g + ∇r(x)), r the regulariser where it is not in the f_i."""

import math
from typing import Protocol

from mpi_compress.algorithms.averaging import Average, IterateMean, weight_ratio
from mpi_compress.algorithms.base import Method
from mpi_compress.algorithms.sampling import check_batch
from mpi_compress.messages.kinds import Compressed, Vector


class Descending(Protocol):
    """What such a method's nodes know."""

    x: Vector  # (d,) iterate
    mean: IterateMean | None  # of the iterates, where it is wanted


def check_descent(method: Method, average: Average) -> None:
    """Check the batch, and the weights of a mean of iterates.

    Raises:
        ValueError: a batch of more rows than there are, or weights that do not go with the step.
    """
    if method.batch is not None:
        check_batch(method.batch, method.setting.numbers["N"])
    weight_ratio(average, method.step, method.setting.numbers["mu"], 1)


def descend(method: Method, average: Average, node: Descending, g: Compressed, k: int) -> None:
    """x ← x − γ_k (g + ∇r(x)), and x into the mean of the iterates, if one is wanted."""
    γ = method.gamma(k)
    shrink(node.x, kept_by_regulariser(method, γ))
    g.add_to(node.x, -γ)
    take_in(method, average, node.mean, node.x, k + 1)


def kept_by_regulariser(method: Method, γ: float) -> float:
    """The factor 1 − γµ of x ← x − γ ∇r(x); 1 where r is in the f_i."""
    return 1.0 - γ * method.setting.mu_apart


def shrink(x: Vector, factor: float) -> None:
    """x ← factor · x, in place."""
    if factor != 1.0:
        x *= factor


def take_in(method: Method, average: Average, mean: IterateMean | None, x: Vector, k: int) -> None:
    """Take the iterate x (d,) of round k into the mean, if one is wanted."""
    if mean is not None:
        mean.take_in(x, weight_ratio(average, method.step, method.setting.numbers["mu"], k))


def is_lemma_step(method: Method) -> bool:
    """True if CAT's descent lemmas speak of the step: x ← x − (1/L) Q(∇f(x)), all of ∇f compressed."""
    setting = method.setting
    exact = method.down.compressor.omega(setting.dim) == 0.0
    L = setting.numbers.get("L", math.nan)
    return exact and isinstance(method.step, float) and abs(method.step * L - 1) < 1e-12 and not setting.mu_apart
