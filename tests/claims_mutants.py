"""Plays wrong methods, each against the sentences that must not hold of it, and prints a table of what was seen.

    python tests/claims_mutants.py [--only TEXT …]

A mutant is a text put in another's place in a copy of the tree: in the job, where it is a setting, or in a part. Its job is played at
a short form as it stands, where the sentences must hold, and with the mutant, where none of them may. `--only` takes the mutants that
have one of these texts. The exit status is 1 where a sentence survives. `test_claims_mutants.py` checks that the table goes with the
source, and that each sentence of a paper which the pages say to hold has a mutant, or stands in `WITHOUT` with the reason.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from helpers.copies import ROOT, copied, played

from mpi_compress.core.tables import markdown
from mpi_compress.evidence.sentences import text_of
from mpi_compress.job.loading import load_job

LONGEST = 600  # seconds for a job at its short form


class Short(NamedTuple):
    """A job at a form that takes seconds."""

    job: str  # below jobs/
    settings: Mapping[str, Any]
    only: Sequence[str] = ()  # the runs that are played; (): all


class Mutant(NamedTuple):
    """A wrong method, and the sentences that must not hold of it."""

    what: str  # what is wrong, in a few words
    short: Short
    file: str  # below the root
    right: str  # the text as it stands, once in the file
    wrong: str
    kills: Sequence[str]  # parts of the sentences' texts


GSPAR1 = Short("gspar/fig1", {"data.samples": 256, "data.dim": 512, "stop.rounds": 240, "tune.values": [8, 16, 32, 64]}, ["*, c2 = 0.25, lambda2 = 1/N"])
SVM = Short("aiade/svm", {"stop.rounds": 300})
START = Short("ht/fig7-start", {}, ["top-1", "hard-threshold"])
FIG2 = Short("cat/fig2", {"stop.rounds": 300})

LESS = "our algorithm generates gradients with less variance"
MUTANTS = (
    Mutant("uniform probabilities at twice the density in GSpar's place", GSPAR1, "jobs/gspar/fig1.toml", '{ name = "gspar", kappa = 0.1 }', '{ name = "unisp", kappa = 0.2 }', [LESS]),
    Mutant("UniSp in GSpar's place", GSPAR1, "jobs/gspar/fig1.toml", '{ name = "gspar", kappa = 0.1 }', '{ name = "unisp", kappa = 0.1 }', [LESS]),
    Mutant("AIADE without its correction y = x + τ(x − x₋)", SVM, "mpi_compress/algorithms/papers/iade.py", "y = x + self.τ * (x - node.x)", "y = x.copy()", ["c^k · G(k)"]),
    Mutant("AIADE quantises three times as coarsely", SVM, "mpi_compress/algorithms/papers/iade.py", "return self.s * self.c ** (k + 1) / (k + 1)", "return self.s * self.c ** (k + 1) / (k + 1) * 3", ["is diminishing"]),
)

WITHOUT: Mapping[str, str] = {}


def judged(short: Short, place: Path, out: Path, cache: Path) -> dict[str, str]:
    """The verdicts on a job's sentences, played on the copy in `place`."""
    asked = {"file": f"jobs/{short.job}.toml", "short": {**short.settings}, "only": [*short.only], "out": str(out)}
    status, said = played(place, ["helpers.judged", json.dumps(asked)], LONGEST, NUMBA_CACHE_DIR=str(cache))
    if status:
        raise SystemExit(f"{short.job}: {said[-2000:]}")
    return json.loads(said.splitlines()[-1])


def killed(m: Mutant, as_it_is: Mapping[str, str], mutated: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Each sentence that the mutant must kill, its verdict without the mutant, and with it."""
    for part in m.kills:
        (text,) = (text for text in as_it_is if part in text)
        yield text, as_it_is[text], mutated[text]


def seen(before: str, after: str) -> bool:
    """True if a sentence holds of the method, and not of the mutant."""
    return before.startswith("holds") and "holds in" not in before and (not after.startswith("holds") or "holds in" in after)


def play(mutants: Sequence[Mutant], folder: Path) -> Iterator[list[str]]:
    """A row for each mutant and sentence."""
    place, cache = copied(folder / "copy"), folder / "cache"
    as_they_are: dict[str, dict[str, str]] = {}
    for i, m in enumerate(mutants):
        if m.short.job not in as_they_are:
            as_they_are[m.short.job] = judged(m.short, place, folder / "as-it-is", cache)
        file = place / m.file
        right = file.read_text()
        file.write_text(right.replace(m.right, m.wrong))
        try:
            mutated = judged(m.short, place, folder / f"mutant-{i}", cache)
        finally:
            file.write_text(right)
        for text, before, after in killed(m, as_they_are[m.short.job], mutated):
            yield [m.what, m.short.job, text, before, after, "killed" if seen(before, after) else "LIVES"]


def invalid(mutants: Sequence[Mutant] = MUTANTS) -> Iterator[str]:
    """What does not go with the source: a text that is not there once, a sentence that the job has not."""
    for m in mutants:
        if (times := (ROOT / m.file).read_text().count(m.right)) != 1:
            yield f"{m.file}: {m.right!r} is there {times} times"
        texts = sentences_of(m.short.job)
        for part in m.kills:
            if sum(part in text for text in texts) != 1:
                yield f"{m.short.job}: {part!r} is a part of {sum(part in text for text in texts)} sentences"


def sentences_of(job: str) -> set[str]:
    return {text_of(claim) for claim in load_job(ROOT / f"jobs/{job}.toml").claims}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="mutants that have one of these texts")
    options = parser.parse_args()
    chosen = [m for m in MUTANTS if not options.only or any(text in f"{m.what} {m.short.job}" for text in options.only)]
    if problems := list(invalid(chosen)):
        print(*problems, sep="\n")
        return 2
    rows = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for row in play(chosen, Path(folder)):
            rows.append(row)
            print(": ".join(row), flush=True)
    print(markdown(("mutant", "job", "sentence", "as it is", "with the mutant", ""), rows))
    return 1 if any(row[-1] == "LIVES" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
