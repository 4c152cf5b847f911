"""The theorems of a compressor that remembers something: they are about every vector, whatever was sent before it.

A compressor has rounds of vectors that are hard for a memory, by its link, with the sender's state, as in a run. The state that
these leave is then asked for further vectors, a random compressor's by draws that are independent of one another.
"""

import copy
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import islice, product
from typing import Any

import numpy as np

from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.guard.findings import SEED, Finding, tried
from mpi_compress.guard.of_messages import settled_at, stated
from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.kinds import Vector
from mpi_compress.messages.link import Link, Message

_DIMS = (2, 12, 60, 1000)  # of vectors; the first three that the parameters go with
_ROUNDS, _LAST = (5, 20, 60), 60  # after which the state is asked
_FEW, _MANY = 8, 300  # draws of one vector: those that show whether C is random, and all of them if it is
_SEQUENCES: Mapping[str, Callable[[int, Vector, Vector, Vector], Vector]] = {
    "(0, …, 0, 1)": lambda k, u, v, sent: np.eye(u.size)[-1],
    "one coordinate after another": lambda k, u, v, sent: np.eye(u.size)[k % u.size],
    "one half and the other in turn": lambda k, u, v, sent: u * ((np.arange(u.size) < u.size // 2) == k % 2),
    "a vector that doubles": lambda k, u, v, sent: 2.0**k * u,
    "a vector that halves": lambda k, u, v, sent: 0.5**k * u,
    "the same vector": lambda k, u, v, sent: u,
    "1 where it has just sent and 0.4 elsewhere": lambda k, u, v, sent: np.where(sent != 0, 1.0, 0.4),
    "what it has just lost and a vector": lambda k, u, v, sent: v - sent + u,  # as error feedback does
}
"""The vector of round k, of a normal vector u, the vector before it, and what was sent of that."""
_ASKED: Mapping[str, Callable[[Vector, Vector], Vector]] = {
    "1 where it has just sent and 0.4 elsewhere": lambda u, sent: np.where(sent != 0, 1.0, 0.4),
    "the opposite of what it has just sent": lambda u, sent: -sent,
    "normal numbers": lambda u, sent: u[::-1],
    "small numbers": lambda u, sent: 1e-3 * u[::-1],
}


def after_rounds(link: Link) -> Iterator[Finding]:
    """δ, ω and variance of a compressor with a state, after rounds that are hard for a memory."""
    links = (_at(link.compressor, dim) for dim in _DIMS if link.compressor.has_state)
    for at, name in product([*islice(filter(None, links), 3)], _SEQUENCES):
        found = [*tried(f"rounds of {name}", partial(_after, at, name))]
        yield from found
        if not all(each.holds for each in found):
            return


def _at(c: Compressor, dim: int) -> Link | None:
    """The link of a compressor for vectors (dim,), if these go with it and it states something of them."""
    try:
        link = settled_at(c, dim)
    except (ValueError, TypeError):
        return None
    δ, others = c.delta(dim), (c.omega(dim), c.variance(dim))
    return None if (δ is None and others == (None, None)) or (δ or 0) > 1 else link


def _after(link: Link, name: str) -> Iterator[Finding]:
    u, state = np.random.default_rng(SEED).standard_normal(link.dim), link.start()
    v = sent = np.zeros(link.dim)
    for k in range(_LAST + 1):
        vector = _SEQUENCES[name](k, u, v, sent)
        if k in _ROUNDS:
            asked = {"the next one": vector, **{what: ask(u, sent) for what, ask in _ASKED.items()}}
            yield from _of_state(link, k, state, asked, name)
        try:
            v, sent = vector, link.unpack(Message(link.pack(vector, _round(k, 0, state)).data)).dense()
        except OverflowError:  # more than the codec's floats can hold
            return


def _of_state(link: Link, k: int, state: Any, vectors: Mapping[str, Vector], name: str) -> Iterator[Finding]:
    """What is found of a state. A random compressor, which a few draws show, takes many, and so has the first vectors alone."""
    few = _draws(link, vectors["normal numbers"], k, state, _FEW)
    random = bool((few != few[0]).any())
    if random and k < _LAST:
        return
    for what, v in [*vectors.items()][: 2 if random else None]:
        told = f"{_shown(v)} ({what}; after {k} rounds of {name})"
        found = [*stated(link.compressor, v, _draws(link, v, k, state, _MANY if random else 1), told)]
        if not (random or all(each.holds for each in found)):  # chance may have made that of one draw
            found = [*stated(link.compressor, v, _draws(link, v, k, state, _MANY), told)]
        yield from found


def _draws(link: Link, v: Vector, k: int, state: Any, count: int) -> Any:
    """Independent draws of C(v), (count, d), of a state, which stays as it is."""
    return np.array([link.compress(v, _round(k, seed, copy.deepcopy(state))).dense() for seed in range(1, count + 1)])


def _round(k: int, seed: int, state: Any) -> Round:
    return Round(k, _streams(seed), Role.WORKER, state=state)


@cache
def _streams(seed: int) -> Streams:
    return Streams(SEED + seed)


def _shown(v: Vector) -> str:
    """A vector's numbers, of many the first and the last."""
    numbers = [f"{x:.3g}" for x in v]
    return f"({', '.join(numbers if v.size <= 4 else [*numbers[:3], '…', numbers[-1]])})"
