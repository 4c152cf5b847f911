"""The page docs/records.md, and the [[record]] tables of jobs/records: python docs/records.py [results] > docs/records.md

Reads the results of the jobs in jobs/records, and writes the tables of the records at the end of each of these jobs. Nothing is run.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mpi_compress.evidence.outcomes import outcomes
from mpi_compress.results.reader import Run
from mpi_compress.results.targets import Target

LEVELS = {"1e-3": 1e-3, "1e-6": 1e-6, "1e-9": 1e-9, "1e-12": 1e-12}
JOBS = Path(__file__).parents[1] / "jobs" / "records"
OURS, DATA = "BFGS", "the data itself"
LINKS = {"5 ms, 1 Gbit/s": (5.59e-3, 7.705e-9), "50 ms, 10 Mbit/s": (51.5e-3, 832e-9)}  # docs/links.md: s a message, s a byte
MARK = "# Records, by docs/records.py: bits over all workers; a message down counts once a worker.\n"

PAGE = """# Records: the fewest bits to a gap

Made by `make records`: `mpi-compress reproduce jobs/records`, and `python docs/records.py results > docs/records.md` from its results.

Logistic regression from x0 = 0 with µ = L/κ. A cell has the Mbit on the wire, over all workers, that a method needs until f − f\\* is at most the
level: up and down, and in brackets up alone. A message down counts once for each worker, as it does for point-to-point messages. Frames, lengths
and round 0 are counted; nothing is free. Each run has one seed. EF21's step is tuned to 1e-9 ([tune]); the others have their defaults. "–" is not
reached within the budget of bits and rounds of the job, which is not never.

**Shipping the data comes first.** A table begins with the method that costs nothing to try: `ship-data` sends the rows once, packed, and the
master solves the problem alone. It gives all rows away. Where it needs the fewest bits, the best method that keeps the rows stands in the second line of
the table below.

**Why BFGS wins among those that keep the rows.** One Hessian of a few bits an entry costs as much as d/2 gradients of as few bits a coordinate, and
takes most of the condition number away. After that the change of the gradients along a step, which is sent anyway, keeps the curvature up to date.
FedNL sends curvature in every round, and first-order methods send none. Where BFGS loses: to the data themselves, where rows are few (a1a, w1a,
mushrooms) or κ is large (a9a, census-income); to AIADE at κ = 10³ down to 1e-3, on w1a and census-income; and to all methods of the first order where
d is so large that a Hessian is out of reach, as on rcv1_vw1000. It needs µ > 0, and has no theorem. Its levels and its share of workers that send a
Hessian were chosen among some thirty settings on each set; the papers' methods had no such choice but EF21's step.

To beat a record, write a job with the same `[data]`, `[objective]` and `[workers]` and a method of your own, state what you claim in a `[[record]]` table,
and let others play it:

    mpi-compress records check yours.toml

    [[record]]
    run = "the label of your run"
    to = { suboptimality = 1e-9 }
    wire_bits = 838912                  # up and down; wire_bits_up = … for up alone

`records check` plays the runs that a job's records name, and prints what they took beside what is claimed. It ends with status 1 if a run needs more.
A second program, tests/oracles/test_records_from_bytes.py, recomputes eleven of these records from the bytes of the messages, and finds the same bits.
The jobs of this page, such as `mpi-compress records check records/a1a`, end with the records that it lists. Their bits are those of one kind of processor
and one set of libraries; elsewhere a gap may come down to a level one round earlier or later.
"""

HEAD = """Up and down, Mbit; in bold the least. *published*: the best of the papers' methods in these jobs. The last columns have the seconds to
1e-9 of the best method that keeps the rows / of the best published one, by the two numbers of a measured link ({doc}`links`), without computing.
"""


@dataclass(frozen=True)
class Method:
    """What a run took to each level."""

    name: str  # the label without its mu
    run: Run
    rows: Sequence[int | None]

    def bits(self, at: int, column: str = "wire_bits") -> float:
        row = self.rows[at]
        return math.inf if row is None else float(self.run.column(column)[row])

    def cell(self, at: int, best: float) -> str:
        if self.rows[at] is None:
            return "–"
        text = f"{self.bits(at) / 1e6:.3g} ({self.bits(at, 'wire_bits_up') / 1e6:.3g})"
        return f"**{text}**" if self.bits(at) == best else text

    def seconds(self, at: int, message: float, byte: float) -> float:
        """By a link's two numbers: a message up and one down a round, and the bytes of one worker."""
        row = self.rows[at]
        if row is None:
            return math.inf
        return 2 * message * self.run.column("round")[row] + byte * self.bits(at) / 8 / self.run.attrs["n_workers"]


@dataclass(frozen=True)
class Problem:
    """A set at one condition number."""

    job: Path
    title: str
    kappa: str
    methods: Sequence[Method]

    def best(self, at: int, methods: Sequence[Method]) -> Method:
        return min(methods, key=lambda m: m.bits(at))

    @property
    def compressed(self) -> list[Method]:
        """Those that keep the rows where they are."""
        return [m for m in self.methods if m.name != DATA]

    @property
    def published(self) -> list[Method]:
        return [m for m in self.compressed if not m.name.startswith(OURS)]


def problems(out: Path) -> Iterator[Problem]:
    for file in sorted(JOBS.glob("*.toml")):
        for found in outcomes([file], out):
            runs = {run.label: run for run in found.runs}
            for mu in dict.fromkeys(label.rpartition("mu = ")[2] for label in runs):
                methods = [
                    Method(label.rpartition(", mu = ")[0], run, [Target("suboptimality", level).row_of(run) for level in LEVELS.values()])
                    for label, run in runs.items()
                    if label.endswith(f"mu = {mu}")
                ]
                first = methods[0].run.attrs
                title = f"{file.stem}, N = {first['n_samples']:,}, d = {first['dim']:,}, n = {first['n_workers']}"
                yield Problem(file, title, f"10{'³⁴⁵'[int(mu[3]) - 3]}", methods)


def summary(those: Sequence[Problem]) -> Iterator[str]:
    yield "\n## Who wins where\n"
    yield HEAD
    yield "| set | κ | level | the data | best that keeps the rows | rounds | published | " + " | ".join(LINKS) + " |"
    yield "| --- | --- | --- | --- | --- | --- | --- |" + " --- |" * len(LINKS)
    for p in those:
        for at, level in enumerate(LEVELS):
            data = next((m for m in p.methods if m.name == DATA), None)
            best, other = p.best(at, p.compressed), p.best(at, p.published)
            shown = [f"{m.bits(at) / 1e6:.3g}, {m.name}" if m.bits(at) < math.inf else "–" for m in (best, other)]
            ship = "–" if data is None else f"{data.bits(at) / 1e6:.3g}"
            ship, shown[0] = (f"**{ship}**", shown[0]) if data and data.bits(at) <= best.bits(at) else (ship, f"**{shown[0]}**")
            rounds = "–" if best.rows[at] is None else f"{best.run.column('round')[best.rows[at]]}"
            took = [" / ".join(f"{m.seconds(at, *link):.2g}" for m in (best, other)).replace("inf", "–") for link in LINKS.values()]
            head = [p.job.stem, p.kappa] if at == 0 else ["", ""]
            last = took if level == "1e-9" else [""] * len(LINKS)
            yield f"| {' | '.join([*head, level, ship, shown[0], str(rounds), shown[1], *last])} |"


def cells_won(those: Sequence[Problem]) -> Iterator[str]:
    yield "\nIn how many cells of a set each kind of method needs the least:\n"
    yield f"| set | {DATA} | ours, {OURS} | published |"
    yield "| --- | --- | --- | --- |"
    for job in dict.fromkeys(p.job for p in those):
        least = [min(p.methods, key=lambda m, at=at: m.bits(at)).name for p in those if p.job == job for at in range(len(LEVELS))]
        data, ours = least.count(DATA), sum(name.startswith(OURS) for name in least)
        yield f"| {job.stem} | {data} | {ours} | {len(least) - data - ours} |"


def tables(those: Sequence[Problem]) -> Iterator[str]:
    for p in those:
        yield f"\n## {p.title}, κ = {p.kappa}\n"
        yield f"    mpi-compress run {'records/' + p.job.stem} --only '*, mu = {p.methods[0].run.label.rpartition('mu = ')[2]}'\n"
        yield f"| method | {' | '.join(LEVELS)} | ended by |"
        yield "| --- |" + " --- |" * (len(LEVELS) + 1)
        least = [min(m.bits(at) for m in p.methods) for at in range(len(LEVELS))]
        for m in sorted(p.methods, key=lambda m: (m.name != DATA, [m.bits(at) for at in (2, 1, 0)])):
            rounds, bits, gap = (m.run.column(name)[-1] for name in ("round", "wire_bits", "suboptimality"))
            ended = f"{rounds} round{'' if rounds == 1 else 's'}, {bits / 1e6:.3g} Mbit, a gap of {max(gap, 0.0):.1e}"
            yield f"| {m.name} | {' | '.join(m.cell(at, least[at]) for at in range(len(LEVELS)))} | {ended} |"


def write_records(those: Sequence[Problem]) -> None:
    """Put the records of each job at its end: of the methods that keep the rows, those with the fewest bits to a level."""
    for job in dict.fromkeys(p.job for p in those):
        text = job.read_text(encoding="utf-8").partition(MARK)[0].rstrip() + f"\n\n{MARK}"
        for p in those:
            for at, level in enumerate(LEVELS) if p.job == job else ():
                best = p.best(at, p.compressed)
                if best.rows[at] is not None:
                    text += f'\n[[record]]\nrun = "{best.run.label}"\nto = {{ suboptimality = {level} }}\n'
                    text += f"wire_bits = {best.bits(at):.0f}\nwire_bits_up = {best.bits(at, 'wire_bits_up'):.0f}\n"
        job.write_text(text, encoding="utf-8")


def main() -> None:
    found = [*problems(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))]
    print(PAGE)
    print(*summary(found), *cells_won(found), *tables(found), sep="\n")
    write_records(found)


if __name__ == "__main__":
    main()
