"""Weighted means of the iterates, x̄_T = (1/W_T) Σ_{t ≤ T} w_t x_t: where HT's convex theorems measure f."""

from dataclasses import dataclass
from typing import Any, Literal

from mpi_compress.algorithms.steps import Decreasing, step_at
from mpi_compress.messages.kinds import Vector

Average = Literal["last", "uniform", "linear", "geometric"]


@dataclass
class IterateMean:
    """x̄_T of the rounds so far."""

    x: Vector  # (d,) x̄_T
    ratio: float = 1.0  # W_T / w_T

    @classmethod
    def begun(cls, average: Average, x0: Vector) -> "IterateMean | None":
        """The mean of x0 alone; None where the last iterate is wanted."""
        return None if average == "last" else cls(x0.copy())

    def take_in(self, x: Vector, ratio: float) -> None:
        """Take in the next iterate x (d,), with w_(T−1) / w_T = `ratio`."""
        self.ratio = 1.0 + self.ratio * ratio
        self.x += (x - self.x) / self.ratio


def weight_ratio(average: str, step: Any, mu: float, k: int) -> float:
    """w_(k−1) / w_k for k ≥ 1, with the weights of HT Theorem 9.

    They are geometric, (1 − µγ/2)^−(t+1) (Theorem 4); uniform, 1 (Theorem 5); or linear, φ + t, which goes with γ_t = a/(φ + t).

    Raises:
        ValueError: weights that do not go with the step.
    """
    if average == "linear":
        if not (isinstance(step, Decreasing) and step.power == 1.0):
            raise ValueError('average = "linear" goes with step = { form = "1/t", a = "4/mu", b = "16 L/mu" } (HT Theorem 9 iii)')
        return (step.b + k - 1) / (step.b + k)
    if average == "geometric":
        ratio = 1.0 - mu * step_at(step, k) / 2
        if not 0 < ratio < 1:
            raise ValueError(f'average = "geometric" needs 0 < µγ < 2 (HT Theorem 4); µγ is {mu * step_at(step, k):g}')
        return ratio
    return 1.0
