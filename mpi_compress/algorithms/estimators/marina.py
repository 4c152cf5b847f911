from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mpi_compress.algorithms.contract import algorithms
from mpi_compress.algorithms.needs import EXACT_DOWN, UNBIASED_UP, WHOLE_GRADIENTS
from mpi_compress.algorithms.parts import Direction
from mpi_compress.algorithms.product import Estimator
from mpi_compress.algorithms.steps import Step
from mpi_compress.core.expressions import Expression
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Link, Message
from mpi_compress.problem.objective import Objective


@dataclass
class Memory:
    g: Vector  # (d,) the estimate of ∇f(x) in use


@dataclass
class Known:
    before: Vector | None  # (d,) x⁻, the iterate before, where gradients are taken there too
    full: bool = True  # True: this round's gradients are not compressed; the coin c_k is tossed alike by all, and costs no bits
    batches: int = 0  # minibatches so far: rounds that were not full


@dataclass
class Worker:
    before: Vector  # (d,) ∇f_i at the iterate before


@algorithms.register("marina")
@dataclass(frozen=True)
class MARINA(Estimator):
    """MARINA: Gorbunov, Burlachenko, Li, Richtárik (ICML 2021), Algorithm 1. The first round is a full one.

    worker sends     ∇f_i(x) in a full round, else Q(∇f_i(x) − ∇f_i(x⁻)),   x⁻ the iterate before
    master answers   the mean of what was sent
    everyone         g ← that mean in a full round, else g + that mean;  x ← x − γ g;  the next round is full with probability p

    Q is unbiased with ω. Theorem 2.1: γ ≤ 1/(L̃ (1 + √((1−p)ω/(pn)))) with L̃ = √((1/n) Σ L_i²), the default; p = 1/(1 + ω) is
    ζ/d for random-k, with which both kinds of round cost alike.
    """

    paper = "MARINA, Algorithm 1"
    compressor = "random-k"
    needs = (WHOLE_GRADIENTS, EXACT_DOWN, UNBIASED_UP)
    shares = ("p",)
    looks_back: ClassVar[bool] = False  # True: workers take gradients at x⁻, too, and remember nothing
    theory = "1/(L_rms*(1 + sqrt((1 - p)*omega/(p*n))))"
    step: Step = theory  # γ, the step size
    p: Expression = "1/(1 + omega)"  # p, the probability of a full round, whose gradients are not compressed

    def uplink(self, node: Any, k: int) -> Link:
        return self.up.whole if node.known.full else self.up

    def start_memory(self, x0: Vector) -> Memory:
        return Memory(np.zeros_like(x0))

    def start_known(self, x0: Vector) -> Known:
        return Known(x0.copy() if self.looks_back else None)

    def start_worker(self, node: Any, f: Objective) -> Worker | None:
        return None if self.looks_back else Worker(np.zeros(f.dim))

    def worker_sends(self, node: Any, worker: Any, f: Objective, t: Round) -> Message:
        g = f.gradient(node.x)
        message = self.uplink(node, t.k).pack(g if node.known.full else g - worker.before, t)
        worker.before[:] = g
        return message

    def estimate(self, node: Any, memory: Memory, mean: Compressed, t: Round) -> Direction:
        if node.known.full:
            memory.g[:] = 0.0
        mean.add_to(memory.g)
        return (memory.g,)

    def next_round(self, node: Any, t: Round) -> None:
        if node.known.before is not None:
            node.known.before[:] = node.x
        node.known.batches += not node.known.full
        node.known.full = bool(t.shared.random() < float(self.p))
