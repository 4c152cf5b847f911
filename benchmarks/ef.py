"""Error feedback beside plain NumPy loops that encode nothing, in the same process: rounds a second of processor time, medians of
alternating turns.

python -m benchmarks.ef [gisette] [madelon] [sparse]
"""

import math
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from mpi_compress.algorithms import Setting, algorithms
from mpi_compress.core.streams import Streams
from mpi_compress.engine import rounds as engine
from mpi_compress.engine.evaluation import Evaluator
from mpi_compress.engine.observer import Observer
from mpi_compress.exchange import Exchange
from mpi_compress.job.tables import Ending, Stop
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.costs import costs
from mpi_compress.messages.link import Link
from mpi_compress.problem.constants import largest_eigenvalue
from mpi_compress.problem.data_terms import data_term
from mpi_compress.problem.losses import losses
from mpi_compress.problem.objective import Objective, Shards
from mpi_compress.problem.optimum import minimize
from mpi_compress.problem.rows import Rows


class Stopwatch(Observer):
    """Notes the processor time, and what was sent, from round `warm` on."""

    warm = 0
    logs = True
    begun = sent = 0.0

    def look(self, k: int, *rest: Any) -> Ending:
        if k == self.warm:
            self.begun, self.sent = time.process_time(), self.counters.trace["elements_up"]
        return super().look(k, *rest)

    def _log(self, *arguments: Any) -> Ending:
        given = arguments[4:] or (Ending.GO_ON,)  # the verdict on the run so far
        return super()._log(*arguments) if self.logs else given[0]


def dense_rows(n: int, dim: int, dtype: Any, shards: int) -> list[Rows]:
    """Standard normal samples with random labels, dealt to workers."""
    rng = np.random.default_rng(0)
    values, labels = rng.standard_normal((n, dim), dtype=np.float32).astype(dtype), rng.choice([-1.0, 1.0], n)
    return dealt(Rows((values,), labels, dim), shards)


def dealt(whole: Rows, shards: int) -> list[Rows]:
    """Neighbouring shards."""
    return [whole.cut(i * len(whole) // shards, (i + 1) * len(whole) // shards) for i in range(shards)]


def sparse_rows(n: int, dim: int, nnz: int, shards: int) -> list[Rows]:
    """`nnz` random coordinates a row."""
    rng = np.random.default_rng(0)
    labels = rng.choice([-1.0, 1.0], n)
    indices = np.sort(rng.integers(dim // nnz, size=(n, nnz)) + np.arange(nnz) * (dim // nnz), axis=1).astype(np.uint32)
    values = rng.standard_normal((n, nnz)) / math.sqrt(nnz)
    indptr = np.arange(n + 1, dtype=np.uint64) * np.uint64(nnz)
    return dealt(Rows((indptr, indices.ravel(), values.ravel()), labels, dim), shards)


def ours(
    parts: list[Rows],
    algorithm: dict,
    up: dict,
    codec: dict,
    every: int,
    apart: bool = False,
    L: float = 1e3,
    start: Any = None,
    warm: int = 0,
    offset: Any = 1e-3,
    cost: Any = "payload",
) -> Callable:
    """Play some rounds of a run, everything encoded and decoded."""
    n, dim, N = len(parts), parts[0].dim, sum(len(p) for p in parts)
    mu = 1e-4 * L
    x_star = np.zeros(dim) if start is None else start
    link = Link(compressors.build(up, "up"), codecs.build(codec, "up"), dim)
    back = Link(compressors.build("identity", "down"), codecs.build({"name": "auto", "search": "quick"}, "down"), dim)
    numbers = {"L": L, "mu": mu, "n": float(n), "d": float(dim), "N": float(N), "kappa": 1e4}
    setting = Setting(n=n, dim=dim, up=link, down=back, cost=costs.build(cost, "cost"), numbers=numbers, mu_apart=mu if apart else 0.0, x_star=x_star)
    method = algorithms.build(algorithm, "algorithm").bind(setting)
    fs = Shards([data_term(p, losses["logistic"](), n / N, 0.0 if apart else mu) for p in parts])

    def play(rounds: int) -> float:
        stop = Stop(rounds=warm + rounds)
        evaluator = Evaluator(Exchange(n), fs, mu if apart else 0.0)
        observer = Stopwatch(evaluator, setting.cost, stop, N, every=every or 10**9)
        observer.warm, observer.logs = warm, bool(every)
        engine.run(method, Streams(0), x_star + offset, observer)
        play.elements = (observer.counters.trace["elements_up"] - observer.sent) / rounds / n  # type: ignore[attr-defined]
        return time.process_time() - observer.begun

    return play


def plain_ef(parts: list[Rows], k: int) -> Callable:
    """The same method in plain NumPy, nothing encoded."""
    n, dim, N = len(parts), parts[0].dim, sum(len(p) for p in parts)
    rng = np.random.default_rng(0)

    def play(rounds: int) -> float:
        x, e, step, mu = np.full(dim, 1e-3), np.zeros((n, dim)), 1e-3, 1e-4
        start = time.process_time()
        for _ in range(rounds):
            total = np.zeros(dim)
            for i, part in enumerate(parts):
                j = rng.integers(len(part))
                a, y = part.matrix[0][j], part.labels[j]
                p = e[i] + step * ((n * len(part) / N) * (-y / (1 + math.exp(y * (a @ x)))) * a + mu * x)
                keep = np.argpartition(np.abs(p), -k)[-k:]
                total[keep] += p[keep]
                p[keep] = 0.0
                e[i] = p
            x -= total / n
        return time.process_time() - start

    return play


def gradients_alone(parts: list[Rows], x: Any, mu: float, together: bool = False) -> Callable:
    """The full gradients of a round, at x, and nothing else: one by one, or by one call, as in a run."""
    N = sum(len(p) for p in parts)
    fs = Shards([data_term(p, losses["logistic"](), len(parts) / N, mu) for p in parts])

    def play(rounds: int) -> float:
        start = time.process_time()
        for _ in range(rounds):
            if together:
                fs.gradients(x)
            else:
                for f in fs:
                    f.gradient(x)
        return time.process_time() - start

    return play


def side_by_side(title: str, contenders: dict[str, Callable], rounds: int, turns: int = 5) -> None:
    """Alternate, and print the median rounds a second of each, and the ratio to the last."""
    for play in contenders.values():
        play(3)
    speeds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(turns):
        for name, play in contenders.items():
            speeds[name].append(rounds / play(rounds))
    last = list(contenders)[-1]
    print(title)
    for name, found in speeds.items():
        ratio = median(a / b for a, b in zip(found, speeds[last], strict=True))
        sent = getattr(contenders[name], "elements", math.nan)
        print(f"  {name:52s} {median(found):8.0f} rounds/s   {ratio:5.2f}   {sent:6.2f} elements a worker")


def gisette() -> None:
    parts = dense_rows(6000, 5000, np.float64, 20)
    ef = {"name": "ef", "batch": 1}
    side_by_side(
        "gisette's shape 6000×5000, 20 workers, batch 1",
        {
            "ef, top-10, encoded and decoded": ours(parts, ef, {"name": "top-k", "k": 10}, {"name": "fixed"}, 0),
            "ef, hard-threshold": ours(parts, ef, {"name": "hard-threshold", "threshold": 20.0}, {"name": "fixed"}, 0),
            "plain NumPy, top-10, nothing encoded": plain_ef(parts, 10),
        },
        400,
    )


def madelon() -> None:
    for dtype in (np.float64, np.float32):
        _madelon(dtype)


def _madelon(dtype: Any) -> None:
    normal = dense_rows(2000, 500, dtype, 1)[0]
    whole = Rows((np.round(480 + 40 * normal.matrix[0]).astype(dtype),), normal.labels, 500)
    parts = dealt(whole, 20)
    L = 0.25 * largest_eigenvalue(whole) / 2000
    start = minimize(Objective(whole, losses["logistic"](), 1 / 2000, 1e-4 * L)).x
    random = np.random.default_rng(5).standard_normal(500)

    def gdstar(off: float) -> Callable:
        hard = {"name": "hard-threshold", "accuracy": 5e-12}
        return ours(parts, {"name": "ef-gdstar"}, hard, {"name": "fixed"}, 500, L=L, start=start, warm=500, offset=off * random)

    def alone(together: bool) -> Callable:
        return gradients_alone(parts, start + 2e-7 * random, 1e-4 * L, together)

    side_by_side(
        f"madelon's shape 2000×500, 20 workers, full gradients, {np.dtype(dtype).name}, logged every 500 rounds",
        {
            "ef-gdstar, hard-threshold, near x* as most of HT-3": gdstar(2e-7),
            "the same, farther off, as HT-3's first 5000 rounds": gdstar(1e-6),
            "its 20 gradients alone, by one call": alone(True),
            "its 20 gradients alone, one by one": alone(False),
        },
        500,
        9,
    )


def sparse() -> None:
    """After rounds in which the system has handed out most of the pages that the errors lie on."""
    hard = {"name": "hard-threshold", "threshold": 1.0}
    for dim in (10**5, 10**6, 10**7):
        parts = sparse_rows(4000, dim, 80, 8)
        auto = {"name": "auto", "search": "quick"}
        side_by_side(
            f"80 nonzeros a row, d = {dim:.0e}, 8 workers, batch 1, regulariser at the master",
            {
                "ef, hard-threshold": ours(parts, {"name": "ef", "batch": 1}, hard, {"name": "fixed"}, 0, apart=True, warm=200),
                "sgd": ours(parts, {"name": "sgd", "batch": 1}, {"name": "identity"}, auto, 0, apart=True, warm=200),
            },
            300,
            3,
        )


def main(names: list[str] | None = None) -> None:
    for name, part in (("gisette", gisette), ("madelon", madelon), ("sparse", sparse)):
        if not names or name in names:
            part()


if __name__ == "__main__":
    main(sys.argv[1:])
