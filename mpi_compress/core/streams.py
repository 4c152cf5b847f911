"""Random draws with addresses: (seed, role, worker, round).

A draw has the same address whatever rank hosts the worker, and whether or not a run was interrupted. Philox turns a counter into
random numbers: the seed is its key and the address its counter, so that streams never overlap (each has 2⁶⁴ blocks). Moving a
generator to an address takes about 2 µs; building one takes 12.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, overload

import numpy as np
from numpy.random import Generator, Philox, SeedSequence
from numpy.typing import NDArray

from mpi_compress.core.arrays import in_turn
from mpi_compress.kernels import philox


def keyed(key: int) -> Generator:
    """The random numbers that all who have a key draw."""
    return Generator(Philox(key=int(key)))


class Role(IntEnum):
    """Who draws, and for what."""

    WORKER = 0  # a worker's compressor
    BATCH = 1  # a worker's minibatch: the same rows, whatever the compressor
    MASTER = 2
    SHARED = 3  # every node draws the same: costs no bits
    MODEL = 4  # a worker's model: dropout, noise
    START = 5  # x0
    PARTICIPATION = 6  # which workers take part in a round
    TIME = 7  # how long a worker computes
    ALIKE = 16  # compressors of all workers, or of the master: they draw the same


class Streams:
    """The random streams of one run."""

    def __init__(self, seed: int):
        self.opened = False  # True once any of them is
        self._key: Any = SeedSequence(seed).generate_state(2, np.uint64)
        self._generators = defaultdict[Role, Generator](lambda: Generator(Philox(0)))  # most compressors draw nothing

    @property
    def key(self) -> NDArray[np.uint64]:
        """Philox's key (2,), without which no stream is opened."""
        self.opened = True
        return self._key

    def at(self, role: Role, who: int, k: int, taken: int = 0, half: tuple[int, int] = (0, 0)) -> Generator:
        """The stream of one address, of which `taken` words are drawn, and a `half` of one perhaps left. It is valid until this is
        called again for the same role."""
        generator = self._generators[role]
        generator.bit_generator.state = {
            "bit_generator": "Philox",
            "state": {"counter": np.array([taken // 4, k, who, role], dtype=np.uint64), "key": self.key},
            "buffer": np.zeros(4, dtype=np.uint64),
            "buffer_pos": 4,
            "has_uint32": half[0],
            "uinteger": half[1],
        }
        if taken % 4:
            generator.bit_generator.random_raw(taken % 4)
        return generator


class _OwnStreams:
    """The streams of the nodes of one round, and where the draws from each of them have ended."""

    def __init__(self, streams: Streams, role: Role, who: NDArray[np.int64], k: int):
        self._address = streams, role, who, k
        self._taken = np.zeros(who.size, dtype=np.int64)  # words
        self._halves: dict[int, tuple[int, int]] = {}  # of words that draws of 32 bits have left
        self._drawing: tuple[int, Generator] | None = None  # the row whose generator draws, and this

    def generator(self, row: int) -> Generator:
        """A row's stream, valid until this or `words` is called."""
        streams, role, who, k = self._address
        if self._drawing is None or self._drawing[0] != row:
            self._note()
            self._drawing = row, streams.at(role, int(who[row]), k, int(self._taken[row]), self._halves.get(row, (0, 0)))
        return self._drawing[1]

    def _note(self) -> None:
        """Keep where the generator that drew last has ended."""
        if self._drawing is not None:
            row, state = self._drawing[0], self._drawing[1].bit_generator.state
            self._taken[row] = 4 * (int(state["state"]["counter"][0]) - 1) + state["buffer_pos"]
            self._halves[row] = state["has_uint32"], state["uinteger"]
            self._drawing = None

    def words(self, rows: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.uint64]:
        """The next words of the streams of these rows, one row after another."""
        self._note()
        streams, role, who, k = self._address
        return philox.words(streams.key, role.value, who, k, self._taken, rows, counts)


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

    def random(self, size: int) -> NDArray[np.float64]:
        """(size,) from [0, 1)."""
        return (self._take(size) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def generator(self, row: int) -> "Pool":
        return self

    def words(self, rows: Any, counts: NDArray[np.int64]) -> NDArray[np.uint64]:
        """The next words."""
        return self._take(int(counts.sum()))

    def geometric(self, p: float, size: int) -> NDArray[np.int64]:
        """(size,) numbers of tries up to the first success, of chance p."""
        if p == 1:
            return np.ones(size, dtype=np.int64)
        return np.maximum(1, np.ceil(np.log1p(-self.random(size)) / np.log1p(-p))).astype(np.int64)

    def choice(self, n: int, size: int, replace: bool = False, shuffle: bool = False) -> NDArray[np.intp]:
        """`size` of the numbers below n, any set of them as likely as another."""
        return np.argpartition(self._take(n), size - 1)[:size]


class _InRound:
    """What one node and many have in common in round k."""

    __slots__ = ("_made", "_role", "_shared", "_streams", "k", "second")
    who: Any  # the number of the node, or of each

    def __init__(self, k: int, streams: Streams, role: Role, own: Any, second: float):
        self.k = k
        self.second = second  # what the model's clock says as the round begins; 0.0 where the cost model has no clock
        self._streams, self._role, self._made = streams, role, own
        self._shared: Generator | None = None

    @property
    def _own(self) -> Any:
        """What is drawn from; it is made at its first use, for most nodes draw nothing."""
        if self._made is None:
            self._made = _OwnStreams(self._streams, self._role, np.atleast_1d(self.who), self.k)
        return self._made

    @property
    def shared(self) -> Generator:
        """The stream from which every node draws the same numbers."""
        if self._shared is None:
            self._shared = self._streams.at(Role.SHARED, 0, self.k)
        return self._shared

    @property
    def common_seed(self) -> int:
        """A seed of 32 bits, the same for all workers in this round; the master has another."""
        return int(self._streams.at(Role.ALIKE, self._role, self.k).integers(2**32))


class Round(_InRound):
    """Round k of one node: its number, its random streams, and the state of its compressor. It draws from a row of `own`, which
    may be a `Pool`."""

    __slots__ = ("_row", "state", "who")

    def __init__(self, k: int, streams: Streams, role: Role, who: int = 0, own: Any = None, state: Any = None, second: float = 0.0):
        super().__init__(k, streams, role, own, second)
        self.who = who
        self.state = state  # what `Compressor.start` made for this node
        self._row = 0

    def to(self, worker: int) -> "Round":
        """The same round of the master as it answers one worker: a compressor draws for that worker."""
        return Round(self.k, self._streams, self._role, worker, second=self.second)

    @property
    def rng(self) -> Generator:
        """This node's own stream of the round."""
        return self._own.generator(self._row)

    def batch_at(self, k: int) -> Generator:
        """The k-th stream of this worker's minibatches, each of which serves several rounds. Valid until the next one."""
        return self._streams.at(Role.BATCH, self.who, k)

    def model_draw(self) -> Generator:
        """The stream of this worker's model in this round, from its start each time. Valid until the next one."""
        return self._streams.at(Role.MODEL, self.who, self.k)


class Rounds(_InRound):
    """Round k of many nodes: row i is the round of node who[i], with its own stream, which goes on where its last draw ended."""

    __slots__ = ("_rows", "_states", "who")

    def __init__(
        self,
        k: int,
        streams: Streams,
        role: Role,
        who: NDArray[np.int64],
        states: Sequence[Any] | None = None,
        second: float = 0.0,
        own: tuple[Any, NDArray[np.int64]] | None = None,
    ):
        draws, self._rows = own or (None, in_turn(who.size))  # the rows of the draws
        super().__init__(k, streams, role, draws, second)
        self.who = who  # (m,)
        self._states = states or [None] * who.size  # what `Compressor.start` made for each of these nodes

    @classmethod
    def of(cls, t: Round) -> "Rounds":
        """One row: the round of one node, from whose stream, or pool, it draws."""
        return cls(t.k, t._streams, t._role, np.array([t.who]), [t.state], t.second, (t._own, np.array([t._row])))

    def __len__(self) -> int:
        return self.who.size

    def __iter__(self) -> Iterator[Round]:
        return map(self.__getitem__, range(len(self)))

    @overload
    def __getitem__(self, rows: int) -> Round: ...
    @overload
    def __getitem__(self, rows: slice | NDArray[Any]) -> "Rounds": ...
    def __getitem__(self, rows: Any) -> Any:
        """The round of one row; the rounds of some, by a slice, a mask or their numbers."""
        if isinstance(rows, slice) and rows == slice(0, self.who.size):
            return self
        address, who, at = (self.k, self._streams, self._role), self.who[rows], self._rows[rows]
        if isinstance(rows, int | np.integer):
            one = Round(*address, int(who), self._own, self._states[int(rows)], self.second)
            one._row = int(at)
            return one
        states = self._states[rows] if isinstance(rows, slice) else [self._states[i] for i in in_turn(self.who.size)[rows]]
        return Rounds(*address, who, states, self.second, (self._own, at))

    @property
    def of_times(self) -> "Rounds":
        """The same round, drawing how long these workers compute."""
        return Rounds(self.k, self._streams, Role.TIME, self.who)

    def words(self, n: int) -> NDArray[np.uint64]:
        """(m, n): the next n words of each row's own stream."""
        return self._own.words(self._rows, np.full(self.who.size, n)).reshape(-1, n)

    def random(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """So many (m,) next numbers of [0, 1) of each row's own stream, one row after another."""
        return (self._own.words(self._rows, counts) >> np.uint64(11)).astype(np.float64) * 2.0**-53
