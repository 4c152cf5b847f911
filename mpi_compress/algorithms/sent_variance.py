"""What an unbiased compressor costs along a run: GSpar's var, spa and their product."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed, Dense, Vector
from mpi_compress.messages.link import Link, Message


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

    @classmethod
    def of(cls, link: Link) -> "SentVariance | None":
        """None where Q is the identity, or biased."""
        return cls() if _is_noisy(link) else None

    def count(self, g: Vector | Compressed, sent: Compressed) -> None:
        """Add the message that g (d,) became."""
        self.sent += sent.squared_norm()
        self.given += (g if isinstance(g, Compressed) else Dense(g)).squared_norm()
        self.density += sent.elements / sent.dim
        self.messages += 1

    @property
    def numbers(self) -> Sequence[float]:
        """What `variance_logs` names."""
        return self.sent, self.given, self.density / max(1, self.messages)


def _is_noisy(link: Link) -> bool:
    """True if Q is unbiased, and not the identity."""
    return link.compressor.unbiased(link.dim) and link.compressor.omega(link.dim) != 0.0


def measured(sums: SentVariance | None, link: Link, g: Vector | Compressed, t: Round) -> Message:
    """Q(g), counted in a worker's sums, if it has some."""
    message = link.pack(g, t)
    if sums is not None:
        sums.count(g, link.unpack(message))
    return message


def variance_logs(link: Link) -> Sequence[str]:
    """The numbers of a worker that `variance_columns` needs."""
    return ("squares_sent", "squares", "spa") if _is_noisy(link) else ()


def variance_columns(means: Mapping[str, float]) -> Mapping[str, float]:
    """The columns of the trace, from the means over workers."""
    if not means:
        return means
    variance = means["squares_sent"] / means["squares"] if means["squares"] > 0 else 1.0
    return {"variance": variance, "spa": means["spa"], "variance_spa": variance * means["spa"]}
