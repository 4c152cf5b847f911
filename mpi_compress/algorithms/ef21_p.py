from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mpi_compress.algorithms.base import Algorithm, algorithms, whole_gradients
from mpi_compress.algorithms.steps import Step
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Message
from mpi_compress.problem.objective import Objective


@dataclass
class Node:
    w: Vector  # (d,) what everyone believes x is; gradients are taken here


@dataclass
class Master:
    x: Vector  # (d,) iterate


@algorithms.register("ef21-p")
@dataclass(frozen=True)
class EF21P(Algorithm):
    """EF21-P: Gruntkowska, Tyurin, Richtárik (ICML 2023), Algorithm 1: the downlink alone is compressed. w starts at x_0.

    worker sends     ∇f_i(w)
    master answers   x ← x − γ (1/n) Σ ∇f_i(w);  q ← C(x − w)
    everyone         w ← w + q

    C, the downlink's, is contractive with δ. The step is γ = δ/(16 L), the default; then x and w converge like (1 − γµ/2)^k. The
    16 was not checked against the paper. x is the master's own: results are of w, which all nodes know. `ef21-p-diana` compresses
    the uplink as well.
    """

    paper = "EF21-P, Algorithm 1"
    theory = "delta_down/(16*L)"
    step: Step = "theory"  # γ, the step size

    def check(self) -> None:
        whole_gradients(self)
        if self.up.compressor.omega(self.setting.dim) != 0.0:
            raise ValueError("ef21-p sends whole gradients up: leave [up] out, or use ef21-p-diana")

    def start(self, x0: Vector) -> Node:
        return Node(x0.copy())

    def start_master(self, node: Node) -> Master:
        return Master(node.w.copy())

    def worker_sends(self, node: Node, worker: Any, f: Objective, t: Round) -> Message:
        return self.up.pack(f.gradient(node.w), t)

    def master_answers(self, node: Node, master: Any, ups: Sequence[Compressed], t: Round) -> Message:
        self.mean(ups).add_to(master.x, -self.gamma(t.k))
        return self.down.pack(master.x - node.w, t)

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        down.add_to(node.w)

    def iterate(self, node: Node) -> Vector:
        return node.w
