from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.algorithms.vocabulary import (
    ONE_STEP_SIZE,
    OPTIMUM,
    ROUNDED_DOWN,
    WHOLE_GRADIENTS,
    WITHIN,
    Algorithm,
    Batch,
    Compressed,
    Expression,
    Need,
    Round,
    Rounds,
    Shards,
    Step,
    Theorem,
    Vector,
    algorithms,
    constants,
    exact_up,
    squared_norm,
)


@dataclass
class Node:
    x: Vector  # (d,) iterate: the mean z of the last round


@dataclass
class Worker:
    h: Vector  # (d,) h_i, which learns ∇f_i(x*)
    x: Vector  # (d,) x̂_i, as it was sent


class ScaffnewTheorem(Theorem):
    convex = True
    needs = (WITHIN, OPTIMUM)

    def rate(self, m, t: Round) -> float:
        """1 − min{γµ, p²} for each local step of the round: Theorem 3.6."""
        γ, µ, p = constants(m, "step", "mu", "p")
        return (1 - min(γ * µ, p**2)) ** local_steps(p, t)

    def terms(self, m, node, worker: Worker, f) -> Sequence[float]:
        return (squared_norm(worker.h - f.at_optimum),)

    def V(self, m, node, workers, master, known) -> float:
        """‖x − x*‖² + (γ/p)² (1/n) Σ‖h_i − ∇f_i(x*)‖²: Theorem 3.6, at an exchange, where all x_i are x."""
        γ, p = constants(m, "step", "p")
        return known.distance2() + (γ / p) ** 2 * workers[0]

    def tossed(self, node, ups, gradients):
        return 1, gradients


@algorithms.register("scaffnew")
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
    theorem = ScaffnewTheorem()
    needs = (
        WHOLE_GRADIENTS,
        ROUNDED_DOWN,
        ONE_STEP_SIZE,
        exact_up("scaffnew sends whole vectors: leave up.compressor out, or take locodl"),
    )
    shares = ("p",)
    theory = "1/L_max"
    step: Step = "theory"  # γ, the step size of local steps
    p: Expression = "sqrt(mu/L_max)"  # p, the probability of an exchange after a local step; with 1 it is gradient descent

    def start(self, x0: Vector) -> Node:
        return Node(x0.copy())

    def start_workers(self, node: Node, fs: Shards) -> Worker:
        return Worker(fs.zeros(), fs.zeros() + node.x)

    def workers_send(self, node: Node, w: Worker, fs: Shards, t: Rounds) -> Batch:
        sent = self.up.pack(self.local(node.x, w, fs, t) - node.x, t)
        w.x[:] = node.x
        self.up.unpack(sent).add_to(w.x)
        return sent

    def local(self, x: Vector, w: Worker, fs: Shards, t: Rounds) -> Vector:
        """x̂_i (m, d) after the local steps of round t.k from x."""
        γ, x = self.gamma(t.k), fs.zeros() + x
        for _ in range(local_steps(self.p, t)):
            x -= γ * (fs.gradients(x) - w.h)
        return x

    def workers_hear(self, node: Node, w: Worker, down: Compressed, t: Rounds) -> None:
        z = node.x.copy()
        down.add_to(z)
        w.h += (self.p / self.gamma(t.k)) * (z - w.x)

    def all_hear(self, node: Node, down: Compressed, t: Round) -> None:
        down.add_to(node.x)


PATTERN = Need(
    lambda m: m.up.compressor.name == "pattern" and m.s >= min(2, m.setting.n),
    "{name} sends by a pattern that has each coordinate at several workers: leave up.compressor out, or take pattern with s ≥ 2",
)


@dataclass
class WorkerWithOwn(Worker):
    owns: NDArray[np.bool_]  # (d,) true at the coordinates that worker i sent last


@algorithms.register("compressed-scaffnew")
class CompressedScaffnew(Scaffnew):
    """CompressedScaffnew: Condat, Agarský, Richtárik (2022), Algorithm 1; TAMUNA where all take part. All h_i start at 0.

    every node       a coin that all toss alike says after each local step, with probability p, that now messages are exchanged
    worker sends     x_i ← z;  x_i ← x̂_i = x_i − γ (∇f_i(x_i) − h_i) until the coin says so;  C_i(x̂_i)
    master answers   z ← (1/s) Σ C_i(x̂_i)
    everyone         x ← z;  worker i  h_i ← h_i + (pη/γ)(C_i(z) − C_i(x̂_i))

    C_i keeps the coordinates of a random pattern that has each of them at s of the n workers, so that a coordinate of z is the mean
    over those that sent it, and Σ h_i stays 0. η = n(s−1)/(s(n−1)); s = n is scaffnew. Messages hold (n/s) C_i(x̂_i − x), whose
    mean is z − x. For µ-convex f_i and γ ≤ 1/L_max, Σ‖x_i − x*‖²/γ + (γ/p²)(n−1)/(s−1) Σ‖h_i − ∇f_i(x*)‖² falls by
    1 − min{γµ, p²(s−1)/(n−1)} a local step in the mean; p = √(nµ/(sL_max)) is the default. No text of the paper was at hand: the
    constants are from memory, and their bound is a test.
    """

    paper = "CompressedScaffnew, Algorithm 1"
    compressor = "pattern"
    theory = Scaffnew.theory
    needs = (WHOLE_GRADIENTS, ROUNDED_DOWN, ONE_STEP_SIZE, PATTERN)
    p: Expression = "min(1, sqrt((1 + omega)*mu/L_max))"  # p, the probability of an exchange; 1 + ω is n/s

    @property
    def s(self) -> int:
        """The workers that have a coordinate."""
        return int(self.up.compressor.known(self.setting.dim)["copies"])

    def start_workers(self, node: Node, fs: Shards) -> WorkerWithOwn:
        return WorkerWithOwn(fs.zeros(), fs.zeros() + node.x, np.zeros((len(fs), fs.dim), dtype=bool))

    def workers_send(self, node: Node, w: Any, fs: Shards, t: Rounds) -> Batch:
        sent = self.up.pack(self.local(node.x, w, fs, t) - node.x, t)
        seen: Any = self.up.unpack(sent).sparse()
        w.x[:] = node.x
        seen.add_to(w.x, self.s / self.setting.n)
        w.owns[:] = False
        w.owns[np.repeat(np.arange(len(fs)), seen.counts), seen.indices] = True
        return sent

    def workers_hear(self, node: Node, w: Any, down: Compressed, t: Rounds) -> None:
        n, s = self.setting.n, self.s
        η = n * (s - 1) / (s * (n - 1)) if s < n else 1.0
        z = node.x.copy()
        down.add_to(z)
        w.h += (self.p * η / self.gamma(t.k)) * np.where(w.owns, z - w.x, 0.0)


def local_steps(p: float, t: Round | Rounds) -> int:
    """How many local steps round t.k has: the tosses of the common coin until it shows heads, which has probability p."""
    return int(t.shared.geometric(p))
