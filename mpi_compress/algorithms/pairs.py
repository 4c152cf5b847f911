"""Pairs of differences of x and of gradients, as limited-memory BFGS keeps them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from mpi_compress.messages.kinds import Vector


@dataclass
class Pairs:
    """The last differences s = x − x⁻ and y = g − g⁻, y damped."""

    before: Vector  # (2, d) x and g of the round before
    s: Vector  # (memory, d) the newest last
    y: Vector  # (memory, d)
    held: int = -1  # how many pairs there are so far; −1: no round was before

    @classmethod
    def begun(cls, memory: int, d: int) -> Self:
        return cls(np.zeros((2, d)), np.zeros((memory, d)), np.zeros((memory, d)))

    def follow(self, x: Vector, g: Vector, least: float, L: float) -> None:
        """Take in x and the gradient g there, both (d,). Damping keeps sᵀy ≥ least ‖s‖²."""
        if self.held >= 0:
            self._keep(x - self.before[0], g - self.before[1], least, L)
        self.held = max(self.held, 0)
        self.before[:] = x, g

    def _keep(self, s: Vector, y: Vector, c: float, L: float) -> None:
        """Keep a pair in the place of the oldest; one of x that stayed is left out."""
        ss, sy = float(s @ s), float(s @ y)
        if not ss > 0:
            return
        if sy < c * ss:
            θ = (L - c) * ss / (L * ss - sy)
            y = θ * y + (1 - θ) * L * s
        self.s[:-1], self.y[:-1] = self.s[1:].copy(), self.y[1:].copy()
        self.s[-1], self.y[-1] = s, y
        self.held = min(self.held + 1, len(self.s))

    def curvature(self, L: float) -> float:
        """min{L, yᵀy/sᵀy} of the last pair; L before the first."""
        return min(L, (self.y[-1] @ self.y[-1]) / (self.s[-1] @ self.y[-1])) if self.held > 0 else L

    def product(self, g: Vector, H0: Callable[[Vector], Vector]) -> Vector:
        """H g (d,): the two loops, which begin with H0."""
        p, αs = np.array(g), []
        newest = range(len(self.s) - 1, len(self.s) - 1 - self.held, -1)
        for i in newest:
            αs.append(self.s[i] @ p / (self.s[i] @ self.y[i]))
            p -= αs[-1] * self.y[i]
        p = H0(p)
        for i, α in zip(reversed(newest), reversed(αs), strict=True):
            p += (α - self.y[i] @ p / (self.s[i] @ self.y[i])) * self.s[i]
        return p
