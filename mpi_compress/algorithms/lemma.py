"""What CAT's descent lemmas say of a method's next round."""

from collections.abc import Callable
from dataclasses import dataclass
from math import nan

from mpi_compress.messages.kinds import Vector


@dataclass(frozen=True)
class Lemma:
    """Of a bound method; by default nothing is known."""

    T: int | None = None  # the number of coordinates in every message; None: it varies, or is not known
    curve: str = ""  # the symbol of the improvement: "alpha", "beta" or "omega"
    improvement: Callable[[Vector], float] = lambda g: nan  # of g (d,), which is compressed: the share of ‖g‖²/2L by which f falls
