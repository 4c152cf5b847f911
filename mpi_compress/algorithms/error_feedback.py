"""What methods with error feedback share: an uplink that follows the run, what is logged, and when errors are dropped."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mpi_compress.algorithms.base import Setting
from mpi_compress.algorithms.descent import Descent
from mpi_compress.algorithms.error_memory import LOGS, ErrorMemory, FollowedNorm
from mpi_compress.algorithms.regimes import Regime
from mpi_compress.algorithms.sampling import rounds_of_epoch
from mpi_compress.core.streams import Round
from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.compressors.base import Composed
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Link, Message
from mpi_compress.problem.objective import Objective


@dataclass(frozen=True)
class ErrorFeedback(Descent):
    """What HT's Algorithms 1 to 3 share, and a worker's lines where its error is in units of the gradient."""

    compressor = "top-k"
    logs = LOGS
    theory = "1/(4*L_max)"  # HT Theorems 4 and 5
    feedback: bool = True  # false: the error e is dropped after every round
    reset: int | None = None  # rounds after which the error e is dropped, again and again; left out: it is kept

    def within(self, setting: Setting) -> Self:
        bound = super().within(setting)
        if setting.up.compressor.follows == "step" and isinstance(bound.step, float):  # it stays the same: settle it once
            object.__setattr__(bound, "setting", replace(setting, up=in_round(setting.up, bound.step, None)))
        return bound

    def settles(self, compressor: Compressor, way: str = "up") -> bool:
        return way == "up" and compressor.follows == "step"

    def check(self) -> None:
        super().check()
        if self.reset is not None and self.reset < 1:
            raise ValueError(f"reset = {self.reset} must be at least 1 round; leave it out to keep the errors")

    def start_worker(self, node: Any, f: Objective) -> ErrorMemory:
        """e_i = 0.

        The norm of the error is followed, not measured, if minibatches are sparse and no other coordinates than theirs can come to
        be sent: the threshold is the same in all rounds, and errors are never dropped.
        """
        compressor, stays = self.up.compressor, isinstance(self.step, float) and self.feedback and self.reset is None
        same_level = compressor.follows == "" and compressor.least_sent > 0 and stays
        follows = same_level and self.batch is not None and f.gradients_are_sparse
        return ErrorMemory(np.zeros(f.dim), FollowedNorm() if follows else None)

    def uplink(self, node: Any, k: int) -> Link:
        return in_round(self.up, self.gamma(k), node.regime)

    def drops_errors(self, k: int) -> bool:
        """True if errors are dropped after round k."""
        return not self.feedback or (self.reset is not None and (k + 1) % self.reset == 0)

    def worker_sends(self, node: Any, worker: Any, f: Objective, t: Round) -> Message:
        """C(Δ_i) of Δ_i ← g_i + e_i, whose error is in units of the gradient whatever the step; e_i ← Δ_i − C(Δ_i)."""
        link = self.uplink(node, t.k)
        worker.step = self.gamma(t.k)
        worker.add_gradient(f, node.x, self.rows(f, t))
        Δ = link.pack(worker.e, t)
        worker.take_out(link.unpack(Δ))
        if self.drops_errors(t.k):
            worker.drop()
        return Δ

    def note_round(self, node: Any, down: Compressed, k: int) -> None:
        """Note in a node what belongs to round k beside its iterate: the mean of iterates, silent rounds, ACCORDION's regime."""
        self.take_in(node, k + 1)
        node.silent += down.elements == 0
        if node.regime is not None:
            epoch = rounds_of_epoch(self.setting.numbers["N"], self.setting.n, self.batch)
            compressor = self.up.compressor
            parameters = compressor.each if isinstance(compressor, Composed) else compressor
            node.regime.hear(parameters, down, k, epoch, self.gamma(k + 1) < self.gamma(k))

    def worker_logs(self, worker: Any) -> Sequence[float]:
        return worker.sizes.tolist()

    def trace_logs(self, means: Mapping[str, float], node: Any) -> Mapping[str, float]:
        roots = {name: math.sqrt(means[name]) for name in ("error_norm", "corrected_norm")}
        return {**means, **roots, "silent": node.silent}


def in_round(link: Link, γ: float, regime: Regime | None) -> Link:
    """The uplink of a round: a threshold given by an accuracy follows γ, ACCORDION's k follows the regime."""
    if not link.compressor.follows:
        return link
    return replace(link, compressor=link.compressor.in_round(link.dim, γ, regime is None or regime.critical))


def first_regime(compressor: Compressor, x0: Vector) -> Regime | None:
    """ACCORDION's regime before round 0; None if the compressor follows none."""
    return Regime(np.zeros_like(x0)) if compressor.follows == "regime" else None
