"""One of each kind of message, and whether two are the same."""

from collections.abc import Callable, Iterator
from inspect import isabstract
from typing import Any

import numpy as np

from mpi_compress.core.registry import is_ours
from mpi_compress.messages import kinds
from mpi_compress.messages.kinds import Compressed, Dense, Lattice, Levels, Sparse, Ternary
from mpi_compress.messages.samples import Samples

OF_LINKS = (kinds.Each, kinds.Pair, Samples, kinds.Several, kinds.WithScalar, kinds.WithSize)  # no codec writes these


def _below(kind: type[Compressed]) -> Iterator[type[Compressed]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _below(each)


KINDS = tuple(
    kind for kind in _below(Compressed)
    if is_ours(kind) and "__dataclass_fields__" in vars(kind) and not isabstract(kind) and kind not in OF_LINKS
)  # fmt: skip


def index_set(rng: np.random.Generator, dim: int, count: int):
    return np.sort(rng.choice(dim, count, replace=False)).astype(np.uint32)


def lattice(v, sigma: float, radius: float, sent: bool = False, stochastic: bool = False) -> Lattice:
    """The lattice point nearest to v (d,)."""
    if sigma >= radius:
        return Lattice(np.zeros(v.size, dtype=np.int64), sigma, radius, sent, stochastic)
    return Lattice(np.rint(v / (2 * sigma / np.sqrt(v.size))).astype(np.int64), sigma, radius, sent, stochastic)


def known_of(c: Compressed) -> dict[str, Any]:
    """What both ends know beforehand."""
    if isinstance(c, Levels):
        return {"bucket": c.bucket}
    if isinstance(c, Lattice):
        return {"sigma": c.sigma, "radius": None if c.radius_sent else c.radius, "stochastic": c.stochastic}
    if isinstance(c, kinds.Blocks):
        return {"codec": c.codec, "blocks": tuple((part.dim, type(part), known_of(part)) for part in c.parts)}
    if isinstance(c, kinds.Chained):
        first, then = (type(c.placed), known_of(c.placed)), (type(c.values), lambda T: known_of(c.values))
        return {"codecs": c.codecs, "first": first, "then": then, "scale": lambda T: c.scale}
    if isinstance(c, kinds.Cyclic):
        return {"parts": c.parts, "copies": c.copies}
    if isinstance(c, kinds.Sketch):
        return {"rows": c.table.shape[0], "columns": c.table.shape[1]}
    if isinstance(c, kinds.Eigenpairs):
        return {"rank": c.values.size}
    if isinstance(c, kinds.Projections):
        return {"m": c.values.size}
    names = {kinds.Drawn: "kappa", kinds.Powers: "fraction", kinds.BlockSigns: "block", kinds.Dithered: "most", kinds.Permuted: "parts"}
    return {names[type(c)]: getattr(c, names[type(c)])} if type(c) in names else {}


def cut(values, digits: int):
    """Values without the binary digits beyond the first `digits`, that is, as floats of that precision."""
    fraction, exponent = np.frexp(values)
    return np.ldexp(np.trunc(np.ldexp(fraction, digits)), exponent - digits)


def messages(dim: int, rng: np.random.Generator, digits: int = 24) -> Iterator[Compressed]:
    """Messages of every kind: empty, full, usual and uneven ones; all values are floats of 32 bits, or of a lower precision."""
    short = lambda size: cut(rng.normal(size=size).astype(np.float32).astype(np.float64), digits)  # noqa: E731
    yield Dense(short(dim))
    sets = [index_set(rng, dim, T) for T in sorted({0, 1, min(dim, 3), dim // 10, dim // 2, dim})]
    sets.append(np.arange(dim - min(dim, 5), dim, dtype=np.uint32))
    for indices in sets:
        T = indices.size
        yield Sparse(dim, indices, short(T))
        yield kinds.SignSparse(dim, indices, rng.random(T) < 0.5, 1.5)
        own = rng.random(T) < 0.3
        yield kinds.Hybrid(dim, indices[own], short(own.sum()), indices[~own], rng.random(T - own.sum()) < 0.5, 0.25)
    for seed, kappa in ((0, 0.5), (2**64 - 1, 0.01), (12345, 1.0)):
        drawn = kinds.Drawn(dim, seed, kappa, np.empty(0))
        yield kinds.Drawn(dim, seed, kappa, short(drawn.indices.size))
    for spread in (0, 0.3, 2, 100, 2**24):
        levels = np.rint(rng.normal(size=dim) * spread).astype(np.int32)
        yield Levels(levels, short(1), dim)
        yield Levels(levels, short(-(-dim // 3)), 3)
    yield Levels(np.full(dim, -(2**31) + 1, dtype=np.int32), short(1), dim)
    yield Levels(rng.choice([-127, 0, 127], dim).astype(np.int8), short(1), dim)
    for signs in (rng.integers(-1, 2, dim), np.ones(dim), np.zeros(dim)):
        yield Ternary(signs.astype(np.int8), 3.0)
    for v in (rng.normal(size=dim), np.ones(dim), np.eye(1, dim, dim - 1)[0], rng.normal(size=dim) * (np.arange(dim) < dim / 9)):
        radius = float(cut(np.float32(np.linalg.norm(v) * 1.01), digits))
        for share in (1e-10, 1e-3, 0.3, 0.99, 1.0, 2.0):
            yield lattice(v, share * radius, radius, sent=True)
            yield lattice(v, share * radius, radius, stochastic=True)


    yield from later(dim, rng, short)


def later(dim: int, rng: np.random.Generator, short: Callable[[int], Any]) -> Iterator[Compressed]:
    """Messages of the kinds that came last, from draws after those of all others."""
    for fraction, spread in ((0, 1), (0, 300), (3, 40), (16, 2000)):
        integers = rng.integers(-spread, spread + 1, dim) << fraction
        integers[0] = spread
        yield kinds.Powers(integers.astype(np.int32), -40 if spread < 1000 else -1074, fraction)
    yield kinds.Powers(np.zeros(dim, dtype=np.int32), 0)
    yield kinds.Powers(np.zeros(dim, dtype=np.int32), 0, finite=False)
    for block in {1, 3, dim}:
        yield kinds.BlockSigns(rng.random(dim) < 0.5, short(-(-dim // block)), block)
    for most in (1, 2, 127, 128, 2**31 - 1):
        levels = rng.integers(-most, most + 1, dim)
        yield kinds.Dithered(levels.astype(np.int8 if most < 128 else np.int32), 0.25, most)
    for part, parts, seed in ((0, 1, 0), (2, 3, 77), (149, 150, 2**32 - 1)):
        yield kinds.Permuted(dim, seed, part, parts, short(kinds.permuted_indices(dim, seed, part, parts).size))
    for rows, columns in ((1, 1), (3, 4)):
        yield kinds.Sketch(dim, short(rows * columns).reshape(rows, columns), 9)
    half = dim // 2
    yield kinds.Blocks((Sparse(dim, np.array([dim - 1], dtype=np.uint32), short(1)),), "rice")
    if half:
        kept = np.arange(half, dtype=np.uint32)
        yield kinds.Blocks((Sparse(half, kept, short(half)), Sparse(dim - half, kept[:0], short(0))), "fixed")
        yield kinds.Blocks(tuple(Ternary(rng.integers(-1, 2, size).astype(np.int8), 2.0) for size in (half, dim - half)), "ternary")
    T = max(1, dim // 4)
    for codec in ("rice", "fixed"):
        values = Ternary(rng.integers(-1, 2, T).astype(np.int8), 2.0)
        yield kinds.Chained(Sparse(dim, index_set(rng, dim, T), np.zeros(T)), values, (codec, "ternary"), 0.5)
    yield kinds.Chained(Sparse(dim, np.empty(0, dtype=np.uint32), np.empty(0)), kinds.no_coordinates(0), ("fixed", "ternary"))
    for rank in {1, min(2, kinds.side_of(dim)), kinds.side_of(dim)}:
        yield kinds.Eigenpairs(dim, short(rank), short(rank * kinds.side_of(dim)).reshape(rank, kinds.side_of(dim)))
    for part, parts, copies, seed in ((0, 1, 1, 0), (2, 3, 2, 77), (149, 150, 4, 2**32 - 1)):
        yield kinds.Cyclic(dim, seed, part, parts, copies, short(kinds.cyclic_indices(dim, seed, part, parts, copies).size))
    yield kinds.Projections(dim, short(3), 2**32 - 1)


def same(a: Compressed, b: Compressed) -> bool:
    """Whether all fields are equal, to the last bit but for the sign of zeros."""
    if isinstance(a, kinds.Blocks) and isinstance(b, kinds.Blocks):
        return a.codec == b.codec and all(same(one, other) for one, other in zip(a.parts, b.parts, strict=True))
    if isinstance(a, kinds.Chained) and isinstance(b, kinds.Chained):
        return (a.codecs, a.scale) == (b.codecs, b.scale) and same(a.placed, b.placed) and same(a.values, b.values)
    return type(a) is type(b) and all(
        np.array_equal(value, getattr(b, name), equal_nan=isinstance(value, float) or np.asarray(value).dtype.kind == "f")
        for name, value in vars(a).items()
    )


def omega(n: int) -> str:
    """Elias' omega code, as he wrote it down."""
    code = "0"
    while n > 1:
        code = f"{n:b}" + code
        n = n.bit_length() - 1
    return code
