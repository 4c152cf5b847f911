"""Codecs: packing, index sets, small messages, and vectors of 10⁶ coordinates beside figures measured for grace's compressors."""

import numpy as np

from benchmarks._clock import seconds
from mpi_compress.codecs import Codec, codecs
from mpi_compress.compressed import Compressed, Lattice, Levels, Sparse, Ternary
from mpi_compress.compressors.top_k import TopK
from mpi_compress.kernels import bits, rice
from mpi_compress.streams import Round

D = 10**6
GRACE = {"top-k 1%": 8.2, "top-k 0.1%": 3.2, "TernGrad": 9.7, "QSGD": 10.0}  # ms, compress + decompress, nothing encoded


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
        pack = seconds(lambda: bits.pack_fields(fields, width, out, 0))  # noqa: B023
        unpack = seconds(lambda: bits.unpack_fields(out, 0, width, back))  # noqa: B023
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
    v = rng.normal(size=D).astype(np.float32).astype(np.float64)
    norm = float(np.linalg.norm(v))
    t = Round(0, rng, rng)
    signs = (np.sign(v) * (rng.random(D) < np.abs(v) / np.abs(v).max())).astype(np.int8)
    print(f"d = 10⁶, float32, ms\n{'':>12}{'codec':>13}{'encode':>8}{'decode':>8}{'restore':>8}{'all':>8}{'grace':>7}{'bits/d':>8}")
    rows: list[tuple[str, Compressed, tuple[str, ...], dict[str, object]]] = [
        ("top-k 1%", TopK("1%").compress(v, t), ("fixed", "rice", "entropy"), {}),
        ("top-k 0.1%", TopK("0.1%").compress(v, t), ("fixed", "rice", "entropy"), {}),
        ("TernGrad", Ternary(signs, 1.0), ("ternary", "entropy"), {}),
    ]
    for s in (64, 127, 1000):
        levels = (np.floor(np.abs(v) / norm * s + rng.random(D)) * np.sign(v)).astype(np.int32)
        name = "QSGD" if s == 64 else f"QSGD s={s}"
        rows.append((name, Levels(levels, np.array([norm / s]), D), ("elias-omega", "entropy"), {"bucket": D}))
    sigma = 1e-3 * norm
    points = Lattice(np.rint(v / (2 * sigma / np.sqrt(D))).astype(np.int64), sigma, norm)
    rows.append(("lattice", points, ("lattice",), {"sigma": sigma, "radius": norm}))
    out = np.zeros(D)
    for label, c, names, known in rows:
        restore = seconds(lambda: c.add_to(out))  # noqa: B023
        for name in names:
            write, read, size = both_ways(codecs[name](float=32), c, known)
            times = "".join(f"{x * 1e3:8.2f}" for x in (write, read, restore, write + read + restore))
            print(f"{label:>12}{name:>13}{times}{GRACE.get(label, ''):>7}{8 * size / D:8.3f}")
