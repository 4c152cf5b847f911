"""Stochastic gradients, compressed without memory; and GSpar's var, spa and their product, what an unbiased compressor costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.algorithms.vocabulary import (
    Batch,
    Estimator,
    Log,
    Rounds,
    Shards,
    UsualParameters,
    algorithms,
    fact,
    is_exact,
    notes,
)
from mpi_compress.messages.kinds import Compressed, Dense, Vector, squared_norm


@dataclass
class SentVariance:
    """Sums over the messages Q(g) of a worker so far.

    variance      var = Σ‖Q(g)‖² / Σ‖g‖²  (GSpar §4)
    spa           the share of coordinates sent
    variance_spa  their product
    """

    sent: Vector  # Σ‖Q(g)‖²
    given: Vector  # Σ‖g‖²
    density: Vector  # Σ elements/d
    messages: Vector

    def count(self, g: Vector | Compressed, sent: Compressed) -> None:
        """Add the messages that g (m, d) became."""
        self.sent += squared_norm(sent)
        self.given += squared_norm(g if isinstance(g, Compressed) else Dense(g))
        self.density += sent.elements / sent.dim
        self.messages += 1

    def numbers(self) -> Sequence[Any]:
        """Both sums, and the mean share of coordinates sent."""
        return self.sent, self.given, self.density / np.maximum(1, self.messages)


def _variance(means: Mapping[str, float], node: Any) -> Mapping[str, float]:
    variance = means["squares_sent"] / means["squares"] if means["squares"] > 0 else 1.0
    return {"variance": variance, "spa": means["spa"], "variance_spa": variance * means["spa"]}


VARIANCE = Log(("squares_sent", "squares", "spa"), SentVariance.numbers, _variance, of_rows=True)


@algorithms.register("sgd")
class SGD(UsualParameters, Estimator):
    """Stochastic gradient descent, compressed without memory: HT Algorithm 1 with e = 0.

    worker sends     C(g_i),   g_i the mean over a minibatch of its shard, weighted n|D_i|/N
    master answers   ĝ = (1/n) Σ C(g_i)
    everyone         x ← x − γ_k (ĝ + ∇r(x)),   r the regulariser where it is not in the f_i

    Where data are sparse and the regulariser is at the master, gradients are sparse vectors, and x is a scalar times a vector; with
    the identity and codec "auto" a round then costs what the minibatch holds, whatever d.

    If some of the workers take part, ĝ is the mean of theirs (Gower et al., ICML 2019), as in gd. With an unbiased compressor the
    sums of `SentVariance` are logged.
    """

    paper = "HT Algorithm 1, C(p) without e"
    proximal = True
    scaled = True
    partial_mean = "over participants"

    @property
    def is_noisy(self) -> bool:
        """True if the compressor is unbiased, and not the identity."""
        return self.up.compressor.unbiased(self.setting.dim) and not is_exact(self.up)

    @notes
    def start_workers(self, node: Any, fs: Shards) -> SentVariance | None:
        return SentVariance(*np.zeros((4, len(fs)))) if self.is_noisy else None

    def workers_send(self, node: Any, w: SentVariance | None, fs: Shards, t: Rounds) -> Batch:
        rows = self.rows(fs, t)
        if rows is not None and fs.gradients_are_sparse:
            return self.measured(w, fs.sparse_gradients(node.x, rows), t)
        return self.measured(w, fs.gradients(node.x, rows), t)

    def measured(self, sums: SentVariance | None, g: Vector | Compressed, t: Rounds) -> Batch:
        """Q(g) for gradients g (m, d), added to the workers' sums, if they have some."""
        sent = self.up.pack(g, t)
        if sums is not None:
            sums.count(g, self.up.unpack(sent))
        return sent

    @fact
    def log(self) -> Log:
        return VARIANCE if self.is_noisy else Log()
