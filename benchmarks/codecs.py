"""Codecs: packing, index sets, small messages, and vectors of 10⁶ coordinates beside plain NumPy that encodes nothing."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._clock import seconds, side_by_side
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.kernels import bits, rice
from mpi_compress.messages.codecs import Codec, codecs
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.kinds import Compressed, Sparse
from mpi_compress.messages.link import Link

D = 10**6


def main() -> None:
    rng = np.random.default_rng(0)
    packing(rng)
    index_sets(rng)
    small_messages(rng)
    large_vectors(rng)


def packing(rng: np.random.Generator) -> None:
    print("fields of one width, 10⁶ of them: million/s")
    print(f"{'bits':>6}{'pack':>8}{'unpack':>8}   wanted")
    for width in (7, 8, 13, 16, 20, 24, 32):
        fields = rng.integers(0, 2**width, D, dtype=np.uint64).astype(np.uint32)
        out, back = np.empty(D * width // 8, dtype=np.uint8), np.empty_like(fields)
        pack = seconds(lambda: bits.write_fields(fields, width, out))  # noqa: B023
        unpack = seconds(lambda: bits.read_fields(out, 0, width, 2**width, back))  # noqa: B023
        print(f"{width:6}{D / pack / 1e6:8.0f}{D / unpack / 1e6:8.0f}   {60 if width % 8 else 200}")


def index_sets(rng: np.random.Generator) -> None:
    T = 10**5
    indices = np.sort(rng.choice(D, T, replace=False)).astype(np.uint32)
    k, nbits = rice.best_parameter(indices)
    out, back = np.empty((nbits + 7) // 8, dtype=np.uint8), np.empty_like(indices)
    write = seconds(lambda: (rice.best_parameter(indices), rice.write_set(indices, np.uint64(k), out)))
    read = seconds(lambda: rice.read_set(out, 0, np.uint64(k), D, back))
    print(f"Rice, T = 10⁵ of 10⁶: write {T / write / 1e6:.0f}, read {T / read / 1e6:.0f} million indices/s; wanted 30")


def both_ways(codec: Codec, c: Compressed, known: dict[str, object]) -> tuple[float, float, int]:
    message = codec.encode(c)
    write = seconds(lambda: codec.encode(c))
    read = seconds(lambda: codec.decode(message, 0, c.dim, type(c), known))
    return write, read, message.size


def small_messages(rng: np.random.Generator) -> None:
    d, T = 5000, 10
    c = Sparse(d, np.sort(rng.choice(d, T, replace=False)).astype(np.uint32), rng.normal(size=T))
    print(f"top-{T} of d = {d}, µs\n{'codec':>12}{'encode':>8}{'decode':>8}{'both':>8}{'bytes':>8}   wanted 8 (fixed)")
    for name in ("fixed", "rice", "elias-delta", "elias-omega", "entropy", "bitmap", "auto"):
        write, read, size = both_ways(codecs[name](), c, {})
        print(f"{name:>12}{write * 1e6:8.1f}{read * 1e6:8.1f}{(write + read) * 1e6:8.1f}{size:8}")


def large_vectors(rng: np.random.Generator) -> None:
    """d = 10⁶, ms: compress, encode, decode and restore, beside as much in plain NumPy on float32, where nothing is encoded."""
    short = rng.normal(size=D).astype(np.float32)
    v, out = short.astype(np.float64), np.zeros(D)
    t = Round(0, Streams(0), Role.WORKER)
    print(
        f"{large_vectors.__doc__}\n{'':>30}{'codec':>13}{'compress':>10}{'code':>8}{'all':>8}{'numpy':>8}{'ratio':>7}{'bits/d':>8}"
    )
    for spec, names, plain in ROWS:
        compressor = compressors.build(spec, "benchmark")
        for name in names:
            link = Link(compressor, codecs[name](float=32), D)
            made = compressor.compress(v, t)
            ways: dict[str, Callable[[], object]] = {
                "compress": lambda: compressor.compress(v, t),  # noqa: B023
                "code": lambda: link.unpack(link.encode(made)),  # noqa: B023
                "all": lambda: link.unpack(link.pack(v, t)).add_to(out),  # noqa: B023
            }
            if plain:
                ways["numpy"] = partial(plain, short, rng)
            took = {way: us / 1e3 for way, us in side_by_side(ways, lasting=2.0).items()}
            beside = f"{took['numpy']:8.2f}{took['all'] / took['numpy']:7.2f}" if plain else f"{'':15}"
            shown = ", ".join(f"{k} = {x}" if k != "name" else str(x) for k, x in spec.items())
            size = 8 * link.codec.encode(made).size / D
            print(f"{shown:>30}{name:>13}{took['compress']:10.2f}{took['code']:8.2f}{took['all']:8.2f}{beside}{size:8.3f}")


def plain_top(k: int, v: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
    """The k largest magnitudes, and the vector that they make."""
    keep = np.argpartition(np.abs(v), v.size - k)[v.size - k :]
    values, out = v[keep], np.zeros_like(v)
    out[keep] = values
    return out


def plain_levels(s: int, v: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
    """QSGD's integers by a uniform number each, and the vector that they make."""
    norm = np.float32(np.linalg.norm(v))
    exact = np.abs(v) * (s / norm)
    below = np.floor(exact)
    levels = below + (rng.random(v.size, dtype=np.float32) < exact - below)
    short: type[np.integer] = np.int16 if s > 127 else np.int8
    sent = (levels * np.sign(v)).astype(short)
    return sent * (norm / s)


def plain_ternary(v: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
    """TernGrad's signs by a uniform number each, and the vector that they make."""
    sizes = np.abs(v)
    peak = sizes.max()
    sent = (np.sign(v) * (rng.random(v.size, dtype=np.float32) * peak < sizes)).astype(np.int8)
    return sent * peak


ROWS: list[tuple[dict[str, Any], tuple[str, ...], Callable | None]] = [
    ({"name": "top-k", "k": "1%"}, ("fixed", "rice", "entropy"), partial(plain_top, D // 100)),
    ({"name": "top-k", "k": "0.1%"}, ("fixed", "rice", "entropy"), partial(plain_top, D // 1000)),
    ({"name": "terngrad"}, ("ternary", "entropy"), plain_ternary),
    *(({"name": "qsgd", "levels": s}, ("elias-omega", "entropy"), partial(plain_levels, s)) for s in (64, 127, 1000)),
    ({"name": "lattice", "sigma": 1.0}, ("lattice",), None),
]
