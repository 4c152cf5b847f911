"""The contract of an attack."""

from abc import ABC
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.registry import Part, Registry
from mpi_compress.messages.kinds import Compressed, Vector

Vectors = NDArray[np.float64]


@dataclass(frozen=True)
class Attack(Part, ABC):
    """What a byzantine worker does: it changes its own message before it is encoded, or it knows all honest ones. An attacker that
    knows all honest messages knows them as the master decodes them. So its vector takes the place of what was decoded of its
    message: it is no message of the run's codec, and the bits counted are those of the message that it sent."""

    paper: ClassVar[str] = ""
    knows_all: ClassVar[bool] = False  # True: `knowing` says what it sends, else `told`

    def told(self, c: Compressed) -> Compressed:
        """What a worker sends that would honestly send `c`."""
        return c

    def sends(self, kind: type[Compressed]) -> bool:
        """True if it can change messages of this kind."""
        return True

    def knowing(self, honest: Vectors, f: int) -> Vector:
        """What each of f workers sends (d,) that know what the others sent, (n − f, d)."""
        raise NotImplementedError

    def check(self, n: int, f: int) -> None:
        """ValueError where its parameters do not go with f byzantine workers of n."""


@dataclass(frozen=True)
class Byzantine:
    """The last `count` of the workers are byzantine."""

    count: int
    attack: Attack


attacks: Registry[Attack] = Registry("attack", Attack)
