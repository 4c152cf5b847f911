"""CAT: its search beside the gradient that it tunes, and whole runs beside gradient descent and Alistarh's rule.

Data of the shape of rcv1 (200,000 rows on one worker, d = 47,236) and of url (240,000 rows, d = 3,231,961).

python -m benchmarks.cat [rcv1] [url]
"""

import sys
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks._clock import side_by_side
from benchmarks.ef import ours
from benchmarks.ef import side_by_side as alternate
from mpi_compress.algorithms.tuning.schemes import SCHEMES
from mpi_compress.algorithms.tuning.search import BudgetSearch
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.costs import costs
from mpi_compress.messages.link import Link
from mpi_compress.problem.constants import largest_eigenvalue
from mpi_compress.problem.datasets import generators
from mpi_compress.problem.losses import losses
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.rows import Rows

SETS = {"rcv1": ("rcv1-like", 200_000, 40), "url": ("url-like", 240_000, 12)}  # generator, rows, rounds of a turn
COSTS = {
    "payload": {"name": "payload"},
    "affine": {"name": "affine", "c0": 2.5e-3, "c1": 1e-9},
    "packet": {"name": "packet", "c1": "128 B", "c0": "64 B", "pmax": "128 B"},
    "wire": {"name": "wire"},
}
ITERATES = 6


def rows_of(generator: str, samples: int) -> Rows:
    parts = list(generators[generator](samples=samples).chunks())  # type: ignore[call-arg]
    a = sp.vstack([part for part, _ in parts], format="csr")
    matrix = (a.indptr.astype(np.uint64), a.indices.astype(np.uint32), a.data)
    return Rows(matrix, np.concatenate([labels for _, labels in parts]), a.shape[1])


def gradients_of(f: Objective, L: float) -> list[np.ndarray]:
    """Those of some consecutive rounds of gradient descent, after the first ones."""
    x, found = np.zeros(f.dim), []
    for _ in range(4 + ITERATES):
        g = f.gradient(x)
        found.append(g.copy())
        x -= g / L
    return found[4:]


def search(name: str, f: Objective, L: float) -> None:
    """Microseconds of the search, each round with the hint of the round before, over those of the gradient.  Wanted: at most 3 %."""
    gs = gradients_of(f, L)
    x = np.full(f.dim, 1e-3)

    def gradient() -> None:
        f.gradient(x)

    print(f"{name}: {search.__doc__}")
    for compressor in ("top-k", "sq", "stochastic"):
        link = Link(compressors.build(compressor, "up"), codecs.build({"name": "fixed", "float": 32}, "up"), f.dim)
        scheme = SCHEMES[compressor](link, costs.build("payload", "cost"), n=2)
        ways = {}
        for cost, spec in COSTS.items():
            finder = BudgetSearch(scheme.improvement, partial(scheme.costs, costs.build(spec, "cost")), f.dim)
            state: dict[str, Any] = {"hints": np.array([np.inf]), "at": 0}

            def best(finder: BudgetSearch = finder, state: dict = state) -> None:
                state["at"] = (state["at"] + 1) % ITERATES
                top, state["hints"] = finder.best(gs[state["at"]][None], state["hints"])
                state["T"] = top.elements[0]

            ways[cost] = (best, state)
        took = side_by_side({**{cost: way for cost, (way, _) in ways.items()}, "gradient": gradient}, lasting=2.0)
        for cost, (_, state) in ways.items():
            share = took[cost] / took["gradient"]
            print(f"  {compressor:12s}{cost:10s}{took[cost]:10.0f}{took['gradient']:12.0f}{share:9.2%}   T = {state['T']}")


def whole_runs(name: str, rows: Rows, L: float, rounds: int) -> None:
    """Rounds a second, everything encoded and decoded. CAT's time over the others' is to be at most 1.05, its ratio at least 0.95."""
    print(whole_runs.__doc__)
    sq, link = {"name": "sq"}, {"name": "fixed", "float": 32}
    for cost in ("packet", "affine"):
        play = partial(ours, [rows], every=0, L=L, offset=0.0, warm=4, cost=COSTS[cost])
        alternate(
            f"{name}, S+Q tuned for {cost}, FPP 32; ratios to CAT's rounds a second",
            {
                "gradient descent": play({"name": "gd"}, {"name": "identity"}, link),
                "Alistarh S+Q": play({"name": "cat", "budget": "alistarh"}, sq, link),
                "CAT S+Q": play({"name": "cat"}, sq, link),
            },
            rounds,
        )


def main(names: list[str] | None = None) -> None:
    for name, (generator, samples, rounds) in SETS.items():
        if not names or name in names:
            rows = rows_of(generator, samples)
            L = 0.25 * largest_eigenvalue(rows) / samples
            search(name, Objective(rows, losses["logistic"](), 1 / samples, 1e-4 * L), L)
            whole_runs(name, rows, L, rounds)


if __name__ == "__main__":
    main(sys.argv[1:])
