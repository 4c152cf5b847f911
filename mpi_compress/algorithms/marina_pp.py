from dataclasses import dataclass

import numpy as np

from mpi_compress.algorithms import marina
from mpi_compress.algorithms.base import algorithms
from mpi_compress.algorithms.steps import Step
from mpi_compress.core.expressions import Expression
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Message
from mpi_compress.problem.objective import Objective


@dataclass
class Node:
    x: Vector  # (d,) iterate
    g: Vector  # (d,) the estimate of ∇f(x) in use
    before: Vector  # (d,) x⁻, the iterate before
    full: bool = True  # True: all workers send whole gradients; the coin is tossed alike by all, and costs no bits


@algorithms.register("marina-pp")
@dataclass(frozen=True)
class MARINAPP(marina.MARINA):
    """MARINA with partial participation: Gorbunov, Burlachenko, Li, Richtárik (ICML 2021), PP-MARINA. The first round is full.

    worker sends     ∇f_i(x) in a full round, else Q(∇f_i(x) − ∇f_i(x⁻)) if it is one of the r that take part
    master answers   the mean of what was sent
    everyone         g ← that mean in a full round, else g + that mean;  x ← x − γ g;  the next round is full with probability p

    r is that of [workers] participate, drawn without replacement; full rounds have all workers. Q is unbiased with ω.
    p = r/(n(1 + ω)) and 1/γ ≥ L + L̃ √((1−p)(1 + ω)/(pr)), L̃ = √((1/n) Σ L_i²), are the defaults.
    """

    paper = "PP-MARINA"
    partial_mean = "over all"
    theory = "1/(L + L_rms*sqrt((1 - p)*(1 + omega)/(p*r)))"
    step: Step = "theory"  # γ, the step size
    p: Expression = "r/(n*(1 + omega))"  # p, the probability of a full round, whose gradients are not compressed

    def needs_all(self, node: Node, k: int) -> bool:
        return node.full

    def start(self, x0: Vector) -> Node:
        return Node(x0.copy(), np.zeros_like(x0), x0.copy())

    def start_worker(self, node: Node, f: Objective) -> None:
        return None

    def worker_sends(self, node: Node, worker: None, f: Objective, t: Round) -> Message:
        g = f.gradient(node.x)
        return self.uplink(node, t.k).pack(g if node.full else g.copy() - f.gradient(node.before), t)

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        node.before[:] = node.x
        if node.full:
            node.g[:] = 0.0
        down.add_to(node.g, 1.0 if node.full else self.setting.n / self.setting.r)  # the mean of r workers
        node.x -= self.gamma(t.k) * node.g
        node.full = bool(t.shared.random() < float(self.p))
