from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mpi_compress.algorithms.base import Algorithm, algorithms, check_adding_up, check_share, check_unbiased
from mpi_compress.algorithms.steps import Step
from mpi_compress.core.expressions import Expression
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Link, Message, of_all_coordinates
from mpi_compress.problem.objective import Objective


@dataclass
class Node:
    x: Vector  # (d,) iterate
    g: Vector  # (d,) the estimate of ∇f(x) in use
    full: bool = True  # True: this round's gradients are not compressed; the coin c_k is tossed alike by all, and costs no bits


@dataclass
class Worker:
    before: Vector  # (d,) ∇f_i at the iterate before


@algorithms.register("marina")
@dataclass(frozen=True)
class MARINA(Algorithm):
    """MARINA: Gorbunov, Burlachenko, Li, Richtárik (ICML 2021), Algorithm 1. The first round is a full one.

    worker sends     ∇f_i(x) in a full round, else Q(∇f_i(x) − ∇f_i(x⁻)),   x⁻ the iterate before
    master answers   the mean of what was sent
    everyone         g ← that mean in a full round, else g + that mean;  x ← x − γ g;  the next round is full with probability p

    Q is unbiased with ω. Theorem 2.1: γ ≤ 1/(L̃ (1 + √((1−p)ω/(pn)))) with L̃ = √((1/n) Σ L_i²), the default; p = 1/(1 + ω) is
    ζ/d for random-k, with which both kinds of round cost alike.
    """

    paper = "MARINA, Algorithm 1"
    compressor = "random-k"
    theory = "1/(L_rms*(1 + sqrt((1 - p)*omega/(p*n))))"
    step: Step = theory  # γ, the step size
    p: Expression = "1/(1 + omega)"  # p, the probability of a full round, whose gradients are not compressed

    def check(self) -> None:
        check_adding_up(self)
        check_unbiased(self)
        check_share(self, "p")

    @cached_property
    def whole(self) -> Link:
        """The uplink of a full round."""
        return of_all_coordinates(self.up)

    def uplink(self, node: Any, k: int) -> Link:
        return self.whole if node.full else self.up

    def start(self, x0: Vector) -> Any:
        return Node(x0.copy(), np.zeros_like(x0))

    def start_worker(self, node: Any, f: Objective) -> Any:
        return Worker(np.zeros(f.dim))

    def worker_sends(self, node: Any, worker: Any, f: Objective, t: Round) -> Message:
        g = f.gradient(node.x)
        link = self.uplink(node, t.k)
        message = link.pack(g if node.full else g - worker.before, t)
        worker.before[:] = g
        return message

    def all_hear(self, node: Any, down: Compressed, t: Round) -> None:
        if node.full:
            node.g[:] = 0.0
        down.add_to(node.g)
        node.x -= self.gamma(t.k) * node.g
        node.full = bool(t.shared.random() < float(self.p))
