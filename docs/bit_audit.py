"""How rankings of methods depend on the way bits are counted: python docs/bit_audit.py [results]

Writes the tables of docs/bits.md between its two marks, and docs/bit-audit.csv. Reads the results of the jobs in jobs/literature, whose runs are counted by each convention of [log] count, by the bytes that were sent,
and by `[cost] model = "udp-ethernet"`, these bytes with the headers of UDP packets on Ethernet. Nothing is run.
"""

import csv
import itertools
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mpi_compress.evidence.outcomes import job_files, outcomes
from mpi_compress.evidence.problems import fewest
from mpi_compress.messages.conventions import CONVENTIONS
from mpi_compress.results.reader import Run
from mpi_compress.results.targets import Target

SENT, HEADERS = "sent", "sent, with UDP's headers"
COUNTED = ("cat", "values-only-32", "values-only-64", "values+indices", "min(k log2 d, …)")  # what these jobs count
COLUMNS = {**{name: CONVENTIONS[name].column for name in COUNTED}, SENT: "wire_bits_up", HEADERS: "cost_up"}
PAPERS = (  # how the papers of these jobs count, by their authors' code where it was at hand
    ("EF21; MARINA; PermK; DASHA and related methods", "values-only-32", "a worker's floats; indices and the dense start are free"),
    ("3PC on quadratics", "values-only-64", "likewise, in floats of 64 bits"),
    ("3PC's CLAG and LAG", "values-only-32", "floats summed over workers; their dense start is counted there, and free here, as EF21's is"),
    ("CAT", "cat", "eq. 5: ⌈log2 d⌉ bits an index"),
    ("FL_playground", "min(k log2 d, …)", "indices of random-k and PermK are free"),
    ("EF21-SGDM, EF21-P, EControl, LoCoDL, ADIANA, Kimad, DoubleSqueeze", "values-only-32", "no axis of bits was seen; this is the field's"),
)
LOOSER = (1.0, 1e1, 1e2, 1e3, 1e4)  # times the job's own target, until half of the methods reach it
PAGE = Path(__file__).with_name("bits.md")
BEGIN, END = "<!-- by bit_audit.py -->\n", "<!-- end of bit_audit.py -->"
JOBS = Path(__file__).parents[1] / "jobs" / "literature"

Bits = Mapping[str, Mapping[str, float]]  # by way of counting, by method


@dataclass(frozen=True)
class Comparison:
    """One problem, and the bits of each method up to the target by each way of counting."""

    problem: str
    target: Target
    jobs: Sequence[str]
    bits: Bits  # infinite where a method does not reach the target

    @property
    def methods(self) -> list[str]:
        return [*self.bits[SENT]]

    @property
    def reached(self) -> list[str]:
        """The methods that reach the target, by what was sent."""
        return sorted((m for m in self.methods if math.isfinite(self.bits[SENT][m])), key=lambda m: self.bits[SENT][m])

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """All pairs of methods that reach the target."""
        return [*itertools.combinations(self.reached, 2)]

    def flips(self, one: str, other: str) -> int:
        """How many pairs of methods two ways of counting put in another order, or only one of them in the same place."""
        a, b = self.bits[one], self.bits[other]
        return sum(np.sign(a[x] - a[y]) != np.sign(b[x] - b[y]) for x, y in self.pairs)

    def best(self, way: str) -> str:
        """The method with the fewest bits."""
        return min(self.reached, key=lambda m: self.bits[way][m])


def bits_to(runs: Sequence[Run], target: Target) -> dict[str, float]:
    """Bits up of all workers up to the target by each way of counting, the median over seeds; infinite where half do not reach it."""
    rows = [target.row_of(run) for run in runs]
    return {
        way: float(np.median([math.inf if row is None else run.column(column)[row] for run, row in zip(runs, rows, strict=True)]))
        for way, column in COLUMNS.items()
    }


def comparisons(out: Path) -> Iterator[Comparison]:
    """Those of all problems of the jobs that two methods or more reach a target on."""
    for row in fewest(outcomes(job_files([str(JOBS)]), out)):
        if row.comparison.by != "wire_bits_up":
            continue  # the same runs, ranked by both directions
        counted = {m.label: m.runs for m in row.comparison.methods if all(_is_counted(run) for run in m.runs)}
        tuned = {run.label for runs in counted.values() for run in runs if run.tuned}
        counted = {name: runs for name, runs in counted.items() if not any(runs[0].label.startswith(f"{each}, ") for each in tuned)}
        for times in LOOSER:
            target = Target.of(row.comparison.targets[0].column, times * row.comparison.targets[0].level)
            of = {label: bits_to(runs, target) for label, runs in counted.items()}
            found = {way: {label: each[way] for label, each in of.items()} for way in COLUMNS}
            if sum(map(math.isfinite, found[SENT].values())) >= max(2, math.ceil(len(counted) / 2)):
                jobs = sorted({run.file.parent.name for runs in counted.values() for run in runs})
                yield Comparison(row.problem, target, jobs, found)
                break


def _is_counted(run: Run) -> bool:
    """True if a run has all columns, and its cost is that of UDP packets."""
    return all(run.has(column) for column in COLUMNS.values()) and 'model = "udp-ethernet"' in run.attrs["job"]


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table of Markdown, its first column of text and the others of numbers."""
    yield "| " + " | ".join(heads) + " |"
    yield "| --- |" + " ---: |" * (len(heads) - 1)
    yield from ("| " + " | ".join(row) + " |" for row in rows)


def _share(n: int, m: int) -> str:
    return f"{n} of {m} ({n / m:.0%})" if m else "–"


def summary(found: Sequence[Comparison]) -> Iterator[str]:
    """How often ways of counting disagree, over all comparisons, and how the papers counted."""
    pairs = sum(len(c.pairs) for c in found)
    others = [way for way in COLUMNS if way != SENT]
    winners = Counter(way for c in found for way in COLUMNS if c.best(way) != c.best(SENT))
    yield f"Of {len(found)} comparisons with {pairs} pairs of methods, another order than by what was sent:\n"
    yield from table(["", *others], [
        ["pairs", *(_share(sum(c.flips(way, SENT) for c in found), pairs) for way in others)],
        ["the cheapest method", *(f"{winners[way]} of {len(found)}" for way in others)],
    ])  # fmt: skip
    yield f"\nAny two ways of counting: pairs in another order, of {pairs}:\n"
    yield from table(["", *COLUMNS], [
        [one, *(str(sum(c.flips(one, other) for c in found)) if one != other else "–" for other in COLUMNS)] for one in COLUMNS
    ])  # fmt: skip
    yield "\nBy which convention each paper counted:\n"
    yield from table(["paper", "convention", "what it says"], PAPERS)


def cases(found: Sequence[Comparison]) -> Iterator[list[str]]:
    """The bits of each method of each comparison, a row each; infinite where the target is not reached."""
    yield ["comparison", "target", "jobs", "method", *COLUMNS]
    for c in found:
        for m in (*c.reached, *(m for m in c.methods if m not in c.reached)):
            yield [c.problem, str(c.target), " ".join(c.jobs), m, *(f"{c.bits[way][m]:.3g}" for way in COLUMNS)]


def main(out: Path) -> None:
    found = sorted(comparisons(out), key=lambda c: c.problem)
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text("\n".join([before + BEGIN, *summary(found), "", END + after]), encoding="utf-8")
    with PAGE.with_name("bit-audit.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(cases(found))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))
