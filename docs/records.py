"""The page docs/records.md, its picture, docs/records.csv, and the [[record]] tables of jobs/records.

    python docs/records.py [results] > docs/records.md

Reads the results of the jobs in jobs/records, and writes the records at the end of each of these jobs. Nothing is run.
"""

import csv
import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from mpi_compress.evidence.outcomes import Outcome, outcomes
from mpi_compress.evidence.profile import profile
from mpi_compress.evidence.verdicts import median_interval
from mpi_compress.figures import plotting
from mpi_compress.figures.of_run import draw_profiles
from mpi_compress.results.reader import Run
from mpi_compress.results.targets import Target
from mpi_compress.results.tuning import in_words

LEVELS = {"1e-3": 1e-3, "1e-6": 1e-6, "1e-9": 1e-9, "1e-12": 1e-12}
TARGETS = [Target.of("suboptimality", level) for level in LEVELS.values()]
WAYS = {"wire_bits": "up and down", "wire_bits_up": "up alone"}
DOCS = Path(__file__).parent
JOBS = DOCS.parent / "jobs" / "records"
DATA, OURS = "sending the data", ("BFGS",)
DRAWS_NOTHING = (DATA, "EF21", "AIADE", "Nesterov")  # seeds 10 and 11 give the same bits
LINKS = {"5 ms, 1 Gbit/s": (5.59e-3, 7.705e-9), "50 ms, 10 Mbit/s": (51.5e-3, 832e-9), "100 ms, 1 Mbit/s": (101.5e-3, 8.32e-6)}
"""Seconds a message and a byte: the first two measured (docs/reproduces.md), the third by the same additions."""
MARK = "# Records, by docs/records.py: medians of seeds, bits over all workers; a message down counts once a worker.\n"

PAGE = """# Records: the fewest bits to a suboptimality, up and down, and up alone

Made by `make records`: `mpi-compress report --run jobs/records`, and `python docs/records.py results > docs/records.md` from its results.

Logistic regression from x0 = 0 with µ = L/κ. What counts is the Mbit on the wire, over all workers, that a method needs until f − f\\* reaches a
target: *up and down* where a network charges for both, *up alone* where only workers' uplinks are slow. Both have tables of their own, and neither is
the page's ranking. A message down counts once for each worker. Frames, lengths and round 0 are counted; nothing is free. "–" is not reached within the
budget of bits and rounds of the job.

**Settings are chosen before anything is scored**, for every method by as many trials, on five sets and with seeds on which nothing is scored
(`[protocol]` of each job: {doc}`jobs`): at κ = 10³, with 5 workers and at most 1200 rounds. All κ and all sets have the settings that won there; no set has its own. A number is the median over ten seeds, with the
interval between the 2nd and the 9th value in brackets, which holds the median of the distribution with a probability of 0.98. A method whose interval meets another's is not better: bold is
what is apart from the next one, neither of which has one seed alone where it draws.

**Downlinks are on equal terms.** What a theorem wants exact goes down as bf16, rounded alike for all nodes, the master keeping what rounding left ({doc}`jobs`, *Floats*);
The messages of ADIANA's master have floats of 32 bits. EF21 and DIANA may choose between that and `ef21-p`, which L-BFGS has; AIADE, FedNL and BFGS compress theirs.

**Sending the data comes first**: `ship-data` sends the samples once, packed, and the master solves the problem alone. It gives all samples away, and costs nothing
to try. Where it needs the fewest bits, that is the record; the other columns are of methods that keep the samples.

*EF21, L-BFGS* is the method of Wu, Kamzolov and Takáč (OPT 2025) without a line search. *BFGS* is ours: one compressed Hessian in a later round, and pairs of
what is sent anyway; related methods are that one, Alimisis, Davies and Alistarh (ICML 2021), who quantise Hessians and directions of generalised linear models, and Q-SHED
(arXiv 2305.10852), which sends eigenvectors in turn. Neither has a theorem here, and both need µ > 0.

The dashed line in the figures of these jobs (`bounds = ["floor"]`) is what no method of gradient type can go below for all functions (Lin, Kostina and
Hassibi, arXiv 2002.02508): with R bits a coordinate and direction in a round ‖x − x\\*‖ falls by 2^−R at best.

## What speaks against these numbers

- The bits of sending the data are those of LZMA, by which `ship-data` packed samples when these jobs were run. Its coder of today needs 0.28 to 0.67 times as many on
  mushrooms, a1a, a9a, w1a, ijcnn1.val and census-income, and 1.06 times on news20 ({doc}`reproduces`).
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
- The bits are of results of version 1, on one kind of processor: elsewhere a target may be reached one round earlier or later.
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
The jobs of this page end with the records that it lists. A second program, tests/oracles/test_records_from_bytes.py, recomputes eight of them from the bytes of the messages.
`mpi-compress plot --profile jobs/records -o profile.png` draws the picture. [records.csv](records.csv) has the bits of
every method on every problem, medians and intervals; `mpi-compress run records/a9a --only '*, mu = 1e-4 L'` runs those of a9a with κ = 10⁴.
"""


@dataclass(frozen=True)
class Method:
    """The runs of a method on a problem, one a seed."""

    name: str  # the label without its mu
    runs: Sequence[Run]

    @property
    def is_certain(self) -> bool:
        """True if its numbers are of several seeds, or draw nothing."""
        return len(self.runs) > 1 or self.name.startswith(DRAWS_NOTHING)

    def took(self, at: int, column: str) -> float:
        """The median of what the seeds paid to a target."""
        return float(np.median(self._each(at, column)))

    def _each(self, at: int, column: str) -> list[float]:
        return [TARGETS[at].took(run, column) for run in self.runs]

    def ends(self, at: int, column: str) -> tuple[float, float]:
        """The interval of the median; the value itself where nothing is drawn, and the range of few seeds."""
        each = self._each(at, column)
        return median_interval(each) or (min(each), max(each))

    def text(self, at: int, column: str) -> str:
        took, (low, high) = self.took(at, column), self.ends(at, column)
        if math.isinf(took):
            return "–"
        interval = f" [{low / 1e6:.3g}, {high / 1e6:.3g}]".replace("inf", "–") if low < high else ""
        return f"{took / 1e6:.3g}{interval}"

    def seconds(self, at: int, message: float, byte: float) -> float:
        """On a link: two messages a round one after the other, the bytes of one worker, its computing, and the master's."""
        run = self.runs[0]
        row = TARGETS[at].row_of(run)
        if row is None:
            return math.inf
        n, clock = run.attrs["n_workers"], {name: float(each[row]) for name, each in run.timing.items()}
        computing = (clock["compute"] + clock["pack"]) / n + clock["update"]
        return 2 * message * run.column("round")[row] + byte * run.column("wire_bits")[row] / 8 / n + computing


@dataclass(frozen=True)
class Problem:
    """A set at one condition number."""

    outcome: Outcome
    kappa: str
    methods: Sequence[Method]

    @property
    def set(self) -> str:
        return self.outcome.file.stem

    @cached_property
    def mu(self) -> str:
        return self.methods[0].runs[0].label.rpartition("mu = ")[2]

    def ranked(self, at: int, column: str) -> list[Method]:
        """The methods that keep the rows, the least first."""
        return sorted((m for m in self.methods if not m.name.startswith(DATA)), key=lambda m: m.took(at, column))

    def data(self, at: int, column: str) -> float:
        return min((m.took(at, column) for m in self.methods if m.name.startswith(DATA)), default=math.inf)


def problems(found: Sequence[Outcome]) -> Iterator[Problem]:
    for outcome in found:
        for mu in dict.fromkeys(run.label.rpartition("mu = ")[2] for run in outcome.runs):
            labels = dict.fromkeys(run.label for run in outcome.runs if run.label.endswith(f"mu = {mu}"))
            each = {label: [run for run in outcome.runs if run.label == label] for label in labels}
            methods = [Method(label.rpartition(", mu = ")[0], runs) for label, runs in each.items()]
            yield Problem(outcome, f"10{'³⁴⁵'[int(mu[3]) - 3]}", methods)


def chosen(those: Sequence[Problem]) -> Iterator[str]:
    """What the protocol chose for each method, and of how many candidates."""
    protocol = those[0].outcome.job.protocol if those[0].outcome.job else None
    yield f"\n## The protocol\n\n{str(protocol).capitalize()}. What it chose:\n"
    yield "| method | candidates | chosen | seeds of the scores |"
    yield "| --- | --- | --- | --- |"
    for method in those[0].methods:
        tuned, seeds = method.runs[0].tuned, len(method.runs)
        won = in_words(tuned["value"]) if tuned else "–"
        yield f"| {method.name} | {len(tuned['tried']) if tuned else 0} | {won} | {seeds if seeds > 1 or not method.is_certain else '1: it draws nothing'} |"


def shares(found: Sequence[Outcome]) -> Iterator[str]:
    """The picture, and both of its panels as tables."""
    runs = [run for outcome in found for run in outcome.runs]
    profiles = [profile(runs, TARGETS, column) for column in WAYS]
    plotting.save(draw_profiles(profiles), DOCS / "records.png")
    yield "\n![The share of targets that each method reaches within τ times the least](records.png)\n"
    for each in profiles:
        yield f"{each.caption}:\n\n| {' | '.join(each.heads)} |\n| --- |{' ---: |' * (len(each.heads) - 1)}"
        yield from (f"| {' | '.join(row)} |" for row in each.cells)
        yield ""


HEADS = ("set", "κ", "target", DATA, "least that keeps the samples", "then", "of the papers")


def least(those: Sequence[Problem], column: str) -> Iterator[list[str]]:
    """The rows under `HEADS`: for each problem and target what the best methods took, bold where it is apart."""
    for p in those:
        for at, level in enumerate(LEVELS):
            ranked, ship = p.ranked(at, column), p.data(at, column)
            first, second = ranked[:2]
            paper = next(m for m in ranked if not m.name.startswith(OURS))
            shown = [f"{m.text(at, column)}, {m.name}" if m.took(at, column) < math.inf else "–" for m in (first, second, paper)]
            sent = f"{ship / 1e6:.3g}".replace("inf", "–")
            if first.is_certain and second.is_certain and first.ends(at, column)[1] < min(ship, second.ends(at, column)[0]):
                shown[0] = f"**{shown[0]}**"
            elif ship < first.ends(at, column)[0]:
                sent = f"**{sent}**"
            yield [p.set, p.kappa, level, sent, *shown]


def least_at(rows: Sequence[Sequence[str]], column: str, target: str = "1e-9") -> Iterator[str]:
    """The page's table, of one target; records-least.csv has all of them."""
    yield f"\n## The least {WAYS[column]}, to {target}, Mbit\n"
    yield f"[records-least.csv](records-least.csv) has the targets {', '.join(LEVELS)}.\n"
    yield from (f"| {' | '.join(row)} |" for row in (HEADS, ["---"] * len(HEADS), *(row for row in rows if row[2] == target)))


def write_least(each: dict[str, list[list[str]]]) -> None:
    rows = [[WAYS[column], *(cell.replace("**", "") for cell in row)] for column, those in each.items() for row in those]
    with (DOCS / "records-least.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["counted", *HEADS], *rows])


def cells_won(those: Sequence[Problem]) -> Iterator[str]:
    yield "\nIn how many of the cells each needs the least (by the median), and below the data:\n"
    yield "| | " + " | ".join(WAYS.values()) + " |\n| --- |" + " ---: |" * len(WAYS)
    places = [(p, at) for p in those for at in range(len(LEVELS))]
    names = dict.fromkeys(m.name for p in those for m in p.methods)
    won = {column: [_winner(p, at, column) for p, at in places] for column in WAYS}
    for name in names:
        yield f"| {name} | {' | '.join(str(won[column].count(name)) for column in WAYS)} |"
    below = [sum(p.ranked(at, column)[0].took(at, column) < p.data(at, column) for p, at in places) for column in WAYS]
    yield f"| a method that keeps the samples, below the data | {' | '.join(f'{count} of {len(places)}' for count in below)} |"


def _winner(p: Problem, at: int, column: str) -> str:
    return min(p.methods, key=lambda m: m.took(at, column)).name


def seconds(those: Sequence[Problem]) -> Iterator[str]:
    yield "\n## Seconds to 1e-9, by a model of three links\n"
    yield "Two messages a round, the bytes of one worker, its computing and the master's, as measured here; the first seed.\n"
    yield "| set | κ | " + " | ".join(f"{link}: the least, and {DATA}" for link in LINKS) + " |"
    yield "| --- | --- |" + " --- |" * len(LINKS)
    at = [*LEVELS].index("1e-9")
    for p in those:
        cells = []
        for link in LINKS.values():
            best = min(p.ranked(at, "wire_bits"), key=lambda m: m.seconds(at, *link))
            ship = min((m.seconds(at, *link) for m in p.methods if m.name.startswith(DATA)), default=math.inf)
            cells.append(f"{best.seconds(at, *link):.2g}, {best.name}; {ship:.2g}".replace("inf", "–"))
        yield f"| {p.set} | {p.kappa} | {' | '.join(cells)} |"


def write_cells(those: Sequence[Problem]) -> None:
    """Write docs/records.csv: what each method needs to each target, by the median, with its interval."""
    with (DOCS / "records.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        columns = [f"{part}{column}" for column in WAYS for part in ("", "low_", "high_")]
        rows.writerow(["set", "N", "d", "n", "mu", "method", "seeds", "suboptimality", *columns])
        for p in those:
            sizes = [p.methods[0].runs[0].attrs[name] for name in ("n_samples", "dim", "n_workers")]
            for m, (at, level) in itertools.product(p.methods, enumerate(LEVELS)):
                took = [value for column in WAYS for value in (m.took(at, column), *m.ends(at, column))]
                rows.writerow([p.set, *sizes, p.mu, m.name, len(m.runs), level, *(f"{value:.0f}" for value in took)])


def write_records(those: Sequence[Problem]) -> None:
    """Put the records of each job at its end: of the methods that keep the rows, those with the fewest bits to a target."""
    for job in dict.fromkeys(p.outcome.file for p in those):
        text = job.read_text(encoding="utf-8").partition(MARK)[0].rstrip() + f"\n\n{MARK}"
        for p in those:
            for at, level in enumerate(LEVELS) if p.outcome.file == job else ():
                best = p.ranked(at, "wire_bits")[0]
                if best.took(at, "wire_bits") < math.inf:
                    text += f'\n[[record]]\nrun = "{best.runs[0].label}"\nto = {{ suboptimality = {level} }}\n'
                    text += "".join(f"{column} = {math.ceil(best.took(at, column))}\n" for column in WAYS)
        job.write_text(text, encoding="utf-8")


def main() -> None:
    found = [*outcomes(sorted(JOBS.glob("*.toml")), Path(sys.argv[1] if len(sys.argv) > 1 else "results"))]
    those = [*problems(found)]
    print(PAGE)
    print(*shares(found), *cells_won(those), *chosen(those), sep="\n")
    each = {column: [*least(those, column)] for column in WAYS}
    for column, rows in each.items():
        print(*least_at(rows, column), sep="\n")
    write_least(each)
    print(*seconds(those), sep="\n")
    write_cells(those)
    write_records(those)


if __name__ == "__main__":
    main()
