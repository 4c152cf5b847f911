"""What methods share that send or learn curvature: links of Hessians, equations to solve, and pairs of differences."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from mpi_compress.algorithms.vocabulary import (
    LOSS_ALONE,
    WHOLE_GRADIENTS,
    Algorithm,
    Batch,
    Compressed,
    Link,
    Need,
    Objective,
    Round,
    Rounds,
    Shards,
    Vector,
    has_state,
    is_exact,
    triangle,
)
from mpi_compress.messages.codecs import Codec, codecs
from mpi_compress.messages.compressors import Compressor, compressors
from mpi_compress.messages.from_tables import parts_of
from mpi_compress.problem.second_order import curvature_at, dense_hessian

OF_MARGINS = Need(
    lambda m: m.setting.whole is not None,
    "{name} sends second derivatives of a linear model's loss: name a loss of a margin, such as logistic, and no model",
)
REMEMBERS_GRADIENTS = Need(
    lambda m: m.up.compressor.delta(m.setting.dim) is not None,
    "{name} remembers gradients as EF21 does, so their compressor must be a contraction, such as natural or top-k",
)


@dataclass(frozen=True)
class SendsHessians(Algorithm):
    """A method with a link of Hessians beside [up], the link of gradients. A Hessian is a vector here, its triangle (d(d+1)/2,) as
    `messages.kinds.triangle` has it: its norm is ‖·‖_F, and any compressor of vectors will do. By a compressed [up] workers send
    C(∇f_i − h_i), and h_i takes that in, as EF21 has it; by an exact one gradients themselves, and all h_i stay 0."""

    hessian: dict[str, Any] = field(default_factory=lambda: {"compressor": "low-rank", "codec": {"float": 32}})  # [up] of Hessians
    needs = [OF_MARGINS, LOSS_ALONE, WHOLE_GRADIENTS, REMEMBERS_GRADIENTS]

    def __post_init__(self) -> None:
        super().__post_init__()
        if unknown := sorted(set(self.hessian) - {"compressor", "codec"}):
            raise ValueError(f"hessian.{unknown[0]} is not known: hessian is a table of compressor and codec, as [up] is")
        if has_state(self.C[0]):
            raise ValueError(f"hessian.compressor: '{self.C[0].name}' remembers messages; one that does not is needed")

    @cached_property
    def C(self) -> tuple[Compressor, Codec]:
        """C of Hessians, and its codec."""
        return parts_of(self.hessian.get("compressor", "identity"), self.hessian.get("codec"), "algorithm.hessian")

    def more_memory(self, dim: int, n: int) -> tuple[float, float]:
        return 3.0 * dim**2, 4.0 * dim**2

    @cached_property
    def hessians(self) -> Link:
        """The link of Hessians (d(d+1)/2,)."""
        d = self.setting.dim
        return Link(*self.C, d * (d + 1) // 2)

    @cached_property
    def number(self) -> Link:
        """The link of a float of 64 bits."""
        return Link(compressors["identity"](), codecs["dense"](64), 1)

    @cached_property
    def learns_gradients(self) -> bool:
        return not is_exact(self.up)

    def check(self) -> None:
        try:
            self.C[0].check(self.hessians.dim)
        except ValueError as error:
            raise ValueError(f"hessian.compressor: {error}") from None

    def gradient(self, x: Vector, w: Any, fs: Shards, t: Rounds) -> Batch:
        """The messages of C(∇f_i(x) − h_i), which h_i takes in where it is compressed."""
        sent = self.up.pack(fs.gradients(x) - w.h, t)
        if self.learns_gradients:
            self.up.unpack(sent).add_to(w.h)
        return sent

    def all_hear(self, node: Any, down: Compressed, t: Round) -> None:
        node.x = node.x + down.dense()

    def mean_of(self, ups: Any, at: int) -> Vector:
        """(1/n) Σ of the part number `at` of each message (dim,), in worker order."""
        part = ups.content.parts[at]
        total = np.zeros((1, part.dim))
        part.add_to(total, 1.0, np.zeros(len(ups.content), dtype=np.int64))
        return total[0] / self.setting.n


def hessian(f: Objective, x: Vector) -> Vector:
    """∇²f_i(x) as its triangle (d(d+1)/2,), of an f_i without a penalty beside (µ/2)‖x‖²."""
    return triangle(dense_hessian(f, curvature_at(f, x)))


def value(f: Objective, x: Vector) -> float:
    """f_i(x), charged as the gradient that gives it."""
    f.gradient(x)
    return f.value_and_gradient(x)[0]


def lifted(M: Vector, µ: float, noisy: bool = False) -> Vector:
    """[M]_µ: the symmetric M (d, d), its eigenvalues below µ lifted to µ; M itself where it is not finite. `noisy`: to −λ_min(M)
    where that is more. M is then a matrix without negative eigenvalues and an error, and below its error M says nothing."""
    if not np.all(np.isfinite(M)):
        return M
    values, vectors = np.linalg.eigh(M)
    above: Vector = np.maximum(values, max(µ, -values[0]) if noisy else µ)
    return (vectors * above) @ vectors.T


def solved(M: Vector, g: Vector) -> Vector:
    """M⁻¹ g (d,); NaN where M (d, d) is singular."""
    try:
        return np.asarray(np.linalg.solve(M, g), np.float64)
    except np.linalg.LinAlgError:
        return np.full_like(g, np.nan)


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
