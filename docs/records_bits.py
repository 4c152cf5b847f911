"""What each method of jobs/records needs on each problem, in bits: from results, and from the tables of the last edition."""

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from mpi_compress.evidence.outcomes import Outcome
from mpi_compress.evidence.verdicts import median_interval
from mpi_compress.results.reader import Run
from mpi_compress.results.targets import Target

LEVELS = {"1e-3": 1e-3, "1e-6": 1e-6, "1e-9": 1e-9, "1e-12": 1e-12}
TO = ("1e-3", "1e-6", "1e-9")  # of jobs of numbers of samples
WAYS = {"wire_bits": "up and down", "wire_bits_up": "up alone"}
DATA = "sending the data"
DRAWS_NOTHING = ("EF21", "AIADE", "Nesterov")  # seeds 10 and 11 give the same bits
SAMPLES, MU_THERE = "samples-", "1e-4 L"  # begins the names of the jobs of growing numbers of samples, and their mu


class Cost(NamedTuple):
    """Bits: the median of what the seeds paid, and the ends of its interval."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Method:
    """What a method needs on a problem, in bits: medians over seeds, with their intervals."""

    name: str  # the label without its mu, or its number of samples
    seeds: int
    cells: Mapping[tuple[str, str], Cost]  # by level and column

    @classmethod
    def of_runs(cls, name: str, runs: Sequence[Run], levels: Iterable[str]) -> Self:
        return cls(name, len(runs), {(level, column): _cost(runs, level, column) for level in levels for column in WAYS})

    @property
    def is_certain(self) -> bool:
        """True if its numbers are of several seeds, or draw nothing."""
        return self.seeds > 1 or self.name in DRAWS_NOTHING

    def took(self, level: str, column: str) -> float:
        return self.cells[level, column].median

    def ends(self, level: str, column: str) -> tuple[float, float]:
        """The interval of the median; the value itself where nothing is drawn, and the range of few seeds."""
        cost = self.cells[level, column]
        return cost.low, cost.high

    def text(self, level: str, column: str) -> str:
        cost = self.cells[level, column]
        if math.isinf(cost.median):
            return "–"
        low, high = (f"{each / 1e6:.3g}".replace("inf", "–") for each in (cost.low, cost.high))
        return f"{cost.median / 1e6:.3g}" + (f" [{low}, {high}]" if low != high else "")


def _cost(runs: Sequence[Run], level: str, column: str) -> Cost:
    target = Target.of("suboptimality", LEVELS[level])
    each = [target.took(run, column) for run in runs]
    return Cost(float(np.median(each)), *(median_interval(each) or (min(each), max(each))))


@dataclass(frozen=True)
class Problem:
    """A set, or so many samples of it, at one condition number."""

    set: str
    sizes: tuple[int, int, int]  # N, d and n
    mu: str
    methods: Sequence[Method]

    @property
    def key(self) -> tuple[str, int, str]:
        return self.set, self.sizes[0], self.mu

    @property
    def kappa(self) -> str:
        return f"10{'³⁴⁵'[int(self.mu[3]) - 3]}"

    def ranked(self, level: str, column: str) -> list[Method]:
        """The methods that keep the rows, the least first."""
        return sorted((m for m in self.methods if m.name != DATA), key=lambda m: m.took(level, column))

    @property
    def data(self) -> Method:
        return next(m for m in self.methods if m.name == DATA)

    def renewed(self, by: Self | None) -> Self:
        """With the methods that `by` has in place of those of the same name."""
        new = {m.name: m for m in by.methods} if by else {}
        return replace(self, methods=[*({m.name: m for m in self.methods} | new).values()])


def problems(found: Sequence[Outcome]) -> Iterator[Problem]:
    """Those of the results, which are of all methods or of some."""
    for outcome in found:
        levels = TO if outcome.file.stem.startswith(SAMPLES) else LEVELS
        groups: dict[tuple[str, int], dict[str, list[Run]]] = {}
        for run in outcome.runs:
            name, _, last = run.label.rpartition(", ")
            mu = last.removeprefix("mu = ") if last.startswith("mu = ") else MU_THERE
            groups.setdefault((mu, int(run.attrs["n_samples"])), {}).setdefault(name, []).append(run)
        for (mu, _), methods in groups.items():
            sizes = tuple(int(next(iter(methods.values()))[0].attrs[size]) for size in ("n_samples", "dim", "n_workers"))
            yield Problem(set_of(outcome.file), sizes, mu, [Method.of_runs(*each, levels) for each in methods.items()])


def set_of(job: Path) -> str:
    return job.stem.removeprefix(SAMPLES)


def stored(file: Path) -> Iterator[Problem]:
    """Those of the last edition, from the table that it wrote."""
    found: dict[tuple[str, ...], dict[tuple[str, str], dict[tuple[str, str], Cost]]] = {}
    for row in table(file):
        cells = found.setdefault(tuple(row[name] for name in ("set", "N", "d", "n", "mu")), {}).setdefault((row["method"], row["seeds"]), {})
        for column in WAYS:
            cells[row["suboptimality"], column] = Cost(*(float(row[f"{part}{column}"]) for part in ("", "low_", "high_")))
    for (name, N, d, n, mu), methods in found.items():
        yield Problem(name, (int(N), int(d), int(n)), mu, [Method(method, int(seeds), cells) for (method, seeds), cells in methods.items()])


def table(file: Path) -> list[dict[str, str]]:
    return [*csv.DictReader(file.read_text(encoding="utf-8").splitlines())] if file.exists() else []


def edition(found: Sequence[Outcome], file: Path) -> list[Problem]:
    """The problems of the last edition, each method that has results renewed by them, and those that are new; they are written."""
    last, new = ({each.key: each for each in those} for those in (stored(file), problems(found)))
    those = [*(each.renewed(new.get(key)) for key, each in last.items()), *(each for key, each in new.items() if key not in last)]
    write_cells(those, file)
    return those


def write_table(file: Path, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out, lineterminator="\n").writerows([heads, *rows])


def write_cells(those: Sequence[Problem], file: Path) -> None:
    """Write docs/records.csv, or that of numbers of samples: what each method needs to each target, by the median, with its interval."""
    columns = [f"{part}{column}" for column in WAYS for part in ("", "low_", "high_")]
    rows = []
    for p in those:
        for m in p.methods:
            for level in dict.fromkeys(level for level, _ in m.cells):
                took = [f"{value:.0f}" for column in WAYS for value in m.cells[level, column]]
                rows.append([p.set, *map(str, p.sizes), p.mu, m.name, str(m.seeds), level, *took])
    write_table(file, ["set", "N", "d", "n", "mu", "method", "seeds", "suboptimality", *columns], rows)
