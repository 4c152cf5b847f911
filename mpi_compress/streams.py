"""Randomness with an address: (seed, role, worker, round), never a generator that walks along.

Whatever rank hosts a worker, and whether or not a run was interrupted, the same draw has the same address. Philox is a counter
turned into random numbers: the seed is its key and the address its counter, so that streams never meet (each has 2⁶⁴ blocks), and
moving one generator to an address costs about 2 µs where building one costs 12.
"""

from enum import IntEnum

import numpy as np
from numpy.random import Generator, Philox, SeedSequence


class Role(IntEnum):
    """Who draws, and what for."""

    WORKER = 0  # a worker's compressor
    BATCH = 1  # a worker's minibatch: the same rows, whatever the compressor
    MASTER = 2
    SHARED = 3  # drawn alike by every node: costs no bits


class Streams:
    """All random draws of one run."""

    def __init__(self, seed: int):
        self._key = SeedSequence(seed).generate_state(2, np.uint64)
        self._generators = {role: Generator(Philox()) for role in Role}

    def at(self, role: Role, who: int, k: int) -> Generator:
        """The stream of one address. It is valid until the same role's next stream is asked for."""
        generator = self._generators[role]
        generator.bit_generator.state = {
            "bit_generator": "Philox",
            "state": {"counter": np.array([0, k, who, role], dtype=np.uint64), "key": self._key},
            "buffer": np.zeros(4, dtype=np.uint64),
            "buffer_pos": 4,
            "has_uint32": 0,
            "uinteger": 0,
        }
        return generator


class Round:
    """Round k as one node sees it: its number and its random streams, each set up when first used."""

    __slots__ = ("_drawn", "_role", "_streams", "k", "who")

    def __init__(self, k: int, streams: Streams, role: Role, who: int = 0):
        self.k = k
        self.who = who
        self._streams = streams
        self._role = role
        self._drawn: dict[Role, Generator] | None = None

    @property
    def rng(self) -> Generator:
        """This node's own stream of the round."""
        return self._of(self._role, self.who)

    @property
    def batch(self) -> Generator:
        """The stream that this worker's minibatch is drawn from."""
        return self._of(Role.BATCH, self.who)

    def batch_at(self, k: int) -> Generator:
        """The same for the k-th address, where what is drawn serves several rounds. Valid until the next stream of a batch."""
        return self._streams.at(Role.BATCH, self.who, k)

    @property
    def shared(self) -> Generator:
        """The stream that every node draws alike."""
        return self._of(Role.SHARED, 0)

    def _of(self, role: Role, who: int) -> Generator:
        if self._drawn is None:
            self._drawn = {}
        if role not in self._drawn:
            self._drawn[role] = self._streams.at(role, who, self.k)
        return self._drawn[role]
