from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mpi_compress.algorithms.base import Algorithm, algorithms
from mpi_compress.compressed import Compressed, Vector
from mpi_compress.expressions import Expression
from mpi_compress.link import Message
from mpi_compress.objective import Objective
from mpi_compress.streams import Round


@dataclass
class Node:
    x: Vector  # (d,) iterate


@algorithms.register("gd")
@dataclass(frozen=True)
class GD(Algorithm):
    """Gradient descent with compressed gradients: CAT eq. 1; with the identity, plain gradient descent.

    worker sends     Q(∇f_i(x))
    master answers   ĝ = (1/n) Σ Q(∇f_i(x))
    everyone         x ← x − γ (ĝ + ∇r(x)),   r the regulariser where it is not in the f_i
    """

    paper = "CAT eq. 1"
    step: Expression = "1/L"  # γ
    regularizer: Literal["worker", "master"] | None = None  # where r sits, if not as [objective] says

    def check(self) -> None:
        if not self.step > 0:  # type: ignore[operator]
            raise ValueError(f"step = {self.step} must be more than 0")

    def start(self, x0: Vector) -> Node:
        return Node(x0.copy())

    def worker_sends(self, node: Node, worker: Any, f: Objective, t: Round) -> Message:
        return self.up.pack(f.gradient(node.x), t)

    def master_answers(self, node: Node, master: Any, ups: Sequence[Compressed], t: Round) -> Message:
        return self.down.pack(self.mean(ups), t)

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        if self.setting.mu_apart:
            node.x *= 1.0 - self.step * self.setting.mu_apart  # type: ignore[operator]
        down.add_to(node.x, -self.step)  # type: ignore[operator]
