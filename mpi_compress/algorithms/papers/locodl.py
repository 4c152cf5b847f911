from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mpi_compress.algorithms.papers.scaffnew import ScaffnewTheorem, local_steps
from mpi_compress.algorithms.vocabulary import (
    ONE_STEP_SIZE,
    OPTIMUM,
    ROUNDED_DOWN,
    UNBIASED_UP,
    WHOLE_GRADIENTS,
    WITHIN,
    Algorithm,
    Batch,
    Compressed,
    Expression,
    Round,
    Rounds,
    Shards,
    Step,
    Theorem,
    Vector,
    algorithms,
    constants,
    squared_norm,
)


@dataclass
class Node:
    y: Vector  # (d,) iterate
    v: Vector  # (d,) which learns ∇φ(x*)


@dataclass
class Worker:
    x: Vector  # (d,) x_i; x̂_i between the message up and the one down
    u: Vector  # (d,) u_i, which learns ∇f_i(x*)
    ŷ: Vector  # (d,) ŷ of this round, which every worker computes


class LoCoDLTheorem(Theorem):
    convex = True
    needs = (WITHIN, OPTIMUM)
    tossed = ScaffnewTheorem.tossed

    def rate(self, m, t: Round) -> float:
        """max{(1−γµ')², (1−γL')², 1 − p²χ/(1+2ω)} for each local step of the round, µ' = µ/2, L' = L_max − µ/2."""
        γ, µ, L, p = constants(m, "step", "mu", "L_max", "p")
        each = max((1 - γ * µ / 2) ** 2, (1 - γ * (L - µ / 2)) ** 2, 1 - p**2 * m.ρ / (1 + 2 * m.ω))
        return each ** local_steps(p, t)

    def terms(self, m, node: Node, worker: Worker, f) -> Sequence[float]:
        φ = m.setting.numbers["mu"] / 2 * f.x_star
        return squared_norm(worker.x - f.x_star), squared_norm(worker.u - (f.at_optimum - φ))

    def V(self, m, node: Node, workers, master, known) -> float:
        """Ψ/n, of which the class says the rest."""
        (x, u), (γ, µ, p) = workers, constants(m, "step", "mu", "p")
        v = squared_norm(node.v - µ / 2 * known.x_star)
        return (x + known.distance2()) / γ + γ * (1 + 2 * m.ω) / (p**2 * m.ρ) * (u + v)


@algorithms.register("locodl")
class LoCoDL(Algorithm):
    """Local steps and compressed differences: Condat, Maranjyan, Richtárik (LoCoDL, ICLR 2025), Algorithm 1. u_i and v start at 0.

    f is split into the mean of f_i − φ and φ = (µ/4)‖·‖², both µ/2-convex. As in scaffnew, local steps go on until a common coin
    says, with probability p, that messages are exchanged:

    every node       ŷ ← y − γ (∇φ(y) − v)
    worker sends     x̂_i ← x_i − γ (∇(f_i − φ)(x_i) − u_i);  d_i = Q(x̂_i − ŷ)
    master answers   D ← (1/2n) Σ d_i
    everyone         y ← ŷ + ρD;  v ← v + σD;  worker i  x_i ← (1−ρ) x̂_i + ρ (ŷ + D);  u_i ← u_i + σ (D − d_i)

    Q is unbiased with ω, ρ = χ = 1/(1 + ω/n), σ = pχ/(γ(1+2ω)). With µ' = µ/2, L' = L_max − µ/2 and γ ≤ 2/(L'+µ'), by their theorem
    Ψ = (Σ‖x_i−x*‖² + n‖y−x*‖²)/γ + γ(1+2ω)/(p²χ) (Σ‖u_i−u_i*‖² + n‖v−v*‖²) falls by max{(1−γµ')², (1−γL')², 1 − p²χ/(1+2ω)} a
    local step in the mean. The default p is min{1, √((1+ω/n)(1+ω) µ'/L')}. The rate was not checked against the paper.
    """

    paper = "LoCoDL, Algorithm 1"
    theorem = LoCoDLTheorem()
    compressor = "random-k"
    needs = (WHOLE_GRADIENTS, ROUNDED_DOWN, UNBIASED_UP, ONE_STEP_SIZE)
    shares = ("p",)
    theory = "2/L_max"  # 2/(L' + µ')
    step: Step = "theory"  # γ, the step size of local steps
    p: Expression = "min(1, sqrt((1 + omega/n)*(1 + omega)*mu/(2*L_max - mu)))"  # p, the probability of an exchange

    @cached_property
    def ω(self) -> float:
        return float(self.up.compressor.omega(self.setting.dim) or 0.0)

    @property
    def ρ(self) -> float:
        return 1.0 / (1.0 + self.ω / self.setting.n)

    @property
    def σ(self) -> float:
        return self.p * self.ρ / (self.gamma(0) * (1.0 + 2.0 * self.ω))

    def start(self, x0: Vector) -> Node:
        return Node(x0.copy(), np.zeros_like(x0))

    def start_workers(self, node: Node, fs: Shards) -> Worker:
        return Worker(fs.zeros() + ((1.0 - self.ρ) * node.y + self.ρ * node.y), fs.zeros(), fs.zeros() + node.y)

    def ŷ(self, node: Node, steps: int) -> Vector:
        """y (d,) after so many local steps."""
        γ, µ, y = self.gamma(0), self.setting.numbers["mu"], node.y.copy()
        for _ in range(steps):
            y -= γ * ((µ / 2) * y - node.v)
        return y

    def workers_send(self, node: Node, w: Worker, fs: Shards, t: Rounds) -> Batch:
        γ, µ, steps, x = self.gamma(0), self.setting.numbers["mu"], local_steps(self.p, t), w.x
        for _ in range(steps):
            x -= γ * (fs.gradients(x) - (µ / 2) * x - w.u)
        w.ŷ[:] = self.ŷ(node, steps)
        sent = self.up.pack(x - w.ŷ, t)
        self.up.unpack(sent).add_to(w.u, -self.σ)
        return sent

    def workers_hear(self, node: Node, w: Worker, down: Compressed, t: Rounds) -> None:
        D = down.dense() / 2.0
        w.x[:] = (1.0 - self.ρ) * w.x + self.ρ * (w.ŷ + D)
        w.u += self.σ * D

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        ŷ, D = self.ŷ(node, local_steps(self.p, t)), down.dense() / 2.0
        node.y = ŷ + self.ρ * D
        node.v += self.σ * D

    def iterate(self, node: Node) -> Vector:
        return node.y
