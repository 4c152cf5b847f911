"""What the machine allows: memory's bandwidth beside gradient passes, and copies and other libraries beside codecs.

*bandwidth*: a[j] = b[j] + c·e[j] over 96 MiB (STREAM's triad), on one core, and on two by two processes at once. *pass*: the fused
loss and gradient of a shard in each process; its bytes are those of the matrix, labels and x, each read once, and its share is of the
triad's bytes a second on as many cores. *codecs*: 10⁶ coordinates; ns a coordinate of the vector to encode and to decode. Libraries
that are not installed are left out: pip install constriction zstandard blosc2 pyfastpfor.
"""

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import Barrier, Process, Queue
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numba import njit

from benchmarks._clock import seconds
from benchmarks.codecs import both_ways
from benchmarks.losses import rows_of
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.kinds import Dense, Sparse
from mpi_compress.problem.losses import losses
from mpi_compress.problem.objective import Objective

D = 10**6
TURN, TURNS = 0.1, 9  # seconds, and how many of them
SETS: dict[str, dict[str, Any]] = {
    "a9a-like": {"name": "url-like", "samples": 32_561, "dim": 123, "nonzeros": 14.0},
    "rcv1-like": {"name": "rcv1-like", "samples": 40_000},
    "url-like": {"name": "url-like", "samples": 20_000},
    "dense": {"name": "gisette-like", "samples": 2000},
}


@njit(cache=False)
def triad(a: Any, b: Any, e: Any, c: float) -> None:
    for j in range(a.size):
        a[j] = b[j] + c * e[j]


def of_triad() -> tuple[Callable[[], object], int]:
    a, b, e = (np.full(2**22, 1.0) for _ in range(3))
    return lambda: triad(a, b, e, 0.5), 3 * a.nbytes


def of_pass(name: str, dtype: str) -> tuple[Callable[[], object], int]:
    rows = rows_of(**SETS[name])
    *structure, values = rows.matrix
    whole = type(rows)((*structure, values.astype(dtype)), rows.labels, rows.dim)
    f = Objective(whole, losses["logistic"](), 1.0 / len(whole), 0.0)
    x = np.random.default_rng(0).normal(size=whole.dim) * 1e-3

    return lambda: f.gradient(x), sum(part.nbytes for part in whole.matrix) + 8 * (len(whole) + 2 * x.size)


def _turns(make: Callable[..., Any], arguments: tuple[str, ...], together: Any, found: Any) -> None:
    work, size = make(*arguments)
    work()
    rates = []
    for _ in range(TURNS):
        together.wait()
        start, calls = perf_counter(), 0
        while (took := perf_counter() - start) < TURN:
            work()
            calls += 1
        rates.append(calls * size / took / 1e9)
    found.put(median(rates))


def gigabytes(make: Callable[..., Any], arguments: tuple[str, ...], cores: int) -> float:
    """GB/s of so many processes at once: the median of turns, added up."""
    together: Any = Barrier(cores)
    found: Any = Queue()
    workers = [Process(target=_turns, args=(make, arguments, together, found)) for _ in range(cores)]
    for worker in workers:
        worker.start()
    rates = [found.get() for _ in workers]
    for worker in workers:
        worker.join()
    return sum(rates)


def bandwidth() -> None:
    most = [gigabytes(of_triad, (), cores) for cores in (1, 2)]
    print("\n| pass | floats | one core, GB/s | share | two cores, GB/s | share |\n| --- | --- | ---: | ---: | ---: | ---: |")
    print(f"| triad | float64 | {most[0]:.1f} | 1.00 | {most[1]:.1f} | 1.00 |")
    for name in SETS:
        for dtype in ("float64", "float32"):
            one, two = (gigabytes(of_pass, (name, dtype), cores) for cores in (1, 2))
            print(f"| {name} | {dtype} | {one:.1f} | {one / most[0]:.2f} | {two:.1f} | {two / most[1]:.2f} |", flush=True)


def library(name: str) -> Any:
    return import_module(name) if find_spec(name) else None


def rivals(v: np.ndarray, indices: np.ndarray, levels: np.ndarray) -> Iterator[tuple[str, str, Callable[[], Any], Callable[[Any], Any]]]:
    """What else writes the same: what of, by what, how it is written, and read."""
    short = v.astype(np.float32)
    yield "10⁶ float32", "memcpy", lambda: short.copy(), lambda data: data.copy()
    arrays = {"10⁶ float32": short, "10⁴ indices": indices, "10⁶ levels": levels.astype(np.int16)}
    if zstandard := library("zstandard"):
        c, d = zstandard.ZstdCompressor(level=1), zstandard.ZstdDecompressor()
        for what, array in arrays.items():
            yield what, "zstandard, level 1", partial(c.compress, array.tobytes()), d.decompress
    if blosc2 := library("blosc2"):
        for what, array in arrays.items():
            write = partial(blosc2.compress, array.tobytes(), array.itemsize, 5, blosc2.Filter.BITSHUFFLE)
            yield what, "blosc2, bit shuffle", write, blosc2.decompress
    if pyfastpfor := library("pyfastpfor"):
        codec, gaps = pyfastpfor.getCodec("simdfastpfor128"), np.diff(indices, prepend=np.uint32(0)).astype(np.uint32)
        out, back = np.zeros(2 * gaps.size + 1024, np.uint32), np.zeros(gaps.size + 1024, np.uint32)

        def read(data: np.ndarray) -> Any:
            return np.cumsum(back[: codec.decodeArray(data, data.size, back, back.size)])

        yield "10⁴ indices", "pyfastpfor, of gaps", lambda: out[: codec.encodeArray(gaps, gaps.size, out, out.size)].copy(), read
    if constriction := library("constriction"):
        symbols = (levels - levels.min()).astype(np.int32)
        shares = np.bincount(symbols) / symbols.size
        model = constriction.stream.model.Categorical(shares, perfect=False)

        def encoded() -> Any:
            coder = constriction.stream.queue.RangeEncoder()
            coder.encode(symbols, model)
            return coder.get_compressed()

        yield "10⁶ levels", "constriction, shares known", encoded, lambda data: constriction.stream.queue.RangeDecoder(data).decode(model, D)


def of_codecs() -> None:
    v = np.random.default_rng(0).normal(size=D)
    t = Round(0, Streams(0), Role.WORKER)
    top, quantised = (compressors.build(spec, "").compress(v, t) for spec in ({"name": "top-k", "k": "1%"}, {"name": "qsgd", "levels": 64}))
    whole, levels = Dense(v), np.rint(quantised.dense() / np.abs(quantised.dense()[quantised.dense() != 0]).min()).astype(np.int64)
    assert isinstance(top, Sparse)
    sent = top.indices
    print("\n| what | by | bits a coordinate | encode, ns | decode, ns |\n| --- | --- | ---: | ---: | ---: |")
    for what, c, names, less in (
        ("10⁶ float32", whole, ("dense",), 0),
        ("10⁴ indices", top, ("fixed", "rice", "entropy"), 32 * sent.size),
        ("10⁶ levels", quantised, ("elias-omega", "entropy"), 0),
    ):
        for name in names:
            codec = codecs[name](float=32)
            write, read, size = both_ways(codec, c, {})
            kept = " and their float32" * bool(less)
            print(f"| {what}{kept} | {name} | {(8 * size) / D:.3f} | {1e9 * write / D:.3f} | {1e9 * read / D:.3f} |", flush=True)
    for what, by, encode, decode in rivals(v, sent, levels):
        data = encode()
        size = data.nbytes if isinstance(data, np.ndarray) else len(data)
        took = seconds(encode), seconds(lambda: decode(data))  # noqa: B023
        print(f"| {what} | {by} | {8 * size / D:.3f} | {1e9 * took[0] / D:.3f} | {1e9 * took[1] / D:.3f} |", flush=True)


def main() -> None:
    bandwidth()
    of_codecs()


if __name__ == "__main__":
    main()
