from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpi_compress.algorithms.needs import EXACT_DOWN, ONE_STEP_SIZE, WHOLE_GRADIENTS, Need
from mpi_compress.algorithms.papers.scaffnew import Node, Scaffnew
from mpi_compress.algorithms.papers.scaffnew import Worker as LocalWorker
from mpi_compress.algorithms.vocabulary import Compressed, Expression, Message, Objective, Round, algorithms

PATTERN = Need(
    lambda m: m.up.compressor.name == "pattern" and m.s >= min(2, m.setting.n),
    "{name} sends by a pattern that has each coordinate at several workers: leave up.compressor out, or take pattern with s ≥ 2",
)


@dataclass
class Worker(LocalWorker):
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
    needs = (WHOLE_GRADIENTS, EXACT_DOWN, ONE_STEP_SIZE, PATTERN)
    p: Expression = "min(1, sqrt((1 + omega)*mu/L_max))"  # p, the probability of an exchange; 1 + ω is n/s

    @property
    def s(self) -> int:
        """The workers that have a coordinate."""
        return int(self.up.compressor.known(self.setting.dim)["copies"])

    def start_worker(self, node: Node, f: Objective) -> Worker:
        return Worker(np.zeros(f.dim), node.x.copy(), np.zeros(f.dim, dtype=bool))

    def worker_sends(self, node: Node, worker: LocalWorker, f: Objective, t: Round) -> Message:
        assert isinstance(worker, Worker)
        message = self.up.pack(self.local(node.x, worker, f, t) - node.x, t)
        sent = self.up.unpack(message).sparse()
        assert sent is not None
        worker.x[:] = node.x
        sent.add_to(worker.x, self.s / self.setting.n)
        worker.owns[:] = False
        worker.owns[sent.indices] = True
        return message

    def worker_hears(self, node: Node, worker: LocalWorker, down: Compressed, t: Round) -> None:
        assert isinstance(worker, Worker)
        n, s = self.setting.n, self.s
        η = n * (s - 1) / (s * (n - 1)) if s < n else 1.0
        z = node.x.copy()
        down.add_to(z)
        worker.h += (float(self.p) * η / self.gamma(t.k)) * np.where(worker.owns, z - worker.x, 0.0)
