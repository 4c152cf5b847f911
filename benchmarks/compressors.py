"""Compressors against one read of the vector, and selection against np.argpartition.

One thread, after warm-up, times in microseconds of processor time, medians of calls made in turn.
"""

from functools import partial
from typing import Any

import numpy as np

from benchmarks._clock import side_by_side
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.kernels import select
from mpi_compress.messages.compressors import compressors

DIMENSIONS = (5_000, 47_236, 1_000_000, 3_200_000)
COMPRESSORS: list[dict[str, Any]] = [
    {"name": "top-k", "k": 10},
    {"name": "top-k", "k": "0.1%"},
    {"name": "top-k", "k": "1%"},
    {"name": "random-k", "k": "1%"},
    {"name": "sq", "k": "1%"},
    {"name": "stochastic", "k": "1%"},
    {"name": "gspar", "kappa": 0.01},
    {"name": "gspar", "epsilon": 1.0},
    {"name": "unisp", "kappa": 0.01},
    {"name": "qsgd", "levels": 4},
    {"name": "qsgd", "levels": 4, "norm": "max", "bucket": 512},
    {"name": "terngrad"},
    {"name": "lq", "q": 2.0},
    {"name": "rounding", "step": 0.01},
    {"name": "lattice", "sigma": 1.0},
    {"name": "lattice", "sigma": 1.0, "stochastic": True},
]


_ROUND = Round(0, Streams(0), Role.WORKER)


def read(v):
    """One read of the vector: NumPy's sum, in vector registers."""
    return v.sum()


def vectors(d):
    rng = np.random.default_rng(0)
    return {
        "random": rng.standard_normal(d),
        "heavy-tailed": rng.standard_cauchy(d) ** 3,
        "tied": rng.integers(-3, 4, d) * 1.0,
        "constant": np.full(d, -1.5),
        "rising": np.sort(rng.random(d)),
    }


def plain_largest(v, k):
    """The indices (k,) of the k largest |v_j|, in any order."""
    return np.argpartition(np.abs(v), v.size - k)[v.size - k :]


def selection():
    """top-k, ties settled, against np.argpartition on |v|, which leaves them to chance.  Wanted: at most 1.2."""
    print(f"\n{selection.__doc__}\n{'d':>9} {'k':>7}  {'vector':<13}{'top-k':>10}{'argpartition':>14}{'ratio':>7}")
    for d in DIMENSIONS:
        for name, v in vectors(d).items():
            for k in (10, d // 100, d // 10):
                t = side_by_side({"ours": partial(select.largest, v[None], k), "numpy": partial(plain_largest, v, k)})
                print(f"{d:>9,} {k:>7,}  {name:<13}{t['ours']:>10.1f}{t['numpy']:>14.1f}{t['ours'] / t['numpy']:>7.2f}")


def thresholds():
    """hard-threshold against one read of the vector.  Wanted: at most 2."""
    print(f"\n{thresholds.__doc__}\n{'d':>9} {'kept':>7}{'threshold':>12}{'read':>9}{'ratio':>7}")
    for d in DIMENSIONS:
        v = np.random.default_rng(0).standard_normal(d)
        for share in (0.0001, 0.001, 0.01, 0.1):
            spec = {"name": "hard-threshold", "threshold": float(np.quantile(np.abs(v), 1 - share))}
            t = side_by_side({"ours": partial(compressors.build(spec, "benchmark").compress, v, _ROUND), "read": partial(read, v)})
            print(f"{d:>9,} {share:>7.2%}{t['ours']:>12.1f}{t['read']:>9.1f}{t['ours'] / t['read']:>7.2f}")


def all_compressors():
    """Every compressor on a random and a heavy-tailed vector."""
    print(f"\n{all_compressors.__doc__}\n{'d':>9}  {'compressor':<58}{'random':>10}{'heavy':>10}{'reads':>7}")
    for d in (5_000, 1_000_000):
        v, w = (vectors(d)[name] for name in ("random", "heavy-tailed"))
        for spec in COMPRESSORS:
            C = compressors.build(spec, "benchmark")
            if spec["name"] == "rounding":
                w = v  # a fixed grid does not reach as far as the heavy tails
            times = side_by_side(
                {"v": partial(C.compress, v, _ROUND), "w": partial(C.compress, w, _ROUND), "read": partial(read, v)}
            )
            shown = ", ".join(f"{k} = {x}" if k != "name" else str(x) for k, x in spec.items())
            print(f"{d:>9,}  {shown:<58}{times['v']:>10.1f}{times['w']:>10.1f}{times['v'] / times['read']:>7.1f}")


def main() -> None:
    selection()
    thresholds()
    all_compressors()
