"""What an unbiased compressor costs along a run: GSpar's var, spa and their product."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mpi_compress.algorithms.gd import GD
from mpi_compress.core.streams import Round
from mpi_compress.kernels.vectors import norm
from mpi_compress.messages.kinds import Compressed, Sparse, Vector
from mpi_compress.messages.link import Link, Message
from mpi_compress.problem.objective import Objective


@dataclass
class Sums:
    """Over a worker's messages so far."""

    sent: float = 0.0  # Σ‖Q(g)‖²
    given: float = 0.0  # Σ‖g‖²
    density: float = 0.0  # Σ elements/d
    messages: int = 0


class Measuring(GD):
    """Logs, where Q is unbiased and no identity, over all messages Q(g) so far

    variance      var = Σ‖Q(g)‖² / Σ‖g‖²  (GSpar §4)
    spa           the share of coordinates sent
    variance_spa  their product
    """

    @cached_property
    def measures(self) -> bool:
        """Whether there is something to log."""
        compressor, dim = self.up.compressor, self.setting.dim
        return compressor.unbiased(dim) and compressor.omega(dim) != 0.0

    @property
    def logs(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("squares_sent", "squares", "spa") if self.measures else ()

    def start_worker(self, node: Any, f: Objective) -> Sums | None:
        return Sums() if self.measures else None

    def pack(self, link: Link, worker: Sums | None, g: Vector | Compressed, t: Round) -> Message:
        """Q(g), measured."""
        message = link.pack(g, t)
        if worker is not None:
            worker.sent += link.unpack(message).squared_norm()
            worker.given += norm(g.values if isinstance(g, Sparse) else g) ** 2
            worker.density += link.unpack(message).elements / link.dim
            worker.messages += 1
        return message

    def worker_logs(self, worker: Sums | None) -> Sequence[float]:
        return () if worker is None else (worker.sent, worker.given, worker.density / max(1, worker.messages))

    def trace_logs(self, means: Mapping[str, float], node: Any) -> Mapping[str, float]:
        if not self.measures:
            return means
        variance = means["squares_sent"] / means["squares"] if means["squares"] > 0 else 1.0
        return {"variance": variance, "spa": means["spa"], "variance_spa": variance * means["spa"]}
