"""What an unbiased compressor costs along a run: GSpar's var, spa and their product."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mpi_compress.algorithms.descent import Descent
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed, Dense, Vector
from mpi_compress.messages.link import Message
from mpi_compress.problem.objective import Objective


@dataclass
class SentVariance:
    """Sums over the messages Q(g) of a worker so far.

    variance      var = Σ‖Q(g)‖² / Σ‖g‖²  (GSpar §4)
    spa           the share of coordinates sent
    variance_spa  their product
    """

    sent: float = 0.0  # Σ‖Q(g)‖²
    given: float = 0.0  # Σ‖g‖²
    density: float = 0.0  # Σ elements/d
    messages: int = 0

    def count(self, g: Vector | Compressed, sent: Compressed) -> None:
        """Add the message that g (d,) became."""
        self.sent += sent.squared_norm()
        self.given += (g if isinstance(g, Compressed) else Dense(g)).squared_norm()
        self.density += sent.elements / sent.dim
        self.messages += 1


class MeasuresVariance(Descent):
    """A method that logs `SentVariance` if its compressor is unbiased and not the identity."""

    @cached_property
    def _is_noisy(self) -> bool:
        compressor, d = self.up.compressor, self.setting.dim
        return compressor.unbiased(d) and compressor.omega(d) != 0.0

    def start_worker(self, node: Any, f: Objective) -> SentVariance | None:
        return SentVariance() if self._is_noisy else None

    def measured(self, sums: SentVariance | None, g: Vector | Compressed, t: Round) -> Message:
        """Q(g) for a gradient g (d,), added to a worker's sums, if it has some."""
        message = self.up.pack(g, t)
        if sums is not None:
            sums.count(g, self.up.unpack(message))
        return message

    @property
    def logs(self) -> Sequence[str]:
        return ("squares_sent", "squares", "spa") if self._is_noisy else ()

    def worker_logs(self, worker: SentVariance | None) -> Sequence[float]:
        return () if worker is None else (worker.sent, worker.given, worker.density / max(1, worker.messages))

    def trace_logs(self, means: Mapping[str, float], node: Any) -> Mapping[str, float]:
        if not means:
            return means
        variance = means["squares_sent"] / means["squares"] if means["squares"] > 0 else 1.0
        return {"variance": variance, "spa": means["spa"], "variance_spa": variance * means["spa"]}
