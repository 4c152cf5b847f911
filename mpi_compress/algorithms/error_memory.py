"""What compression and rounding leave to be sent later: a worker's error, with the numbers to log, and the master's rest."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.algorithms.log import Log
from mpi_compress.algorithms.needs import ROUNDED_DOWN
from mpi_compress.core.streams import Round
from mpi_compress.kernels import feedback as kernels
from mpi_compress.kernels.threshold import reaching_among
from mpi_compress.messages.batch import Message
from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.kinds import Compressed, Pair, Sparse, Vector
from mpi_compress.messages.link import Link
from mpi_compress.problem.objective import Shards
from mpi_compress.problem.scaled_vector import ScaledVector

_REMEASURED = 1e-8  # a norm that is followed is measured again below this share of what was added and taken out

LOGS = ("error_norm", "total_error", "density", "corrected_norm")
"""A worker's numbers: ‖e_i‖², its sum over the rounds so far, the share of coordinates in its last message, ‖p_i/γ‖² of the last
round. The trace has √mean_i‖e_i‖², Σ_t mean_i‖e_i‖²,
the mean share, and √mean_i‖p_i/γ‖²; and, where every node remembers the means, the rounds in which no worker sent anything."""


def _of_means(means: Mapping[str, float], node: Any) -> Mapping[str, float]:
    roots = {name: math.sqrt(means[name]) for name in ("error_norm", "corrected_norm")}
    memory = getattr(node, "memory", None)
    return {**means, **roots, **({} if memory is None else {"silent": memory.silent})}


ERRORS = Log(LOGS, lambda w: w.sizes.T, _of_means, of_rows=True)
"""What error feedback logs."""


def level_of(compressor: Any) -> float:
    """λ of a hard threshold that is the same in every round: exactly the coordinates of magnitude λ or more are sent; 0: there is
    none."""
    return compressor.level if compressor.name == "hard-threshold" and not compressor.follows else 0.0


@dataclass
class FollowedNorms:
    """‖v‖² of each row, followed from change to change by a compensated sum: if changes are sparse, v need not be read whole."""

    squares: Vector  # (m,) ‖v‖²
    lost: Vector  # (m,) what its additions rounded off
    turned: Vector  # (m,) Σ of the magnitudes of changes since it was last measured
    growth: Vector  # (m,) by the gradient of this round

    def value(self, i: int) -> float:
        return float(self.squares[i] + self.lost[i])

    def add(self, i: int, change: float) -> None:
        squares = float(self.squares[i])
        total = squares + change
        big, small = (squares, change) if abs(squares) >= abs(change) else (change, squares)
        self.lost[i] += (big - total) + small
        self.squares[i] = total

    def measure(self, i: int, v: Vector) -> None:
        self.squares[i], self.lost[i], self.turned[i] = kernels.squares(v), 0.0, 0.0


@dataclass
class ErrorMemory:
    """The errors are kept in units of the gradient, e_i/γ: then p/γ = e/γ + g costs one addition."""

    e: Vector  # (m, d) e_i/γ; p/γ between `add_gradients` and `take_out`
    sizes: Vector  # (m, 4) the workers' numbers, as LOGS names them
    step: Vector  # (m,) γ of their last round
    followed: FollowedNorms | None = None  # ‖e_i/γ‖², where they are followed and not measured

    @classmethod
    def begun(cls, fs: Shards, compressor: Compressor, batch: int | None, stays: bool) -> "ErrorMemory":
        """e_i = 0. The norms of the errors are followed, not measured, if minibatches are sparse and no other coordinates than
        theirs can come to be sent: the threshold is the same in all rounds, and the step and the errors stay (`stays`)."""
        same_level = level_of(compressor) > 0 and stays
        follows = same_level and batch is not None and fs.gradients_are_sparse
        m = len(fs)
        return cls(fs.zeros(), np.zeros((m, len(LOGS))), np.zeros(m), FollowedNorms(*np.zeros((4, m))) if follows else None)

    def at_step(self, step: float, e_stays: bool) -> None:
        """Go on with the step γ: where e_i stays, e_i/γ changes."""
        other = (self.step != 0.0) & (self.step != step)
        if e_stays and other.any():
            self.e[other] *= (self.step[other] / step)[:, None]
        self.step[:] = step

    def touched(self, fs: Shards, x: Vector | ScaledVector, rows: Any, level: float) -> Sparse:
        """p ← e + γ g, both over γ, and C(p/γ), where norms are `followed`: a round costs what minibatches hold."""
        assert self.followed is not None
        found = []
        for i, f in enumerate(fs):
            held, self.followed.growth[i] = f.add_sparse_gradient(self.e[i], x, rows[i])
            found.append(reaching_among(self.e[i], held, level))
        indices, values = (np.concatenate(each) for each in zip(*found, strict=True))
        return Sparse(fs.dim, indices, values, np.cumsum([each.size for each, _ in found]))

    def take_out(self, sent: Compressed) -> None:
        """e ← p − Δ, both over γ."""
        sparse = sent if isinstance(sent, Sparse) else None
        if sparse is None:
            corrected = kernels.squares_of_rows(self.e)
            sent.add_to(self.e, -1.0)
            left = kernels.squares_of_rows(self.e)
        elif self.followed is None:
            left, corrected = np.empty((2, len(self.e)))
            kernels.take_out_of_rows(sparse.indices, sparse.values, sparse.ends, self.e, left, corrected)
        else:
            left, corrected = self._taken_out_following(self.followed, sparse)
        kernels.note(self.sizes, self.step, corrected, left, sent.elements / sent.dim)

    def _taken_out_following(self, norms: FollowedNorms, sent: Sparse) -> Vector:
        """‖e/γ‖² of each row, after and before. If nearly all was taken out, the rest is measured: followed, it would be only
        rounding."""
        sizes = np.empty((2, len(self.e)))
        for i, e in enumerate(self.e):
            c = sent[i]
            norms.add(i, norms.growth[i])
            before, after = kernels.take_out(c.indices, c.values, e)
            corrected = max(norms.value(i), before)
            norms.add(i, after - before)
            norms.turned[i] += abs(norms.growth[i]) + before + after
            if norms.value(i) < _REMEASURED * norms.turned[i]:
                norms.measure(i, e)
            sizes[:, i] = norms.value(i), corrected
        return sizes

    def drop(self) -> None:
        """e ← 0."""
        self.e[:] = 0.0
        if self.followed is not None:
            for held in vars(self.followed).values():
                held[:] = 0.0


@dataclass
class Residual:
    """What rounding left of the master's answers, which it adds to later ones. e starts at 0.

    master answers   v ← mean + e;  q ← v as it is rounded;  e ← v − q,   at the coordinates that the mean has

    So Σ q + e = Σ mean at every round: what nodes have added up is wrong by the last rounding of each coordinate, which vanishes as
    the means do. Plain rounding would leave all of them. Of a pair nodes add up the second vector, and the first is rounded alone.
    """

    e: Vector  # (d,) Σ weight · (mean − q)

    def pack(self, link: Link, mean: Compressed, t: Round, weight: float = 1.0) -> Message:
        """The message of a mean that nodes multiply by `weight` before they add it."""
        added = mean.second if isinstance(mean, Pair) else mean
        added.add_to(self.e, weight)
        sparse = added.sparse()
        v = self.e / weight if sparse is None else Sparse(sparse.dim, sparse.indices, self.e[sparse.indices] / weight)
        message = link.encode(Pair(mean.first, link.parts[1].compressed(v, t))) if isinstance(mean, Pair) else link.pack(v, t)
        heard = link.unpack(message)
        (heard.second if isinstance(heard, Pair) else heard).add_to(self.e, -weight)
        return message


def residual_of(method: Any) -> Residual | None:
    """What rounding left of a bound method's answers before round 0; None where nothing is to be kept."""
    return Residual(np.zeros(method.setting.dim)) if ROUNDED_DOWN in method.needs and method.down.codec.float != 64 else None


def packed(master: Any, link: Link, mean: Compressed, t: Round) -> Message:
    """The master's message of a mean; with a rest in its memory not as it is."""
    return master.pack(link, mean, t) if isinstance(master, Residual) else link.pack(mean, t)
