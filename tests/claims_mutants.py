"""Plays wrong methods, each against the sentences that must not hold of it, and prints a table of what was seen.

    python tests/claims_mutants.py [--only TEXT …]

A mutant is a text in another's place in a copy of its job: a setting, or a part of `helpers.mutant_parts`. The job is played at a
short form as it stands, where the sentences must hold, and with the mutant, where none of them may. `--only` takes the mutants that
have one of these texts. The exit status is 1 where a sentence survives. `test_claims_mutants.py` checks that the table goes with the
jobs, and that each of their sentences has a mutant, or stands in `WITHOUT` with the reason.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import helpers.mutant_parts  # noqa: F401: registers them
from helpers.copies import ROOT
from helpers.judged import sentences

from mpi_compress.core.tables import markdown
from mpi_compress.evidence.sentences import text_of
from mpi_compress.job.loading import load_job

JOBS = ROOT / "jobs"


class Short(NamedTuple):
    """A job at a form that takes seconds."""

    job: str  # below jobs/
    settings: Mapping[str, Any]
    only: Sequence[str] = ()  # the runs that are played; (): all


class Mutant(NamedTuple):
    """A wrong method, and the sentences that must not hold of it."""

    what: str  # what is wrong, in a few words
    short: Short
    right: str  # the job's text as it stands, once in the file
    wrong: str
    kills: Sequence[str]  # parts of the sentences' texts


#MUTANTS#


def played(file: Path, short: Short, out: Path) -> dict[str, str]:
    return sentences(file, {**short.settings}, short.only, out)


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
    as_they_are: dict[str, dict[str, str]] = {}
    for i, m in enumerate(mutants):
        file = JOBS / f"{m.short.job}.toml"
        if m.short.job not in as_they_are:
            as_they_are[m.short.job] = played(file, m.short, folder / "as-it-is")
        mutated = folder / f"{i}" / f"{m.short.job}.toml"
        mutated.parent.mkdir(parents=True)
        mutated.write_text(file.read_text().replace(m.right, m.wrong))
        for text, before, after in killed(m, as_they_are[m.short.job], played(mutated, m.short, folder / f"{i}")):
            yield [m.what, m.short.job, text, before, after, "killed" if seen(before, after) else "LIVES"]


def invalid(mutants: Sequence[Mutant] | None = None) -> Iterator[str]:
    """What does not go with the jobs: a text that is not there once, a sentence that the job has not."""
    for m in MUTANTS if mutants is None else mutants:
        if (times := (JOBS / f"{m.short.job}.toml").read_text().count(m.right)) != 1:
            yield f"{m.short.job}: {m.right!r} is there {times} times"
        for part in m.kills:
            if (times := sum(part in text for text in sentences_of(m.short.job))) != 1:
                yield f"{m.short.job}: {part!r} is a part of {times} sentences"


def sentences_of(job: str) -> set[str]:
    return {text_of(claim) for claim in load_job(JOBS / f"{job}.toml").claims}


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
