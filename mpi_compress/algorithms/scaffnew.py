from dataclasses import dataclass

import numpy as np

from mpi_compress.algorithms.base import Algorithm, algorithms, check_adding_up
from mpi_compress.algorithms.steps import Step
from mpi_compress.core.expressions import Expression
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Message
from mpi_compress.problem.objective import Objective


@dataclass
class Node:
    x: Vector  # (d,) iterate: the mean z of the last round


@dataclass
class Worker:
    h: Vector  # (d,) h_i, which learns ∇f_i(x*)
    x: Vector  # (d,) x̂_i, as it was sent in the last round


@algorithms.register("scaffnew")
@dataclass(frozen=True)
class Scaffnew(Algorithm):
    """Scaffnew, or ProxSkip for consensus: Mishchenko, Malinovsky, Stich, Richtárik (ICML 2022), Algorithm 2. All h_i start at 0.

    every node       a coin that all toss alike says after each local step, with probability p, that now messages are exchanged
    worker sends     x_i ← z;  x_i ← x̂_i = x_i − γ (∇f_i(x_i) − h_i) until the coin says so;  x̂_i
    master answers   z ← (1/n) Σ x̂_i
    everyone         x ← z;  worker i  h_i ← h_i + (p/γ)(z − x̂_i)

    A round is an exchange, with its local steps before it. Their number is geometric, 1/p in the mean; it costs no bits. Messages
    hold x̂_i − x. Theorem 3.6, all f_i µ-convex: with γ ≤ 1/L_max, Σ‖x_i − x*‖² + (γ/p)² Σ‖h_i − ∇f_i(x*)‖² falls by
    1 − min{γµ, p²} a local step in the mean. p = √(µ/L_max) makes both alike; it and γ = 1/L_max are the defaults.
    """

    paper = "Scaffnew, Algorithm 2"
    theory = "1/L_max"
    step: Step = theory  # γ, the step size of local steps
    p: Expression = "sqrt(mu/L_max)"  # p, the probability of an exchange after a local step; with 1 it is gradient descent

    def check(self) -> None:
        check_adding_up(self)
        check_coin(self)
        if self.up.compressor.omega(self.setting.dim) != 0.0:
            raise ValueError("scaffnew sends whole vectors: leave up.compressor out, or take locodl")

    def start(self, x0: Vector) -> Node:
        return Node(x0.copy())

    def start_worker(self, node: Node, f: Objective) -> Worker:
        return Worker(np.zeros(f.dim), node.x.copy())

    def worker_sends(self, node: Node, worker: Worker, f: Objective, t: Round) -> Message:
        γ, p, x = self.gamma(t.k), float(self.p), node.x.copy()
        worker.h += (p / γ) * (x - worker.x)  # the end of the round before
        for _ in range(local_steps(p, t)):
            x -= γ * (f.gradient(x) - worker.h)
        message = self.up.pack(x - node.x, t)
        worker.x[:] = node.x
        self.up.unpack(message).add_to(worker.x)
        return message

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        down.add_to(node.x)


def local_steps(p: float, t: Round) -> int:
    """How many local steps round t.k has: the tosses of the common coin until it shows heads, which has probability p."""
    return int(t.shared.geometric(p))


def check_coin(method: Algorithm) -> None:
    """ValueError unless p is a probability above 0, and γ the same in all rounds."""
    p = float(method.p)  # type: ignore[attr-defined]
    if not 0 < p <= 1:
        raise ValueError(f"p = {p:g} must be above 0 and at most 1; the default needs mu > 0")
    if not isinstance(method.step, float):
        raise ValueError(f"{method.name} takes one step size for all rounds")
