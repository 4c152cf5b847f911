"""Every method of the literature beside EF21 on the same link up, in turns: rounds a second of processor time, everything encoded and
decoded, nothing logged, and how much longer a round takes than EF21's.

python -m benchmarks.methods [METHOD…] [--turns N] [--most RATIO]

With --most it ends with 1 where a round takes more than RATIO times as long as EF21's. A method whose rounds take several gradients, or
another message down, is named with them: the last two columns are gradients of a whole shard a round and worker, and bits up.
"""

import argparse
import math
import sys
import time
from collections.abc import Mapping
from statistics import median
from typing import Any

import numpy as np

from benchmarks.ef import Stopwatch, dense_rows
from mpi_compress.algorithms import Setting, algorithms
from mpi_compress.core.streams import Streams
from mpi_compress.engine import rounds as engine
from mpi_compress.engine.evaluation import Evaluator
from mpi_compress.exchange import Exchange
from mpi_compress.job.tables import Stop
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.compressors.base import AmongWorkers
from mpi_compress.messages.costs import costs
from mpi_compress.messages.link import Link
from mpi_compress.problem.data_terms import data_term
from mpi_compress.problem.losses import losses
from mpi_compress.problem.objective import Shards

N, D, WORKERS, SOME = 2000, 400, 10, 3  # rows, coordinates, workers, and how many of them take part where not all do
L = 1e2
STEP = "0.01/L"
TOP, RANDOM, WHOLE = {"name": "top-k", "k": 40}, {"name": "random-k", "k": 40}, {"name": "identity"}
PERMUTED = {"name": "perm-k"}
CHANGING = {"name": "trace", "rows": [[0, "1 ms", "1 Mbit/s"]]}

Case = tuple[dict[str, Any], dict[str, Any], Mapping[str, Any]]  # parameters, compressor up; down, participants, cost, EF21's up

METHODS: dict[str, Case] = {
    "gd": ({}, TOP, {}),
    "ef": ({}, TOP, {}),
    "ef21-sgdm": ({}, TOP, {}),
    "ef21-sgdm, batch of 8": ({"batch": 8}, TOP, {}),
    "econtrol": ({}, TOP, {}),
    "double-squeeze": ({}, TOP, {"down": TOP}),
    "3pc": ({"zeta": 1e-6}, TOP, {}),
    "clag": ({"zeta": 1e-6}, TOP, {}),
    "lag": ({"zeta": 1e-6}, WHOLE, {}),
    "adacgd": ({"zeta": 1e-6, "levels": [10, 40]}, TOP, {}),
    "kimad": ({"deadline": "3.9 ms"}, {"name": "top-k"}, {"cost": CHANGING, "beside": TOP}),
    "ef21-p": ({}, WHOLE, {"down": TOP}),
    "ef21-p-diana": ({}, RANDOM, {"down": TOP}),
    "diana": ({}, RANDOM, {}),
    "adiana": ({}, RANDOM, {}),
    "adef": ({}, TOP, {}),
    "marina": ({}, RANDOM, {}),
    "marina, perm-k": ({}, PERMUTED, {}),
    "marina-p": ({}, WHOLE, {"down": PERMUTED}),
    "marina-pp": ({}, RANDOM, {"participants": SOME}),
    "dasha": ({}, RANDOM, {}),
    "dasha-pp": ({}, RANDOM, {"participants": SOME}),
    "dasha-page": ({"batch": 8}, RANDOM, {}),
    "dasha-mvr": ({"batch": 8}, RANDOM, {}),
    "page": ({"batch": 8}, RANDOM, {}),
    "local-sgd": ({"local_steps": 1}, WHOLE, {}),
    "scaffnew": ({"p": 1}, WHOLE, {}),
    "locodl": ({"p": 1}, RANDOM, {}),
    "power-sgd": ({"rank": 2, "shapes": [[20, 20]]}, WHOLE, {}),
}


class Played:
    """A method on the benchmark's problem; calling it plays some rounds, and returns their processor seconds."""

    def __init__(self, case: Case, algorithm: dict[str, Any]):
        _, up, more = case
        self.cost = costs.build(more.get("cost", "payload"), "cost")
        numbers = {
            **dict.fromkeys(("L", "L_max", "L_rms", "L_pm", "L_row"), L), "mu": 1e-2 * L, "kappa": 1e2, "g0": 1.0,
            "n": float(WORKERS), "d": float(D), "N": float(N),
        }  # fmt: skip
        links = _link(up), _link(more.get("down", WHOLE))
        self.setting = Setting(n=WORKERS, dim=D, up=links[0], down=links[1], cost=self.cost, numbers=numbers, participants=more.get("participants"))
        self.method = algorithms.build(algorithm, "algorithm").bind(self.setting)
        self.gradients = self.bits = math.nan

    def __call__(self, rounds: int) -> float:
        parts = dense_rows(N, D, np.float64, WORKERS)
        fs = Shards([data_term(part, losses["logistic"](), WORKERS / N, 1e-2 * L) for part in parts])
        warm = 5
        observer = Stopwatch(Evaluator(Exchange(WORKERS), fs, 0.0), self.cost, Stop(rounds=warm + rounds), N, every=10**9)
        observer.warm, observer.logs = warm, False
        engine.run(self.method, Streams(0), np.full(D, 1e-3), observer)
        took = time.process_time() - observer.begun
        self.gradients = fs.samples.sum() / N / (warm + rounds)
        self.bits = observer.counters.wire_bits_up / WORKERS / (warm + rounds)
        return took


def _link(table: dict[str, Any]) -> Link:
    compressor = compressors.build(table, "link")
    compressor = compressor.among(WORKERS) if isinstance(compressor, AmongWorkers) else compressor
    return Link(compressor, codecs.build(compressor.codec, "link"), D)


def of(name: str) -> tuple[Played, Played]:
    """The method, and EF21 on its links up, with its minibatch and its participants."""
    case = METHODS[name]
    parameters, up, more = case
    beside = (parameters, more.get("beside", up), {key: value for key, value in more.items() if key != "down"})
    batch = {"batch": parameters["batch"]} if "batch" in parameters else {}
    ef21 = {"name": "ef21", "first": "gradient" if batch else "compressed", "step": STEP, **batch}
    return Played(case, {"name": name.partition(",")[0], "step": STEP, **parameters}), Played(beside, ef21)


def measured(name: str, rounds: int, turns: int) -> float:
    """Print the line of a method; the median of how much longer its rounds take than EF21's."""
    method, ef21 = pair = of(name)
    for play in pair:
        play(3)
    took = [[play(rounds) for play in pair] for _ in range(turns)]
    ratio = median(here / there for here, there in took)
    own, other = (rounds / median(turn[j] for turn in took) for j in (0, 1))
    print(
        f"  {name:24s} {own:8.0f} rounds/s   ef21 {other:8.0f}   {ratio:5.2f} times its time   "
        f"{method.gradients:5.2f} gradients ({ef21.gradients:.2f})   {method.bits:7.0f} bits ({ef21.bits:.0f})",
        flush=True,
    )
    return ratio


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("methods", nargs="*", metavar="METHOD", help=", ".join(METHODS))
    parser.add_argument("--turns", type=int, default=9, help="turns of each pair (9)")
    parser.add_argument("--rounds", type=int, default=200, help="rounds of a turn (200)")
    parser.add_argument("--most", type=float, default=math.inf, help="end with 1 where a round takes more than this times EF21's")
    given = parser.parse_args(arguments or [])
    for wrong in set(given.methods) - set(METHODS):
        parser.error(f"no method called '{wrong}'; there are: {', '.join(METHODS)}")
    print(f"{N} x {D} rows, {WORKERS} workers, full gradients where no batch is named, one process")
    ratios = {name: measured(name, given.rounds, given.turns) for name in given.methods or METHODS}
    slow = [f"{name} ({ratio:.2f})" for name, ratio in ratios.items() if ratio > given.most]
    if slow:
        print(f"more than {given.most:g} times as long as EF21: {', '.join(slow)}")
    return bool(slow)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
