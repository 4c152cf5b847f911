"""What compression and rounding leave to be sent later: a worker's error, with the numbers to log, and the master's rest."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.algorithms.log import Log
from mpi_compress.algorithms.needs import ROUNDED_DOWN
from mpi_compress.core.streams import Round
from mpi_compress.kernels import feedback as kernels
from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.kinds import Compressed, Pair, Sparse, Vector
from mpi_compress.messages.link import Link, Message
from mpi_compress.problem.objective import Objective
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


ERRORS = Log(LOGS, attrgetter("sizes"), _of_means)
"""What error feedback logs."""


@dataclass
class FollowedNorm:
    """‖v‖², followed from change to change by a compensated sum: if changes are sparse, v need not be read whole."""

    squares: float = 0.0  # ‖v‖²
    lost: float = 0.0  # what its additions rounded off
    turned: float = 0.0  # Σ of the magnitudes of changes since it was last measured
    growth: float = 0.0  # by the gradient of this round

    @property
    def value(self) -> float:
        return self.squares + self.lost

    def add(self, change: float) -> None:
        total = self.squares + change
        big, small = (self.squares, change) if abs(self.squares) >= abs(change) else (change, self.squares)
        self.lost += (big - total) + small
        self.squares = total

    def measure(self, v: Vector) -> None:
        self.squares, self.lost, self.turned = kernels.squares(v), 0.0, 0.0


def level_of(compressor: Any) -> float:
    """λ of a hard threshold that is the same in every round: exactly the coordinates of magnitude λ or more are sent; 0: there is
    none."""
    return compressor.level if compressor.name == "hard-threshold" and not compressor.follows else 0.0


@dataclass
class ErrorMemory:
    """The error is kept in units of the gradient, e_i/γ: then p/γ = e/γ + g costs one addition."""

    e: Vector  # (d,) e_i/γ; p/γ between `add_gradient` and `take_out`
    followed: FollowedNorm | None = None  # ‖e_i/γ‖², where it is followed and not measured
    step: float = 0.0  # γ of the last round
    sizes: Vector = field(default_factory=lambda: np.zeros(len(LOGS)))  # the worker's numbers, as LOGS names them

    @classmethod
    def begun(cls, f: Objective, compressor: Compressor, batch: int | None, stays: bool) -> "ErrorMemory":
        """e_i = 0. The norm of the error is followed, not measured, if minibatches are sparse and no other coordinates than theirs
        can come to be sent: the threshold is the same in all rounds, and the step and the errors stay (`stays`)."""
        same_level = level_of(compressor) > 0 and stays
        follows = same_level and batch is not None and f.gradients_are_sparse
        return cls(np.zeros(f.dim), FollowedNorm() if follows else None)

    def at_step(self, step: float, e_stays: bool) -> None:
        """Go on with the step γ: where e_i stays, e_i/γ changes."""
        if e_stays and self.step not in (0.0, step):
            self.e *= self.step / step
        self.step = step

    def add_gradient(self, f: Objective, x: Vector | ScaledVector, rows: NDArray[np.uint64] | None) -> None:
        """p ← e + γ g, both over γ."""
        if self.followed is None or rows is None:
            f.add_gradient(self.e, x, rows)
        else:
            _, self.followed.growth = f.add_sparse_gradient(self.e, x, rows)

    def take_out(self, sent: Compressed) -> None:
        """e ← p − Δ, both over γ."""
        if self.followed is not None:
            self._take_out_following(self.followed, sent)
        elif type(sent) is Sparse:
            kernels.take_out_and_note(sent.indices, sent.values, self.e, self.step, self.sizes)
        else:
            self._take_out_measuring(sent)

    def _take_out_measuring(self, sent: Compressed) -> None:
        before = kernels.squares(self.e)
        sent.add_to(self.e, -1.0)
        self._note(before, kernels.squares(self.e), sent)

    def _take_out_following(self, norm: FollowedNorm, sent: Compressed) -> None:
        """If nearly all of ‖e/γ‖² was taken out, the rest is measured: followed, it would be only rounding."""
        if not isinstance(sent, Sparse):
            self._take_out_measuring(sent)
            norm.measure(self.e)
            return
        norm.add(norm.growth)
        before, after = kernels.take_out(sent.indices, sent.values, self.e)
        corrected = max(norm.value, before)
        norm.add(after - before)
        norm.turned += abs(norm.growth) + before + after
        if norm.value < _REMEASURED * norm.turned:
            norm.measure(self.e)
        self._note(corrected, norm.value, sent)

    def _note(self, corrected: float, left: float, sent: Compressed) -> None:
        kernels.note(self.sizes, self.step, corrected, left, sent.elements / sent.dim)

    def drop(self) -> None:
        """e ← 0."""
        self.e[:] = 0.0
        if self.followed is not None:
            self.followed = FollowedNorm()


@dataclass
class Rest:
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


def rest_of(method: Any) -> Rest | None:
    """What rounding left of a bound method's answers before round 0; None where nothing is to be kept."""
    return Rest(np.zeros(method.setting.dim)) if ROUNDED_DOWN in method.needs and method.down.codec.float != 64 else None


def packed(master: Any, link: Link, mean: Compressed, t: Round) -> Message:
    """The master's message of a mean; with a rest in its memory not as it is."""
    return master.pack(link, mean, t) if isinstance(master, Rest) else link.pack(mean, t)
