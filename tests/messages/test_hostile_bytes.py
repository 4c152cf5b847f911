"""Bytes that nobody wrote: an error or a well-formed vector, whatever they are, and in bounded time and memory."""

import time
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
from helpers.kinds import KINDS, known_of, messages

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.fields import ROOM, Reader
from mpi_compress.messages.kinds import Blocks, Compressed, Dense, Drawn, Hybrid, Lattice, Levels, SignSparse, Sparse, Ternary

CASES = [(name, kind) for name in sorted(codecs) for kind in KINDS if codecs[name]().writes(kind)]


def check_well_formed(c: Compressed, dim: int, kind: type[Compressed], name: str) -> None:
    assert type(c) is kind or (name == "auto" and {kind, type(c)} == {Sparse, Dense})
    assert c.dim == dim
    sets = [getattr(c, field) for field in ("indices", "sign_indices") if hasattr(c, field)]
    for indices in sets:
        assert indices.dtype == np.uint32
        assert np.all(np.diff(indices.astype(np.int64)) > 0)
        assert np.all(indices < dim)
    if isinstance(c, Hybrid):
        assert np.intersect1d(*sets).size == 0
        assert c.values.size == c.indices.size
        assert c.negative.size == c.sign_indices.size
    elif isinstance(c, Sparse | Drawn):
        assert c.values.size == c.indices.size
    elif isinstance(c, SignSparse):
        assert c.negative.size == c.indices.size
    elif isinstance(c, Ternary):
        assert np.all(np.abs(c.signs) <= 1)
    elif isinstance(c, Levels):
        assert c.scales.size == -(-dim // c.bucket)
    elif isinstance(c, Lattice):
        assert c.integers.dtype == np.int64


def damaged(message, rng):
    """A message truncated, extended, with bits flipped, with bytes replaced, or random bytes instead."""
    how = rng.integers(6)
    if how == 0:
        return message[: rng.integers(0, message.size + 1)].copy()
    if how == 1:
        return np.concatenate([message, rng.integers(0, 256, rng.integers(1, 20), dtype=np.uint8)])
    if how == 2:
        data = message.copy()
        for _ in range(rng.integers(1, 4)):
            data[rng.integers(data.size)] ^= np.uint8(1 << rng.integers(8))
        return data
    if how == 3:
        data = message.copy()
        start = rng.integers(data.size)
        data[start : start + rng.integers(1, 9)] = rng.choice([0, 255, rng.integers(256)])
        return data
    if how == 4:
        data = rng.integers(0, 256, rng.integers(0, 80), dtype=np.uint8)
        data[:1] = rng.integers(0, 10, data[:1].size)  # forms, counts
        return data
    return rng.integers(0, 256, rng.integers(0, 80), dtype=np.uint8)


def attack(times: int, seed: int) -> int:
    """Decode damaged messages of every codec and kind. Returns how many were taken for messages."""
    rng = np.random.default_rng(seed)
    prey = [
        (codec, c, codec.encode(c), known_of(c))
        for dim in (1, 9, 70, 500)
        for c in messages(dim, rng)
        for codec in (codecs[name](float=bits) for name in codecs for bits in (16, "bf16", 32, 64))
        if codec.writes(type(c))
    ]
    taken = 0
    for i in rng.integers(len(prey), size=times):
        codec, c, message, known = prey[i]
        data = damaged(message, rng)
        try:
            got, end = codec.decode(data, 0, c.dim, type(c), known)
        except CorruptMessage:
            continue
        taken += 1
        assert 0 < end <= data.size
        check_well_formed(got, c.dim, type(c), codec.name)
        with np.errstate(all="ignore"):
            assert got.dense().shape == (c.dim,)
    return taken


def test_damaged_messages_raise_or_give_a_well_formed_vector():
    assert attack(6000, seed=0) > 100


def test_a_damaged_message_between_others_raises_or_gives_well_formed_rows():
    rng = np.random.default_rng(5)
    prey = [
        (codec, c, codec.encode(c), known_of(c))
        for dim in (1, 70)
        for c in messages(dim, rng)
        for codec in (codecs[name](float=bits) for name in codecs for bits in (16, 64))
        if codec.writes(type(c))
    ]
    taken = 0
    for i in rng.integers(len(prey), size=3000):
        codec, c, message, known = prey[i]
        each = [message, damaged(message, rng), message]
        ends = np.cumsum([data.size for data in each])
        data = np.concatenate([*each, np.zeros(ROOM, dtype=np.uint8)])
        r = Reader(data, ends - np.diff(ends, prepend=0), codec.float_format, ends)
        try:
            rows = codec.read(r, c.dim, type(c), known)
        except CorruptMessage:
            continue
        taken += 1
        assert np.all(r.at <= ends)
        for row in range(3):
            check_well_formed(rows[row], c.dim, type(c), codec.name)
    assert taken > 50


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_million_damaged_messages_raise_or_give_a_well_formed_vector(seed):
    attack(100_000, seed)


@pytest.mark.parametrize(("name", "kind"), CASES)
@pytest.mark.parametrize("bits", [16, "bf16", 64])
def test_every_truncation_is_noticed(name, kind, bits):
    """A message is its own end: what is cut off it, even one byte, is missed."""
    codec = codecs[name](float=bits)
    for c in messages(40, np.random.default_rng(1)):
        if type(c) is kind:
            message = codec.encode(c)
            for size in range(message.size):
                with pytest.raises(CorruptMessage):
                    codec.decode(message[:size].copy(), 0, c.dim, kind, known_of(c))


@pytest.mark.parametrize(("name", "kind"), CASES)
@pytest.mark.parametrize("byte", [1, 2, 3, 128, 255])
def test_the_length_of_a_message_bounds_the_work_whatever_dimension_is_asked_for(name, kind, byte):
    """40 bytes cannot be a message of 2²⁸ numbers, unless it has few coordinates or says that all are zero."""
    dim = 2**28
    c = next(c for c in messages(50, np.random.default_rng(2)) if type(c) is kind)
    known = known_of(c) | ({"bucket": dim} if kind is Levels else {})
    if kind is Blocks:
        known["blocks"] = ((dim, *known["blocks"][0][1:]),)
    codec, data = codecs[name](), np.full(40, byte, dtype=np.uint8)
    for count in (byte, dim - 1, dim // 2):  # where a count stands first
        data[:5] = [count >> 7 * i & 127 | 128 * (i < 4) for i in range(5)]
        for _ in range(2):  # kernels are compiled at first
            begun, most = time.thread_time(), 1
            with suppress(CorruptMessage):
                codec.decode(data, 0, dim, kind, known)
                most = 5  # all are zero, and 1 GB of zeros is written
            if time.thread_time() - begun < most:
                break
        else:
            pytest.fail(f"more than {most} s")


@pytest.mark.parametrize(("name", "kind"), CASES)
@pytest.mark.parametrize("byte", [0, 1, 127, 128, 255])
def test_no_more_memory_is_taken_than_the_dimension_allows(name, kind, byte):
    dim = 20_000
    c = next(c for c in messages(50, np.random.default_rng(2)) if type(c) is kind)
    known = known_of(c) | ({"bucket": dim} if kind is Levels else {})
    codec = codecs[name]()
    first = {codec.encode(m)[0] for m in messages(50, np.random.default_rng(2)) if type(m) is kind}
    for head in sorted(first):
        data = np.full(300, byte, dtype=np.uint8)
        data[0] = head
        tracemalloc.start()
        try:
            codec.decode(data, 0, dim, kind, known)
        except CorruptMessage:
            pass
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < 40 * dim + 2**20
