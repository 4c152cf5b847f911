"""Random draws with addresses: (seed, role, worker, round).

A draw has the same address whatever rank hosts the worker, and whether or not a run was interrupted. Philox turns a counter into
random numbers: the seed is its key and the address its counter, so that streams never overlap (each has 2⁶⁴ blocks). Moving a
generator to an address takes about 2 µs; building one takes 12.
"""

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.random import Generator, Philox, SeedSequence
from numpy.typing import NDArray


class Role(IntEnum):
    """Who draws, and for what."""

    WORKER = 0  # a worker's compressor
    BATCH = 1  # a worker's minibatch: the same rows, whatever the compressor
    MASTER = 2
    SHARED = 3  # every node draws the same: costs no bits
    MODEL = 4  # a worker's model: dropout, noise
    START = 5  # x0
    PARTICIPATION = 6  # which workers take part in a round
    ALIKE = 16  # compressors of all workers, or of the master: they draw the same


class Streams:
    """The random streams of one run."""

    def __init__(self, seed: int):
        self._key = SeedSequence(seed).generate_state(2, np.uint64)
        self._generators: dict[Role, Generator] = {}  # made at their first use: most compressors draw nothing

    def at(self, role: Role, who: int, k: int) -> Generator:
        """The stream of one address. It is valid until this is called again for the same role."""
        generator = self._generators.get(role)
        if generator is None:
            generator = self._generators[role] = Generator(Philox(0))
        generator.bit_generator.state = {
            "bit_generator": "Philox",
            "state": {"counter": np.array([0, k, who, role], dtype=np.uint64), "key": self._key},
            "buffer": np.zeros(4, dtype=np.uint64),
            "buffer_pos": 4,
            "has_uint32": 0,
            "uinteger": 0,
        }
        return generator


class Pool:
    """Random `words` (n,) uint64 drawn beforehand, read in order and then again from the start, in place of a Generator (GSpar
    §4.2)."""

    def __init__(self, words: NDArray[np.uint64]):
        self._words, self.at = words, 0

    def _take(self, n: int) -> NDArray[np.uint64]:
        if n > self._words.size:
            raise ValueError(f"{n} random numbers at once are more than the pool of {self._words.size}")
        start = self.at if self.at + n <= self._words.size else 0
        self.at = start + n
        return self._words[start : self.at]

    def integers(
        self, low: int, high: int | None = None, size: int | None = None, dtype: Any = np.uint64, endpoint: bool = False
    ) -> Any:
        """All 64 bits of one word, or of (size,) words."""
        if (low if high is None else high) + endpoint < 2**64:
            raise ValueError("a pool gives whole words of 64 bits only")
        return self._take(1)[0] if size is None else self._take(size)

    def random(self, size: int) -> NDArray[np.float64]:
        """(size,) from [0, 1)."""
        return (self._take(size) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def geometric(self, p: float, size: int) -> NDArray[np.int64]:
        """(size,) numbers of tries up to the first success, of chance p."""
        if p == 1:
            return np.ones(size, dtype=np.int64)
        return np.maximum(1, np.ceil(np.log1p(-self.random(size)) / np.log1p(-p))).astype(np.int64)

    def choice(self, n: int, size: int, replace: bool = False, shuffle: bool = False) -> NDArray[np.intp]:
        """`size` of the numbers below n, any set of them as likely as another."""
        return np.argpartition(self._take(n), size - 1)[:size]


class Round:
    """Round k of one node: its number, its random streams, each set up at its first use, and the state of its compressor."""

    __slots__ = ("_drawn", "_role", "_streams", "k", "second", "state", "who")

    def __init__(self, k: int, streams: Streams, role: Role, who: int = 0, own: Any = None, state: Any = None, second: float = 0.0):
        self.k = k
        self.who = who
        self.second = second  # what the model's clock says as the round begins; 0.0 where the cost model has no clock
        self.state = state  # what `Compressor.start` made for this node
        self._streams = streams
        self._role = role
        self._drawn: dict[Role, Any] | None = None if own is None else {role: own}  # a `Pool` in place of the stream

    def to(self, worker: int) -> "Round":
        """The same round of the master as it answers one worker: a compressor draws for that worker."""
        return Round(self.k, self._streams, self._role, worker, second=self.second)

    @property
    def rng(self) -> Generator:
        """This node's own stream of the round."""
        return self._of(self._role, self.who)

    def batch_at(self, k: int) -> Generator:
        """The k-th stream of this worker's minibatches, each of which serves several rounds. Valid until the next one."""
        return self._streams.at(Role.BATCH, self.who, k)

    def model_draw(self) -> Generator:
        """The stream of this worker's model in this round, from its start each time. Valid until the next one."""
        return self._streams.at(Role.MODEL, self.who, self.k)

    @property
    def shared(self) -> Generator:
        """The stream from which every node draws the same numbers."""
        return self._of(Role.SHARED, 0)

    @property
    def common_seed(self) -> int:
        """A seed of 32 bits, the same for all workers in this round; the master has another."""
        return int(self._streams.at(Role.ALIKE, int(self._role), self.k).integers(2**32))

    def _of(self, role: Role, who: int) -> Generator:
        if self._drawn is None:
            self._drawn = {}
        if role not in self._drawn:
            self._drawn[role] = self._streams.at(role, who, self.k)
        return self._drawn[role]
