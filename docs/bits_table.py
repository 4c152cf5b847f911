"""Bits of every compressor by every codec on the same ten vectors: python docs/bits_table.py > docs/bits.csv

The vectors are gradients of the logistic loss on news20 and madelon at x = 0 and after 100 rounds of gradient descent, where
MPI_COMPRESS_DATA names a folder with these sets, and synthetic ones.
"""

import csv
import sys
from collections.abc import Iterator
from math import lgamma, log, log2

import numpy as np
from numpy.typing import NDArray

import mpi_compress as mc
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.messages.kinds import (
    Blocks,
    BlockSigns,
    Dense,
    Dithered,
    Hybrid,
    Lattice,
    Levels,
    Permuted,
    Powers,
    SignSparse,
    Sketch,
    Sparse,
    Ternary,
)
from mpi_compress.messages.link import Link
from mpi_compress.problem.constants import gram_eigenvalues
from mpi_compress.problem.datasets.store import open_data
from mpi_compress.problem.datasets.table import DataTable
from mpi_compress.problem.losses import losses
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.partitions import Split

COMPRESSORS = [
    {"name": "top-k", "k": "0.2%"}, {"name": "random-k", "k": "0.2%"}, {"name": "hard-threshold", "like_k": 20}, {"name": "sq", "k": "0.2%"},
    {"name": "stochastic", "k": "0.2%"}, {"name": "gspar", "epsilon": 1.0}, {"name": "gspar", "kappa": 0.01}, {"name": "unisp", "kappa": 0.01},
    {"name": "qsgd", "levels": 1}, {"name": "qsgd", "levels": 4, "bucket": 512}, {"name": "terngrad"}, {"name": "lq", "q": 2.0},
    {"name": "lattice", "sigma": 1.0}, {"name": "lattice", "sigma": 0.01},
    {"name": "natural"}, {"name": "dithering", "levels": 4}, {"name": "block-sign", "block": 512}, {"name": "perm-k", "n": 20},
    {"name": "count-sketch", "columns": "0.2%"}, {"name": "blocks", "of": {"name": "top-k", "k": "0.2%"}, "slices": 4},
]  # fmt: skip


def vectors() -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Ten vectors (six, if the real sets are not installed), each scaled to unit norm."""
    for name, table in (
        ("news20", DataTable(name="news20", positive=[float(c) for c in range(1, 11)], normalize="rows")),
        ("madelon", DataTable(name="madelon")),
    ):
        try:
            yield from gradients(name, table)
        except mc.UserError as error:
            print(f"left out: {error}", file=sys.stderr)
    rng = np.random.default_rng(0)
    d = 10_000
    yield "normal", rng.standard_normal(d)
    yield "Cauchy", rng.standard_cauchy(d)
    yield "Zipf", rng.standard_normal(d) / np.arange(1, d + 1)
    yield "constant", np.ones(d)
    yield "1% nonzero", np.where(rng.random(d) < 0.01, rng.standard_normal(d), 0.0)
    yield "one spike", np.r_[1000.0, np.ones(d - 1)]


def gradients(name: str, table: DataTable) -> Iterator[tuple[str, NDArray[np.float64]]]:
    from pathlib import Path

    data = open_data(table, Path(), Split(), "sign")
    loss = losses["logistic"]()
    step = 1 / (loss.curvature / data.n_samples * gram_eigenvalues(data)[0])
    f = Objective(data.read(0, data.n_samples), loss, 1 / data.n_samples, 0.0)
    x = np.zeros(data.dim)
    for k in range(101):
        g = f.gradient(x).copy()
        if k in (0, 100):
            yield f"{name}, round {k}", g
        x -= step * g


def entropy(symbols: NDArray) -> float:
    """Bits of independent draws from the symbols' own frequencies."""
    _, counts = np.unique(symbols, return_counts=True)
    return float(np.sum(counts * np.log2(symbols.size / counts)))


def of_sets(dim: int, *sizes: int) -> float:
    """log2 of the number of such index sets, disjoint where there are several."""
    free, bits = dim, 0.0
    for size in sizes:
        bits += (lgamma(free + 1) - lgamma(size + 1) - lgamma(free - size + 1)) / log(2)
        free -= size
    return bits


def bound(c: mc.Compressed) -> float:
    """The bits of a message of its kind, if sets are uniform, signs even, and integers independent; floats take 64 bits."""
    match c:
        case Dense():
            return 64.0 * c.dim
        case Sparse():
            return of_sets(c.dim, c.elements) + 64 * c.elements
        case SignSparse():
            return of_sets(c.dim, c.elements) + c.elements + 64
        case Hybrid():
            return of_sets(c.dim, c.indices.size, c.sign_indices.size) + 64 * c.indices.size + c.sign_indices.size + 64
        case Levels():
            return entropy(c.levels) + 64 * c.scales.size
        case Ternary():
            return entropy(c.signs) + 64
        case Lattice():
            return c.dim * max(0.0, log2(c.radius / c.sigma)) if c.sigma > 0 and c.radius > 0 else 0.0
        case Powers():
            return entropy(c.integers)
        case Dithered():
            return entropy(c.levels) + 64
        case BlockSigns():
            return c.dim + 64.0 * c.scales.size
        case Permuted() | Sketch():
            return 64.0 * c.elements
        case Blocks():
            return sum(bound(part) for part in c.parts)
    return float("nan")


def main() -> None:
    names = list(mc.codecs.codecs)
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["vector", "d", "compressor", "sent", "paper", "bound", *names])
    for title, v in vectors():
        v = v / np.linalg.norm(v)
        for spec in COMPRESSORS:
            compressor = mc.compressors.compressors.build(spec, "")
            c = compressor.compress(v, Round(0, Streams(0), Role.WORKER))
            cells: list[object] = []
            for name in names:
                codec = mc.codecs.codecs[name]()
                if not codec.writes(compressor.makes):
                    cells.append("")
                    continue
                message = Link(compressor, codec, v.size).encode(c)
                message.content = None
                restored = Link(compressor, codec, v.size).unpack(message)
                assert np.allclose(restored.dense(), c.dense(), rtol=1e-12, atol=0), (spec, name)
                cells.append(message.wire_bits)
            given = ", ".join(f"{k} = {x}" for k, x in spec.items() if k != "name")
            counted = c.elements, f"{c.paper_bits(64):.0f}", f"{bound(c):.0f}"
            out.writerow([title, v.size, f"{spec['name']} {given}".strip(), *counted, *cells])


if __name__ == "__main__":
    main()
