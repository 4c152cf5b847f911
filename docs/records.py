"""The page docs/records.md, its picture, docs/records.csv, and the [[record]] tables of jobs/records.

    python docs/records.py [results] > docs/records.md

Reads the results of the jobs in jobs/records, and writes the records at the end of each of these jobs. Nothing is run.
"""

import csv
import itertools
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Self

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from mpi_compress.evidence.outcomes import Outcome, outcomes
from mpi_compress.evidence.profile import Profile
from mpi_compress.evidence.verdicts import median_interval
from mpi_compress.figures import plotting
from mpi_compress.figures.legends import handles_of, put_below
from mpi_compress.figures.of_run import draw_profiles
from mpi_compress.figures.style import HEIGHT, PAGE_WIDTH, looks, style_of
from mpi_compress.results.reader import Run
from mpi_compress.results.targets import Target
from mpi_compress.results.tuning import in_words

LEVELS = {"1e-3": 1e-3, "1e-6": 1e-6, "1e-9": 1e-9, "1e-12": 1e-12}
TO = ("1e-3", "1e-6", "1e-9")  # of jobs of numbers of samples
WAYS = {"wire_bits": "up and down", "wire_bits_up": "up alone"}
DOCS = Path(__file__).parent
JOBS = DOCS.parent / "jobs" / "records"
DATA, OURS = "sending the data", ("BFGS",)
DRAWS_NOTHING = ("EF21", "AIADE", "Nesterov")  # seeds 10 and 11 give the same bits
SAMPLES, MU_THERE = "samples-", "1e-4 L"  # begins the names of the jobs of growing numbers of samples, and their mu
LINKS = {"5 ms, 1 Gbit/s": (5.59e-3, 7.705e-9), "50 ms, 10 Mbit/s": (51.5e-3, 832e-9), "100 ms, 1 Mbit/s": (101.5e-3, 8.32e-6)}
"""Seconds a message and a byte: the first two measured (docs/reproduces.md), the third by the same additions."""
MARK = "# Records, by docs/records.py: medians of seeds, bits over all workers; a message down counts once a worker.\n"

PAGE = """# Records: the fewest bits to a suboptimality, up and down, and up alone

`make records` makes this page: `mpi-compress report --run --full jobs/records`, and `python docs/records.py results > docs/records.md` from its results. A method
that has no results there keeps the rows of the last edition.

All runs are of logistic regression, start from x0 = 0 and have µ = L/κ. The page counts the Mbit on the wire, over all workers, that a method needs until f − f\\*
reaches a target: *up and down* where a network charges for both, *up alone* where only workers' uplinks are slow. Each has a table of its own, and neither is
the page's ranking. A message down counts once for each worker. Frames, lengths and round 0 are counted; nothing is free. "–" says that the method does not reach the
target within the budget of bits and rounds of the job.

**Settings are chosen before anything is scored**, for every method by as many trials, on five sets and with seeds on which nothing is scored
(`[protocol]` of each job: {doc}`jobs`): at κ = 10³, with 5 workers and at most 1200 rounds. All κ and all sets have the settings that won there; no set has its own. A number is the
median over ten seeds. The brackets hold the 2nd and the 9th value; the median of the distribution lies between them with a probability of 0.98. A method whose interval meets another's
is not better. Bold says that a method's interval meets no other, and that neither of the two has one seed alone where it draws.

**Downlinks are on equal terms.** What a theorem wants exact goes down as bf16, rounded alike for all nodes, the master keeping what rounding left ({doc}`jobs`, *Floats*);
the messages of ADIANA's master have floats of 32 bits. EF21 and DIANA may choose between that and `ef21-p`, which L-BFGS has; AIADE, FedNL and BFGS compress theirs.

**Sending the data comes first**: with `ship-data` each worker sends its samples once, packed, and the master solves the problem alone and sends x. It gives all samples away,
and costs nothing to try. How the master sends x is chosen by the protocol, out of eight candidates. Where it needs the fewest bits, that is the record; the other columns are of methods
that keep the samples.

*EF21, L-BFGS* is the method of Wu, Kamzolov and Takáč (OPT 2025) without a line search. *BFGS* is ours: one compressed Hessian in a later round, and pairs of
what is sent anyway; related methods are that one, Alimisis, Davies and Alistarh (ICML 2021), who quantise Hessians and directions of generalised linear models, and Q-SHED
(arXiv 2305.10852), which sends eigenvectors in turn. Neither has a theorem here, and both need µ > 0.

The dashed line in the figures of these jobs (`bounds = ["floor"]`) is what no method of gradient type can go below for all functions (Lin, Kostina and
Hassibi, arXiv 2002.02508): with R bits a coordinate and direction in a round ‖x − x\\*‖ falls by 2^−R at best.

## What speaks against these numbers

- Two versions stand side by side. Rows of sending the data are today's, with today's coder ({doc}`reproduces` says how it packs); on news20 and sector.scale they are those of the last
  edition, by LZMA and with x in floats of 16 bits. All other rows are those of the last edition, too, and of results of version 1: today's differ from them in last digits, so that a
  target may be reached a round earlier or later. Sending the data has ten seeds, three on census-income, and one where it has not been run again.
- Seconds are those of the last edition throughout.
- The tuning sets have 8 to 60 features, and the scored ones 22 to 62,061. A message's frame weighs more there, so levels and k may come out too large for wide sets.
- Candidates of our own method were written by those who had tried it on the scored sets, with other seeds. So were those of L-BFGS. AIADE's, EF21's and DIANA's come from their papers and from
  what earlier editions of this page had found best; which steps of EF21, DIANA, ADIANA, LoCoDL, AIADE and Nesterov diverge was tried on a1a, with seed 0. All have eight.
- The protocol was changed once after scores had been seen, those of mushrooms: at first settings were chosen at κ = 10⁴, with 10 workers and 600 rounds, where no method of the first order
  comes to 1e-9. Their steps went up to larger values then.
- One setting serves three condition numbers. A reader who knows κ can do better with each method.
- LoCoDL has ten seeds on a1a and w1a, and one elsewhere, since a run takes hundreds of local steps a round; what it wins by one is not bold. It is left out on census-income, news20 and
  sector.scale. BFGS and FedNL send Hessians, and are left out where d is 47,236 and more.
- On news20 and sector.scale, made two-class by their first classes, the budget of 60 Mbit up ends every method that keeps the samples before 1e-12: sending the data takes 15 to 26.
- All sets are of logistic regression, and the shards are in the order of the file. Nothing is said of networks, of minibatches or of partial participation.
- The bits were measured on one kind of processor: elsewhere, too, a target may be reached one round earlier or later.
- Seconds are modelled but for [the links that were measured](reproduces.md#cat-on-links-that-were-measured), and computing is what one process took, over n, other programs running beside.

To beat a record, write a job with the same `[data]`, `[objective]`, `[workers]` and `[protocol]` and a method of your own, state what you claim in a `[[record]]`
table, and let others run it:

    mpi-compress run yours.toml --out again
    mpi-compress check yours.toml --out again

    [[record]]
    run = "the label of your run"
    to = { suboptimality = 1e-9 }
    wire_bits = 838912                  # up and down; or another column that grows, such as wire_bits_up or model_seconds

`run` runs the trials of the protocol, too. `check` prints the median beside what is claimed, and ends with status 1 if a run needs more.
The jobs of this page end with the records that it lists: to each target what needs the fewest bits of what keeps the samples, and sending the data where that needs fewer. A second program, tests/oracles/test_records_from_bytes.py, recomputes
twelve of them from the bytes of the messages. Eleven are equal; *EF21, L-BFGS* needs 1.5 % more today on w1a to 1e-12 (κ = 10³).
`mpi-compress plot --profile jobs/records -o profile.png` draws the picture. [records.csv](records.csv) has the bits of
every method on every problem, medians and intervals; `mpi-compress run records/a9a --only '*, mu = 1e-4 L'` runs those of a9a with κ = 10⁴.
"""


SAMPLES_PAGE = """
## From how many samples on

The bits of the data grow nearly in proportion to N. Those of a method that keeps the samples hardly grow on census-income and gisette-like, and more slowly than the data's on rcv1-like.
N\\* is where the curves cross: they are straight, in logarithms of both axes, between the N that were run. All runs have ten workers and κ = 10⁴, and the settings that the protocol chose (below); nothing was tuned on these sets. At each N the least of those methods counts that keep the
samples: BFGS and *EF21, L-BFGS*, with three seeds each, and at the least N AIADE, which draws nothing. BFGS, which sends a Hessian, runs on census-income alone.

- *census-income* is real; its first N rows are taken.
- *rcv1-like* (d = 47,236) and *gisette-like* (d = 5,000, dense) are drawn, and their values have no structure. They are rounded to floats of 32 bits (`dtype = "float32"`), so that a value
  costs about 32 bits. The real sets' values have fewer digits; the data then cost less, and N\\* is larger.
- A larger N takes long to pack: on one core of two, 1,000 samples take 0.3 s of census-income, 4 s of rcv1-like and 100 s of gisette-like.

`mpi-compress run records/samples-census-income --full` runs the first of the three jobs; [records-samples.csv](records-samples.csv) has every method with its interval.
"""

EDITIONS = """
## What each edition changed

1. 25 November 2026: records of a1a and mushrooms, one seed each, by settings found by hand.
2. 26 November 2026: seven sets; a second program recomputes records from the bytes of messages.
3. 27 November 2026: the protocol chooses settings on other sets; medians of ten seeds; equal downlinks; up and down, and up alone, apart; the profile.
4. 27 and 28 November 2026: nine sets, with news20 and sector.scale; sending the data is timed without what its solver loads.
5. 28 November 2026, this one: sending the data has today's coder, eight candidates and several seeds, but on news20 and sector.scale; N\\*, from which on keeping the samples pays, comes first. Of its 108
   cells, 39 up and down and 50 up alone were below sending the data before; now {both} and {up} are.
"""


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
            yield Problem(_set_of(outcome.file), sizes, mu, [Method.of_runs(*each, levels) for each in methods.items()])


def _set_of(job: Path) -> str:
    return job.stem.removeprefix(SAMPLES)


def stored(file: Path) -> Iterator[Problem]:
    """Those of the last edition, from the table that it wrote."""
    found: dict[tuple[str, ...], dict[tuple[str, str], dict[tuple[str, str], Cost]]] = {}
    for row in _table(file):
        cells = found.setdefault(tuple(row[name] for name in ("set", "N", "d", "n", "mu")), {}).setdefault((row["method"], row["seeds"]), {})
        for column in WAYS:
            cells[row["suboptimality"], column] = Cost(*(float(row[f"{part}{column}"]) for part in ("", "low_", "high_")))
    for (name, N, d, n, mu), methods in found.items():
        yield Problem(name, (int(N), int(d), int(n)), mu, [Method(method, int(seeds), cells) for (method, seeds), cells in methods.items()])


def _table(file: Path) -> list[dict[str, str]]:
    return [*csv.DictReader(file.read_text(encoding="utf-8").splitlines())] if file.exists() else []


def edition(found: Sequence[Outcome], file: Path) -> list[Problem]:
    """The problems of the last edition, each method that has results renewed by them, and those that are new; they are written."""
    last, new = ({each.key: each for each in those} for those in (stored(file), problems(found)))
    those = [*(each.renewed(new.get(key)) for key, each in last.items()), *(each for key, each in new.items() if key not in last)]
    write_cells(those, file)
    return those


def chosen(found: Sequence[Outcome], those: Sequence[Problem]) -> Iterator[str]:
    """What the protocol chose for each method, and of how many candidates; what the last edition says, where there are no results."""
    file, heads = DOCS / "records-chosen.csv", ("method", "candidates", "chosen", "seeds of the scores")
    rows = {row["method"]: [*row.values()] for row in _table(file)}
    for m in those[0].methods:
        runs = [run for outcome in found for run in outcome.runs if run.label.startswith(f"{m.name}, mu")]
        if runs:
            tuned, seeds = runs[0].tuned, str(m.seeds) if m.seeds > 1 or not m.is_certain else "1: it draws nothing"
            rows[m.name] = [m.name, str(len(tuned["tried"]) if tuned else 0), in_words(tuned["value"]) if tuned else "–", seeds]
    _write(file, heads, rows.values())
    protocol = found[0].job.protocol if found[0].job else None
    yield f"\n## The protocol\n\n{str(protocol).capitalize()}. What it chose:\n"
    yield from (f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows.values()))


def _write(file: Path, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out, lineterminator="\n").writerows([heads, *rows])


def shares(those: Sequence[Problem]) -> Iterator[str]:
    """The picture, and both of its panels as tables."""
    profiles = [_profile(those, column) for column in WAYS]
    plotting.save(draw_profiles(profiles), DOCS / "records.png")
    yield "\n![The share of targets that each method reaches within τ times the least](records.png)\n"
    for each in profiles:
        yield f"{each.caption}:\n\n| {' | '.join(each.heads)} |\n| --- |{' ---: |' * (len(each.heads) - 1)}"
        yield from (f"| {' | '.join(row)} |" for row in each.cells)
        yield ""


def _profile(those: Sequence[Problem], column: str) -> Profile:
    """As `evidence.profile.profile` has it of runs, of medians."""
    places = [(p, level) for p in those for level in LEVELS if min(m.took(level, column) for m in p.methods) < math.inf]
    took = {name: [_took(p, name, level, column) for p, level in places] for name in dict.fromkeys(m.name for p in those for m in p.methods)}
    least = np.min([*took.values()], axis=0)
    return Profile(column, {name: np.array(each) / least for name, each in took.items()}, len(those) * len(LEVELS) - len(places))


def _took(p: Problem, name: str, level: str, column: str) -> float:
    return next((m.took(level, column) for m in p.methods if m.name == name), math.inf)


HEADS = ("set", "κ", "target", DATA, "least that keeps the samples", "then", "of the papers")


def least(those: Sequence[Problem], column: str) -> Iterator[list[str]]:
    """The rows under `HEADS`: for each problem and target what the best methods took, bold where it is apart."""
    for p in those:
        for level in LEVELS:
            ranked, ship = p.ranked(level, column), p.data
            first, second = ranked[:2]
            paper = next(m for m in ranked if not m.name.startswith(OURS))
            shown = [f"{m.text(level, column)}, {m.name}" if m.took(level, column) < math.inf else "–" for m in (first, second, paper)]
            sent, (low, high) = ship.text(level, column), ship.ends(level, column)
            if first.is_certain and second.is_certain and first.ends(level, column)[1] < min(low, second.ends(level, column)[0]):
                shown[0] = f"**{shown[0]}**"
            elif high < first.ends(level, column)[0]:
                sent = f"**{sent}**"
            yield [p.set, p.kappa, level, sent, *shown]


def least_at(rows: Sequence[Sequence[str]], column: str, target: str = "1e-9") -> Iterator[str]:
    """The page's table, of one target; records-least.csv has all of them."""
    yield f"\n## The least {WAYS[column]}, to {target}, Mbit\n"
    yield f"[records-least.csv](records-least.csv) has the targets {', '.join(LEVELS)}.\n"
    yield from (f"| {' | '.join(row)} |" for row in (HEADS, ["---"] * len(HEADS), *(row for row in rows if row[2] == target)))


def write_least(each: dict[str, list[list[str]]]) -> None:
    rows = [[WAYS[column], *(cell.replace("**", "") for cell in row)] for column, those in each.items() for row in those]
    _write(DOCS / "records-least.csv", ["counted", *HEADS], rows)


def cells_won(those: Sequence[Problem]) -> Iterator[str]:
    yield "\nIn how many of the cells each needs the least (by the median), and below the data:\n"
    yield "| | " + " | ".join(WAYS.values()) + " |\n| --- |" + " ---: |" * len(WAYS)
    names = dict.fromkeys(m.name for p in those for m in p.methods)
    places = [(p, level) for p in those for level in LEVELS]
    won = {column: [min(p.methods, key=lambda m: m.took(level, column)).name for p, level in places] for column in WAYS}
    for name in names:
        yield f"| {name} | {' | '.join(str(won[column].count(name)) for column in WAYS)} |"
    yield f"| a method that keeps the samples, below the data | {' | '.join(f'{below(those, column)} of {len(places)}' for column in WAYS)} |"


def below(those: Sequence[Problem], column: str) -> int:
    """In how many cells a method that keeps the samples needs fewer bits than sending them."""
    return sum(p.ranked(level, column)[0].took(level, column) < p.data.took(level, column) for p in those for level in LEVELS)


def seconds(found: Sequence[Outcome], those: Sequence[Problem]) -> Iterator[str]:
    """Of the results, where these are of all methods: times of two editions are of two machines. Else those of the last edition."""
    file, heads = DOCS / "records-seconds.csv", ["set", "κ", *(f"{link}: the least, and {DATA}" for link in LINKS)]
    rows = {(row["set"], row["κ"]): [*row.values()] for row in _table(file)}
    for p in those:
        of = [run for each in found if _set_of(each.file) == p.set for run in each.runs if run.label.endswith(f", mu = {p.mu}")]
        first = {run.label.rsplit(", ", 1)[0]: run for run in reversed(of)}
        if len(first) == len(p.methods):
            rows[p.set, p.kappa] = [p.set, p.kappa, *(_seconds_on(link, first) for link in LINKS.values())]
    _write(file, heads, rows.values())
    yield "\n## Seconds to 1e-9, by a model of three links\n"
    yield "Two messages a round, the bytes of one worker, its computing and the master's, as measured here; the first seed."
    yield "They are of an edition whose packing, by LZMA, was faster than today's, which takes 0.3 ms for a sample of census-income, and as long to read it.\n"
    yield from (f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows.values()))


def _seconds_on(link: tuple[float, float], first: Mapping[str, Run]) -> str:
    took = {name: _seconds(run, *link) for name, run in first.items()}
    best = min((name for name in took if name != DATA), key=took.__getitem__)
    return f"{took[best]:.2g}, {best}; {took[DATA]:.2g}".replace("inf", "–")


def _seconds(run: Run, message: float, byte: float) -> float:
    """On a link: two messages a round one after the other, the bytes of one worker, its computing, and the master's."""
    row = Target.of("suboptimality", 1e-9).row_of(run)
    if row is None:
        return math.inf
    n, clock = run.attrs["n_workers"], {name: float(each[row]) for name, each in run.timing.items()}
    computing = (clock["compute"] + clock["pack"]) / n + clock["update"]
    return 2 * message * run.column("round")[row] + byte * run.column("wire_bits")[row] / 8 / n + computing


def write_cells(those: Sequence[Problem], file: Path) -> None:
    """Write docs/records.csv, or that of numbers of samples: what each method needs to each target, by the median, with its interval."""
    columns = [f"{part}{column}" for column in WAYS for part in ("", "low_", "high_")]
    rows = []
    for p in those:
        for m in p.methods:
            for level in dict.fromkeys(level for level, _ in m.cells):
                took = [f"{value:.0f}" for column in WAYS for value in m.cells[level, column]]
                rows.append([p.set, *map(str, p.sizes), p.mu, m.name, str(m.seeds), level, *took])
    _write(file, ["set", "N", "d", "n", "mu", "method", "seeds", "suboptimality", *columns], rows)


def write_records(those: Sequence[Problem]) -> None:
    """Put the records of each job at its end: to each target, what needs the fewest bits of what keeps the rows; and sending the data
    where that needs fewer."""
    for name in dict.fromkeys(p.set for p in those):
        job = JOBS / f"{name}.toml"
        text = job.read_text(encoding="utf-8").partition(MARK)[0].rstrip() + f"\n\n{MARK}"
        for p, level in itertools.product((p for p in those if p.set == name), LEVELS):
            best = p.ranked(level, "wire_bits")[0]
            for m in (best, p.data) if p.data.took(level, "wire_bits") < best.took(level, "wire_bits") else (best,):
                if m.took(level, "wire_bits") < math.inf:
                    text += f'\n[[record]]\nrun = "{m.name}, mu = {p.mu}"\nto = {{ suboptimality = {level} }}\n'
                    text += "".join(f"{column} = {math.ceil(m.took(level, column))}\n" for column in WAYS)
        job.write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class Growth:
    """A set at growing numbers of samples N."""

    those: Sequence[Problem]  # by N

    @property
    def set(self) -> str:
        return self.those[0].set

    def curves(self, level: str, column: str) -> tuple[list[float], list[float]]:
        """The bits of sending the data, and those of the best method that keeps them, for each N."""
        return [p.data.took(level, column) for p in self.those], [p.ranked(level, column)[0].took(level, column) for p in self.those]

    def pays_from(self, level: str, column: str) -> float:
        """N*, from which on keeping the samples needs fewer bits: where the curves cross, straight between the N that were run in
        logarithms of both; 0 if it does from the least N on, and infinite if it does not at the largest."""
        sent, kept = (np.array(each) for each in self.curves(level, column))
        if kept[-1] >= sent[-1]:
            return math.inf
        if not (dearer := np.flatnonzero(kept >= sent)).size:
            return 0.0
        i = dearer[-1]
        apart, logs = np.log(kept[i : i + 2] / sent[i : i + 2]), np.log([p.sizes[0] for p in self.those[i : i + 2]])
        return float(np.exp(logs[0] + (logs[1] - logs[0]) * apart[0] / (apart[0] - apart[1])))

    def in_words(self, level: str, column: str) -> str:
        N = self.pays_from(level, column)
        if math.isinf(N):
            return f"above {self.those[-1].sizes[0]:,}"
        return f"about {float(f'{N:.2g}'):,.0f}" if N else f"below {self.those[0].sizes[0]:,}"


def growths(each: Sequence[Problem]) -> list[Growth]:
    """Of the numbers of samples that have results of sending them, and of keeping them."""
    those = [p for p in each if {DATA} < {m.name for m in p.methods}]
    return [Growth(sorted((p for p in those if p.set == name), key=lambda p: p.sizes)) for name in dict.fromkeys(p.set for p in those)]


def answer(each: Sequence[Growth]) -> str:
    """The page's first sentence."""
    from_on = ", ".join(f"{g.in_words('1e-6', 'wire_bits')} on {g.set}" for g in each)
    return f"""**Keeping the samples needs fewer bits than sending them from N\\* samples on, and N\\* is {from_on}.** Those are bits up and down to f − f\\* ≤ 1e-6 in
logistic regression with ten workers and κ = 10⁴. "Above" and "below" name the ends of what was run. [The table](#from-how-many-samples-on) has the other targets, and bits up alone."""


def by_samples(each: Sequence[Growth]) -> Iterator[str]:
    """The table of N*, that of the bits, and the figure."""
    draw_growth(each)
    yield SAMPLES_PAGE
    yield "| set | counted | " + " | ".join(f"N\\* to {level}" for level in TO) + " |\n| --- | --- |" + " ---: |" * len(TO)
    for g, column in itertools.product(each, WAYS):
        yield f"| {g.set} | {WAYS[column]} | {' | '.join(g.in_words(level, column) for level in TO)} |"
    yield "\n![Bits up and down to 1e-6 against the number of samples, one panel a set](records-samples.png)\n"
    yield f"Mbit up and down; {DATA}, and the least that keeps the samples:\n"
    yield "| set | N | " + " | ".join(f"{level}: {DATA} | the least" for level in TO) + " |\n| --- | ---: |" + " ---: | --- |" * len(TO)
    for p in (p for g in each for p in g.those):
        cells = []
        for level in TO:
            best = p.ranked(level, "wire_bits")[0]
            cells += [p.data.text(level, "wire_bits"), f"{best.text(level, 'wire_bits')}, {best.name}"]
        yield f"| {p.set} | {p.sizes[0]:,} | {' | '.join(cells)} |"


def draw_growth(each: Sequence[Growth]) -> None:
    with mpl.rc_context(style_of("screen").settings):
        figure, panels = plt.subplots(1, len(each), figsize=(PAGE_WIDTH, HEIGHT), sharey=True, squeeze=False)
        for ax, g in zip(panels[0], each, strict=True):
            N, curves = [p.sizes[0] for p in g.those], g.curves("1e-6", "wire_bits")
            for bits, label, look in zip(curves, (DATA, "the best that keeps the samples"), looks(["sent", "kept"]).values(), strict=True):
                ax.plot(N, np.array(bits) / 1e6, label=label, **look.of_line)
            ax.set(xscale="log", yscale="log", xlabel="samples N", title=g.set)
        panels[0][0].set_ylabel("Mbit up and down to 1e-6")
        figure.set_figheight(HEIGHT + put_below(figure, handles_of(list(panels[0])), None))
        plotting.save(figure, DOCS / "records-samples.png")


def main() -> None:
    files, out = sorted(JOBS.glob("*.toml")), Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    of_samples = [file for file in files if file.stem.startswith(SAMPLES)]
    found = outcomes([file for file in files if file not in of_samples], out)
    those = edition(found, DOCS / "records.csv")
    grown = growths(edition(outcomes(of_samples, out, full=True) if of_samples else [], DOCS / "records-samples.csv"))
    title, page = PAGE.split("\n\n", 1)
    print(title, *([answer(grown)] if grown else []), page, sep="\n\n")
    if grown:
        print(*by_samples(grown), sep="\n")
    print(*shares(those), *cells_won(those), *chosen(found, those), sep="\n")
    each = {column: [*least(those, column)] for column in WAYS}
    for column, rows in each.items():
        print(*least_at(rows, column), sep="\n")
    write_least(each)
    print(*seconds(found, those), sep="\n")
    write_records(those)
    print(EDITIONS.format(both=below(those, "wire_bits"), up=below(those, "wire_bits_up")))


if __name__ == "__main__":
    main()
