"""LIBSVM text to CSR: megabytes a second of the kernel on one thread, of threads, and of scikit-learn.

Values are of few digits, as in published sets; or all 1; or of 17 digits, as Python writes them, which are left to Python's float.
"""

import io
import os
import tempfile
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from mpi_compress.problem.datasets import libsvm

from ._clock import side_by_side


def lines(digits: int, size: int, rng: np.random.Generator) -> bytes:
    """About `size` bytes: rows of 75 entries with d = 50,000, their values of so many digits."""
    out, total = [], 0
    while total < size:
        indices = np.unique(rng.integers(1, 50_000, 75))
        values = rng.random(indices.size) if digits else np.ones(indices.size)
        if digits < 17:
            values = np.round(values, digits)
        text = " ".join(["+1", *(f"{j}:{v!r}".removesuffix(".0") for j, v in zip(indices.tolist(), values.tolist(), strict=True))]) + "\n"
        out.append(text.encode())
        total += len(text)
    return b"".join(out)


def by_scikit_learn(text: bytes) -> Any:
    return load_svmlight_file(io.BytesIO(text), zero_based=False)


def in_threads(text: bytes, threads: int) -> float:
    """Megabytes a second of the whole reader, by the wall clock, on a plain file of many blocks."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "text"
        file.write_bytes(text)
        start = perf_counter()
        blocks = libsvm._in_threads(libsvm._blocks(file, 0, 1), partial(libsvm._parsed, path=file, dim=None), threads)
        for _ in blocks:
            pass
        return len(text) / 1e6 / (perf_counter() - start)


def main() -> None:
    rng = np.random.default_rng(0)
    print(f"{'values':>12s} {'ours':>8s} {'scikit-learn':>13s} {'ratio':>6s}   on one core, MB/s")
    for name, digits in (("all 1", 0), ("4 digits", 4), ("6 digits", 6), ("17 digits", 17)):
        text = lines(digits, 2 * 10**6, rng)
        block = libsvm.Block(0, text)
        took = side_by_side({
            "ours": partial(libsvm._parsed, block, Path("text"), None),
            "theirs": partial(by_scikit_learn, text),
        })  # fmt: skip
        ours, theirs = (len(text) / took[way] for way in ("ours", "theirs"))
        print(f"{name:>12s} {ours:8.0f} {theirs:13.1f} {ours / theirs:6.1f}")
    text = lines(4, 2 * 10**6, rng) * 50
    for threads in (1, 2)[: os.cpu_count() or 1]:
        print(f"{len(text) / 1e6:.0f} MB of a plain file, {threads} thread{'s' * (threads > 1)}: {in_threads(text, threads):.0f} MB/s by the wall clock")


if __name__ == "__main__":
    main()
