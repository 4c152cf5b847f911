"""The page docs/records.md, its picture, docs/records.csv, and the [[record]] tables of jobs/records.

    python docs/records.py [results] > docs/records.md

Reads the results of the jobs in jobs/records, and writes the records at the end of each of these jobs. Nothing is run.
"""

import itertools
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import records_samples
from records_bits import DATA, LEVELS, SAMPLES, WAYS, Problem, edition, set_of, table, write_table

from mpi_compress.evidence.outcomes import Outcome, outcomes
from mpi_compress.evidence.profile import Profile
from mpi_compress.figures import plotting
from mpi_compress.figures.of_run import draw_profiles
from mpi_compress.results.reader import Run
from mpi_compress.results.targets import Target
from mpi_compress.results.tuning import in_words

DOCS = Path(__file__).parent
JOBS = DOCS.parent / "jobs" / "records"
OURS = ("BFGS",)
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

- 900 of the 972 rows of [records.csv](records.csv) are of today's results. Those of version 1 are LoCoDL's on six sets and FedNL's on census-income, which take longest. Today's are
  sending the data, with today's coder ({doc}`reproduces` says how it packs), *EF21, L-BFGS* on w1a with its trials, and 195 methods at one set and κ, by the settings that the protocol
  had chosen. Results of the two versions differ in last digits, so that a target may be reached a round earlier or later: of these 195, 131 have the bits of version 1 throughout; of their
  472 medians 386 moved by at most 1 %, 468 by at most 4 %, and the others by up to 11 %, of *EF21, L-BFGS* on news20. One cell has another winner: up and down to 1e-12 on census-income at
  κ = 10³ it is *EF21, L-BFGS*. Sending the data has ten seeds, and three on census-income, news20 and sector.scale.
- Seconds are those of the last edition throughout.
- The tuning sets have 8 to 60 features, and the scored ones 22 to 62,061. A message's frame weighs more there, so levels and k may come out too large for wide sets.
- Candidates of our own method were written by those who had tried it on the scored sets, with other seeds. So were those of L-BFGS. AIADE's, EF21's and DIANA's come from their papers and from
  what earlier editions of this page had found best; which steps of EF21, DIANA, ADIANA, LoCoDL, AIADE and Nesterov diverge was tried on a1a, with seed 0. All have eight.
- The protocol was changed once after scores had been seen, those of mushrooms: at first settings were chosen at κ = 10⁴, with 10 workers and 600 rounds, where no method of the first order
  comes to 1e-9. Their steps went up to larger values then.
- One setting serves three condition numbers. A reader who knows κ can do better with each method.
- LoCoDL has ten seeds on a1a and w1a, and one elsewhere, since a run takes hundreds of local steps a round; what it wins by one is not bold. It is left out on census-income, news20 and
  sector.scale. BFGS and FedNL send Hessians, and are left out where d is 47,236 and more.
- On news20 and sector.scale, made two-class by their first classes, the budget of 60 Mbit up ends every method that keeps the samples before 1e-12: sending the data takes 15 and 22.
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

`run` runs the trials of the protocol, too. `check` prints the median beside what is claimed, how many seeds reach the target where some miss it, and ends with status 1 if a run needs more.
The jobs of this page end with the records that it lists: to each target what needs the fewest bits of what keeps the samples, and sending the data where that needs fewer. A second program, tests/oracles/test_records_from_bytes.py, recomputes
twelve of them from the bytes of the messages, and finds the same.
`mpi-compress plot --profile jobs/records -o profile.png` draws the picture. [records.csv](records.csv) has the bits of
every method on every problem, medians and intervals; `mpi-compress run records/a9a --only '*, mu = 1e-4 L'` runs those of a9a with κ = 10⁴.
"""

EDITIONS = """
## What each edition changed

1. 25 November 2026: records of a1a and mushrooms, one seed each, by settings found by hand.
2. 26 November 2026: seven sets; a second program recomputes records from the bytes of messages.
3. 27 November 2026: the protocol chooses settings on other sets; medians of ten seeds; equal downlinks; up and down, and up alone, apart; the profile.
4. 27 and 28 November 2026: nine sets, with news20 and sector.scale; sending the data is timed without what its solver loads.
5. 28 and 29 November 2026, this one: sending the data has today's coder, eight candidates and several seeds; N\\*, from which on keeping the samples pays, comes first. Of its 108
   cells, 39 up and down and 50 up alone were below sending the data before; now {both} and {up} are.
"""


def chosen(found: Sequence[Outcome], those: Sequence[Problem]) -> Iterator[str]:
    """What the protocol chose for each method, and of how many candidates; what the last edition says, where there are no results."""
    file, heads = DOCS / "records-chosen.csv", ("method", "candidates", "chosen", "seeds of the scores")
    rows = {row["method"]: [*row.values()] for row in table(file)}
    for m in those[0].methods:
        runs = [run for outcome in found for run in outcome.runs if run.label.startswith(f"{m.name}, mu")]
        if runs:
            tuned, seeds = runs[0].tuned, str(m.seeds) if m.seeds > 1 or not m.is_certain else "1: it draws nothing"
            rows[m.name] = [m.name, str(len(tuned["tried"]) if tuned else 0), in_words(tuned["value"]) if tuned else "–", seeds]
    write_table(file, heads, rows.values())
    protocol = found[0].job.protocol if found[0].job else None
    yield f"\n## The protocol\n\n{str(protocol).capitalize()}. What it chose:\n"
    yield from (f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows.values()))


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
    write_table(DOCS / "records-least.csv", ["counted", *HEADS], rows)


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
    rows = {(row["set"], row["κ"]): [*row.values()] for row in table(file)}
    for p in those:
        of = [run for each in found if set_of(each.file) == p.set for run in each.runs if run.label.endswith(f", mu = {p.mu}")]
        first = {run.label.rsplit(", ", 1)[0]: run for run in reversed(of)}
        if len(first) == len(p.methods):
            rows[p.set, p.kappa] = [p.set, p.kappa, *(_seconds_on(link, first) for link in LINKS.values())]
    write_table(file, heads, rows.values())
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


def main() -> None:
    files, out = sorted(JOBS.glob("*.toml")), Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    of_samples = [file for file in files if file.stem.startswith(SAMPLES)]
    found = outcomes([file for file in files if file not in of_samples], out)
    those = edition(found, DOCS / "records.csv")
    grown = records_samples.growths(edition(outcomes(of_samples, out, full=True) if of_samples else [], DOCS / "records-samples.csv"))
    title, page = PAGE.split("\n\n", 1)
    print(title, *([records_samples.answer(grown)] if grown else []), page, sep="\n\n")
    if grown:
        print(*records_samples.by_samples(grown), sep="\n")
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
